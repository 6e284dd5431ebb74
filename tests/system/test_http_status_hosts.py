"""Who sees what of a job's status from another host."""
# ctest: gate
# ctest: nodes

import json
import signal
import socket
import subprocess
import sys

import pytest

from harness import wait_until
from http_client import http_port
from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import environments, job  # noqa: F401 (a fixture)

TOKEN = "kq7-Zebra-0451-horizon"
LEFT_OUT = "Names and texts are left out."
# Fails once, and then stays.
FAILS_ONCE = """
import os, sys, time
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.exit(3)
os.write(1, b"env {}\\n")
time.sleep(600)
"""

# Run on a host: prints code and text of a request, [code, text].
ASK = """
import json, sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": sys.argv[2]} if len(sys.argv) > 2 else {})
try:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
        print(json.dumps([answer.status, answer.read().decode()]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, error.read().decode()]))
"""


@pytest.fixture
def hosts(network, job, script):  # noqa: F811
    """A job on the first of two hosts, by start(); ask(host, path, ...) and show(host, ...) look at it from either."""
    class Hosts:
        own, other = network(2)

        def start(self, *arguments, env=None):
            job.host = self.own.address
            self.node = job.node("--http-port=0", "--max-restarts=1", *arguments, nnodes="1:2", env=env or {},
                                 script=script("fails.py", FAILS_ONCE), preexec_fn=self.own.enter)
            environments(self.node, 1)
            self.ports = [job.port, http_port(self.node)]
            return self

        def ask(self, host, path, authorization=None, address=None, port=None):
            address = address or self.own.address
            address = f"[{address}]" if ":" in address else address
            arguments = [f"http://{address}:{port or job.port}{path}", *([authorization] if authorization else [])]
            asked = subprocess.run([sys.executable, script("ask.py", ASK), *arguments], preexec_fn=host.enter, timeout=60,
                                   check=True, capture_output=True, text=True)
            return json.loads(asked.stdout)

        def show(self, host, **options):
            return job.elastic_run("--status", f"{self.own.address}:{job.port}", preexec_fn=host.enter, **options)

        def key(self):
            return job.elastic_run("--status-key", env={"ELASTIC_RUN_TOKEN": TOKEN}).stdout.strip()

        def end(self):
            self.node.send_signal(signal.SIGTERM)
            self.node.wait()

    return Hosts()


# Whatever names a host, a process or a text of a worker.
def assert_no_names(text, hosts):
    for word in (hosts.own.name, hosts.own.address, "exited with", "pid ", "fails.py"):
        assert word not in text, (word, text)


def test_another_host_sees_counts_and_states_and_no_names_or_texts(hosts):
    hosts.start()
    for port in hosts.ports:
        for address in (hosts.own.address, hosts.own.address6):
            code, text = hosts.ask(hosts.other, "/status", address=address, port=port)
            assert code == 200
            assert_no_names(text, hosts)
            told = json.loads(text)
            [seen] = told["coordinator"]["jobs"]
            assert told["counts_only"] is True and told["node"]["name"] == told["node"]["endpoint"] == ""
            assert (seen["run_id"], seen["round"], seen["nodes"]["in_round"]) == ("job", 1, 1)
            assert [(each["cause"], each["rank"], each["text"]) for each in seen["failures"]] == [("worker_failure", 0, "")]
            assert [each["pid"] for each in told["node"]["workers"]] == [None]
            code, text = hosts.ask(hosts.other, "/metrics", address=address, port=port)
            assert code == 200 and 'elastic_run_job_restarts_total{run_id="job",cause="worker_failure"} 1' in text
            assert_no_names(text, hosts)
    code, text = hosts.ask(hosts.own, "/status", address="127.0.0.1")
    told = json.loads(text)
    assert told["counts_only"] is False and told["node"]["name"] == hosts.own.name
    assert "exited with code 3" in text
    hosts.end()


def test_status_from_another_host_says_why_names_are_missing(hosts):
    hosts.start()
    shown = hosts.show(hosts.other)
    assert shown.returncode == 0 and "job job: running" in shown.stdout, shown
    assert "worker failure, rank 0" in shown.stdout
    flat = " ".join(shown.stdout.split())
    assert LEFT_OUT in flat and "ELASTIC_RUN_TOKEN" in flat and "--status-open" in flat
    assert_no_names(shown.stdout, hosts)
    hosts.end()


def test_status_from_another_host_with_the_token_shows_all_and_never_sends_the_token(hosts, job, tmp_path):  # noqa: F811
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    hosts.start(env={"ELASTIC_RUN_TOKEN": TOKEN})
    assert LEFT_OUT in hosts.show(hosts.other).stdout
    shown = job.elastic_run("--status", f"{hosts.own.address}:{job.port}", f"--rdzv-conf=token_file={file}",
                            preexec_fn=hosts.other.enter)
    assert hosts.own.name in shown.stdout and LEFT_OUT not in shown.stdout, shown
    assert hosts.ask(hosts.other, "/status", f"Bearer {hosts.key()}")[0] == 200
    for wrong in (f"Bearer {TOKEN}", "Bearer x", f"Basic {hosts.key()}"):
        code, text = hosts.ask(hosts.other, "/status", wrong)
        assert code == 401 and text.count("\n") == 1, text
        assert_no_names(text, hosts)
    listener = socket.create_server(("127.0.0.1", 0))
    asks = job.elastic_run.start("--status", f"127.0.0.1:{listener.getsockname()[1]}", f"--rdzv-conf=token_file={file}")
    connection, _ = listener.accept()
    sent = b""
    while b"\r\n\r\n" not in sent:
        sent += connection.recv(65536)
    assert f"Authorization: Bearer {hosts.key()}\r\n".encode() in sent and TOKEN.encode() not in sent
    connection.close()
    listener.close()
    assert asks.wait().returncode == 1
    hosts.end()


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_open_status_shows_names_to_another_host(hosts, how):
    hosts.start(*(["--status-open"] if how == "flag" else []), env={"PET_STATUS_OPEN": "1"} if how == "variable" else {})
    shown = hosts.show(hosts.other)
    assert hosts.own.name in shown.stdout and "exited with code 3" in shown.stdout and LEFT_OUT not in shown.stdout, shown
    hosts.end()


def test_readiness_of_a_node_that_waits_is_a_state_alone_to_another_host(hosts, job):  # noqa: F811
    job.host = hosts.own.address
    node = job.node("--http-port=0", nnodes="2", preexec_fn=hosts.own.enter)
    port = http_port(node)
    node.wait_for_line("this node hosts the coordinator")
    wait_until(lambda: hosts.ask(hosts.other, "/readyz", port=port) == [503, "waiting\n"], what="the node to wait")
    assert hosts.ask(hosts.own, "/readyz", port=port, address="127.0.0.1")[1].startswith("waiting: ")
    node.send_signal(signal.SIGTERM)
    node.wait()
