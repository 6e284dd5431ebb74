"""--training-port: HCCL_IF_BASE_PORT, on which the nodes of a round agree."""
# ctest: clock
# ctest: nodes

import signal
import sys

import pytest

from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import job  # noqa: F401 (a fixture)
from workers import free_port

ASCEND = "--accelerator=ascend-npu"
PORTS = 16

# In the first of two rounds a connection of the first port is ended by its server, which keeps the port for a minute then.
WORKER = """
import os, socket, sys
port = int(os.environ["HCCL_IF_BASE_PORT"])
os.write(1, f"port {port}\\n".encode())
if os.environ["TORCHELASTIC_RESTART_COUNT"] < os.environ["TORCHELASTIC_MAX_RESTARTS"]:
    with socket.create_server(("127.0.0.1", port)) as server, socket.create_connection(server.getsockname()) as there:
        server.accept()[0].close()
        assert there.recv(1) == b""
    sys.exit(1)
"""

HOLDER = """
import signal, socket, sys
held = []
for port in sys.argv[1:]:
    held.append(socket.socket())
    held[-1].bind(("0.0.0.0", int(port)))
print("held", flush=True)
signal.pause()
"""


@pytest.fixture
def hold(elastic_run):
    """hold(host, port...): these ports of the host are in use until the end of the test."""
    holders = []

    def begin(host, *ports):
        holders.append(elastic_run.start(*map(str, ports), program=[sys.executable, "-c", HOLDER], preexec_fn=host.enter))
        holders[-1].wait_for_line("held", stream="stdout")
    yield begin
    for holder in holders:
        holder.send_signal(signal.SIGTERM)
        holder.wait()


@pytest.fixture
def worker(script):
    return script("hccl.py", WORKER)


def told(result):
    return [int(line.split()[1]) for line in result.stdout.splitlines()]


def test_the_nodes_of_a_round_agree_on_ports_that_are_free_on_all(network, job, hold, worker):  # noqa: F811
    """Above the ports that the kernel gives to connections. The third node may use higher ones only."""
    hosts = network(3)
    job.host = hosts[0].address
    hold(hosts[0], 61013)
    hold(hosts[1], 61022, 61035)
    nodes = [job.node(ASCEND, "--training-port=61000", nnodes="3", script=worker, preexec_fn=host.enter, env=env)
             for host, env in zip(hosts, ({}, {}, {"HCCL_IF_BASE_PORT": "61010"}))]
    results = [node.wait() for node in nodes]
    assert [told(result) for result in results] == [[61036]] * 3, results


def test_a_later_round_has_other_ports_where_the_first_ones_are_still_in_use(elastic_run, worker):
    result = elastic_run(ASCEND, f"--training-port={free_port()}", "--max-restarts=1", worker)
    assert result.returncode == 0, result
    first, second = told(result)
    assert first not in range(second, second + PORTS), result


def test_one_warning_says_that_no_ports_are_free_and_the_start_stays(elastic_run, network, hold, worker):  # noqa: F811
    [host] = network(1)
    hold(host, 65530)
    result = elastic_run(ASCEND, "--training-port=65520", worker, preexec_fn=host.enter)
    assert (result.returncode, told(result)) == (0, [65520]), result
    assert [line for line in result.stderr.splitlines() if "HCCL" in line] == [
        "elastic-run: warning: HCCL's ports are not agreed on, and HCCL_IF_BASE_PORT stays as each node was started: "
        "this node has no 16 TCP ports in a row that are free from 65520 to 65535; free some ports, or give all nodes "
        "another --training-port"]


def test_a_dry_run_shows_where_the_ports_of_hccl_begin(elastic_run):
    result = elastic_run("--dry-run", ASCEND, "--training-port=61000", "--no-python", "true")
    assert "\nHCCL's ports " in result.stdout and "\n  HCCL_IF_BASE_PORT=61000\n" in result.stdout, result
    assert "HCCL" not in elastic_run("--dry-run", "--no-python", "true").stdout
