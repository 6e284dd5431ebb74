"""A small client of elastic-run's HTTP port, for tests."""

import http.client
import json
import re

from harness import wait_until


def get(port, path, token=None, method="GET", headers=None, host="127.0.0.1"):
    """(status, text, headers) of one request."""
    connection = http.client.HTTPConnection(host, port, timeout=60)
    try:
        given = dict(headers or {})
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        connection.request(method, path, headers=given)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


def status(port, **options):
    code, text, _ = get(port, "/status", **options)
    assert code == 200, text
    return json.loads(text)


def metrics(port, **options):
    """{(name, ((label, value), ...)): number}, and the raw text."""
    code, text, headers = get(port, "/metrics", **options)
    assert code == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), (code, headers)
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
        pairs = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
        found[name, pairs] = float(value)
    return found, text


def value(found, name, **labels):
    """The one sample of that name with these labels."""
    hits = [number for (each, pairs), number in found.items()
            if each == name and all(dict(pairs).get(key) == wanted for key, wanted in labels.items())]
    assert len(hits) == 1, (name, labels, hits)
    return hits[0]


def http_port(node):
    """The port that was left to --http-port=0."""
    return int(node.wait_for_line(r"status and metrics are served on port (\d+)").group(1))


def wait_until_ready(port):
    wait_until(lambda: get(port, "/readyz")[0] == 200, what="the node to be ready")
