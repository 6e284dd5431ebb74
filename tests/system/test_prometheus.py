"""What is served as metrics, read by those that it is meant for: promtool, a Prometheus, a Grafana dashboard, and the
reader of docs/observing.md."""
# ctest: nodes

import json
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request

import pytest

from harness import wait_until
from http_client import get, http_port, metrics, value, wait_until_ready
from test_many_nodes import environments, job  # noqa: F401 (a fixture)
from workers import free_port

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def two_nodes(job):
    """Two nodes that train after a check, the first of which hosts the coordinator: (nodes, their ports)."""
    nodes = job.nodes(2, "--http-port=0", "--network-check")
    # The port is told before the coordinator is.
    ports = [int(re.search(r"served on port (\d+)", nodes[0].stderr.text).group(1)), http_port(nodes[1])]
    for node in nodes:
        environments(node, 1)
    for port in ports:
        wait_until_ready(port)
    yield nodes, ports
    for node in reversed(nodes):
        node.send_signal(signal.SIGTERM)
    for node in reversed(nodes):
        node.wait()


def needs(program):
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} (Debian's package prometheus)")


def families(text):
    """[(name, type, help)] in the order of the text."""
    found = []
    for name, said in re.findall(r"^# HELP (\w+) (.*)$", text, re.MULTILINE):
        [kind] = re.findall(rf"^# TYPE {name} (\w+)$", text, re.MULTILINE)
        found.append((name, kind, said))
    return found


def documented():
    """(name, type, labels, meaning) of each metric of docs/observing.md; a row has a sentence for each of its names."""
    page = (ROOT / "docs/observing.md").read_text()
    for row in re.findall(r"^\| (`elastic_run_.*) \|$", page, re.MULTILINE):
        names, kind, labels, said = row.split(" | ")
        names, sentences = re.findall(r"`(\w+)`", names), re.split(r"(?<=\.) ", said)
        assert len(names) == len(sentences), row
        for name, sentence in zip(names, sentences, strict=True):
            yield name, kind, re.findall(r"`(\w+)`", labels), sentence


def test_promtool_finds_nothing_to_say_against_the_metrics(two_nodes, job):
    needs("promtool")
    _, ports = two_nodes
    for port in (*ports, job.port):
        _, text = metrics(port)
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_the_page_of_metrics_in_the_documents_is_what_is_served(two_nodes, job):
    """Each name with its type, labels and meaning, in the same order, and no other."""
    _, text = metrics(job.port)
    rows = list(documented())
    assert [(name, kind, said) for name, kind, _, said in rows] == families(text)
    for name, _, wanted, _ in rows:
        for line in re.findall(rf"^{name}(?:{{(.*)}})? ", text, re.MULTILINE):
            assert re.findall(r'(\w+)="', line or "") == wanted, name


def test_a_check_is_told_in_figures(two_nodes, job):
    numbers, _ = metrics(job.port)
    assert value(numbers, "elastic_run_job_checks_total") == 1
    assert sum(number for (name, _), number in numbers.items() if name == "elastic_run_job_check_nodes") == 2
    assert value(numbers, "elastic_run_job_check_duration_seconds") > 0
    assert value(numbers, "elastic_run_job_check_slowest_busbw_bytes_per_second") > 0
    assert value(numbers, "elastic_run_job_phase_seconds_total", phase="checking") > 0


def test_the_dashboard_asks_for_metrics_that_are_there(two_nodes, job):
    _, text = metrics(job.port)
    served = {name for name, _, _ in families(text)}
    dashboard = json.loads((ROOT / "examples/grafana-dashboard.json").read_text())
    assert dashboard["schemaVersion"] >= 36 and dashboard["title"] and dashboard["uid"]
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(identifiers)) == len(identifiers)
    asked = set()
    for panel in dashboard["panels"]:
        assert panel["title"] and {"x", "y", "w", "h"} <= set(panel["gridPos"]), panel
        if panel["type"] == "row":
            continue
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            names = set(re.findall(r"elastic_run_\w+", target["expr"]))
            assert names, target
            asked |= names
    assert asked <= served, asked - served
    titles = " ".join(panel["title"].lower() for panel in dashboard["panels"])
    for word in ("time in a round", "nodes by state", "restarts by cause", "rounds", "store operations", "check"):
        assert word in titles, word


class Prometheus:
    """A server of its own for a test, that scrapes these ports each second: that long a busy machine may take to answer."""

    def __init__(self, elastic_run, ports, token_file=None):
        self.port = free_port()
        place = elastic_run.directory / "prometheus"
        place.mkdir()
        targets = ", ".join(f"'127.0.0.1:{port}'" for port in ports)
        credentials = f"\n    authorization: {{credentials_file: {token_file}}}" if token_file else ""
        config = place / "prometheus.yml"
        config.write_text(f"""\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: elastic-run{credentials}
    static_configs: [{{targets: [{targets}]}}]
""")
        checked = subprocess.run(["promtool", "check", "config", config], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked
        self.program = elastic_run.start(
            f"--config.file={config}", f"--storage.tsdb.path={place / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}", program=["prometheus"])

    def ask(self, expression):
        """{(labels): number} of an instant query; empty until there is an answer."""
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?{query}", timeout=20) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            return {}
        return {tuple(sorted(each["metric"].items())): float(each["value"][1]) for each in found}

    def wait_for(self, expression):
        return wait_until(lambda: self.ask(expression), timeout=60, what=f"Prometheus to know {expression}")

    def end(self):
        self.program.send_signal(signal.SIGTERM)
        self.program.wait()


def test_a_prometheus_scrapes_two_nodes_and_computes_the_time_in_a_round(two_nodes, elastic_run):
    needs("prometheus")
    _, ports = two_nodes
    prometheus = Prometheus(elastic_run, ports)
    wait_until(lambda: sum(prometheus.ask("up").values()) == 2, timeout=60, what="both nodes to be scraped")
    # One that was not scraped in time is not known for a moment.
    wait_until(lambda: len(prometheus.ask("elastic_run_node_ready == 1")) == 2, timeout=60, what="both nodes to be ready")
    in_round = prometheus.wait_for('elastic_run_job_nodes{state="in_round"}')
    assert list(in_round.values()) == [2.0]
    in_a_round = prometheus.wait_for('sum by (run_id) (elastic_run_job_phase_seconds_total{phase="running"})'
                                  " / sum by (run_id) (elastic_run_job_phase_seconds_total)")
    [share] = in_a_round.values()
    assert 0 < share < 1
    prometheus.end()


def test_a_prometheus_with_the_status_key_scrapes_a_guarded_node(job, elastic_run, tmp_path):
    needs("prometheus")
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    key = tmp_path / "status.key"
    key.write_text(elastic_run("--status-key", f"--rdzv-conf=token_file={token}").stdout)
    node = job.node("--http-port=0", nnodes="1:2", conf=f"token_file={token}")
    port = http_port(node)
    environments(node, 1)
    assert get(port, "/metrics", token="s3cret")[0] == 401
    prometheus = Prometheus(elastic_run, [port], token_file=key)
    wait_until(lambda: list(prometheus.ask("up").values()) == [1.0], timeout=60, what="the node to be scraped")
    prometheus.end()
    node.send_signal(signal.SIGTERM)
    node.wait()
