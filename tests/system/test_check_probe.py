"""--check-probe: the tests of pairs by the user's own program, with DLRover's contract."""
# ctest: gate

import json
import os
import re
import signal

import pytest

from harness import alive, wait_until
from test_console import full_disk  # noqa: F401 (a fixture)
from test_many_nodes import environments, job  # noqa: F401 (a fixture)
from test_network_check import FAULTY, codes

# Meets the others as init_process_group() does: rank 0 listens at MASTER_ADDR and MASTER_PORT.
PROBE = """
import json, os, socket, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    listener = socket.create_server(address)
    others = [listener.accept()[0] for _ in range(world - 1)]
    seen = sorted(int(other.recv(8)) for other in others)
    assert seen == list(range(1, world)), seen
    for other in others:
        other.sendall(b"x")
else:
    end = time.monotonic() + 60
    while True:
        try:
            leader = socket.create_connection(address)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.01)
    leader.sendall(str(rank).encode())
    assert leader.recv(1) == b"x"
names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"]
with open("seen_of_" + os.environ["NODE"], "a") as file:
    file.write(json.dumps([int(os.environ[name]) for name in names]) + "\\n")
local_rank = os.environ["LOCAL_RANK"]
with open(f"{os.environ['ELASTIC_RUN_PROBE_DIR']}/{local_rank}.txt", "w") as file:
    json.dump({"time": float(os.environ.get("SECONDS", 2)), "local_rank": int(local_rank)}, file)
"""


@pytest.fixture
def probed(job, script, tmp_path):  # noqa: F811
    """probed(...): the nodes of a job, of which each has a directory of results of its own."""
    started = []
    probe = script("probe.py", PROBE)

    def start(*arguments, command=f"exec python3 {probe}", env=None, nnodes="2", **options):
        node = len(started)
        own = {"ELASTIC_RUN_PROBE_DIR": str(tmp_path / f"results{node}"), "NODE": str(node)} | (env or {})
        started.append(job.node("--network-check", f"--check-probe={command}", *arguments, nnodes=nnodes,
                                script_arguments=["0"], env=own, conf="last_call_timeout=30", **options))
        if node == 0:
            started[0].wait_for_line("this node hosts the coordinator")
        return started[-1]

    return start


def test_an_external_probe_makes_the_tests_of_pairs_and_its_figure_is_the_exchange_time(probed, tmp_path):
    nodes = [probed(f"--log-dir={tmp_path}/logs", nproc=2), probed(nproc=3)]
    assert codes(nodes) == [0, 0], nodes[0].stderr.text
    written, = (tmp_path / "logs").glob("*/health.json")
    report = json.loads(written.read_text())
    assert [pair["ms"] for pair in report["pairs"]] == [2000, 2000]
    assert report["exchange_bytes"] is None and report["pairs"][0]["busbw_gbps"] is None
    first = int(environments(nodes[0], 1)[0]["GROUP_RANK"])
    sizes = [2, 3] if first == 0 else [3, 2]
    for node, rank in ((0, first), (1, 1 - first)):
        own = sizes[rank]
        wanted = [[rank * sizes[0] + local, 5, local, own, rank, 2] for local in range(own)]
        seen = sorted(json.loads(line) for line in (tmp_path / f"seen_of_{node}").read_text().splitlines())
        assert seen == sorted(wanted * 2)  # of two stages
        assert not os.listdir(tmp_path / f"results{node}")


def test_a_node_whose_external_probe_is_slow_is_a_straggler(probed):
    nodes = [probed(nnodes="3:4", env={"SECONDS": "9" if each == 3 else "2"}) for each in range(4)]
    assert codes(nodes) == [0, 0, 0, 0]
    assert re.search(r"node \d \(\S+\) is slow in the exchange", nodes[0].stderr.text), nodes[0].stderr.text


def test_a_node_whose_external_probe_leaves_no_result_is_left_out_with_its_exit_status(probed):
    nodes = [probed(nnodes="2:3", **({"command": "exit 3"} if each == 2 else {})) for each in range(3)]
    assert codes(nodes) == [0, 0, 1]
    told = nodes[2].stderr.text
    assert re.search(re.escape(FAULTY) + ".*left no result: local rank 0 exited with code 3", told), told
    assert all(each["WORLD_SIZE"] == "2" for node in nodes[:2] for each in environments(node, 1))


def test_an_external_probe_that_hangs_is_killed_with_all_that_it_has_started(probed, tmp_path):
    hangs = "setsid sleep 1000 & echo $! >> daemons; sleep 1000"
    nodes = [probed(command=hangs, env={"NETWORK_CHECK_TIMEOUT": "5"}) for _ in range(2)]
    assert codes(nodes) == [1, 1]
    assert "did not end within 5 s" in nodes[0].stderr.text + nodes[1].stderr.text
    daemons = [int(line) for line in (tmp_path / "daemons").read_text().split()]
    assert len(daemons) >= 2 and not any(map(alive, daemons))


def test_a_node_without_the_external_probe_of_the_others_is_told_so(probed, job):  # noqa: F811
    nodes = [probed(), job.node("--network-check", script_arguments=["0"], conf="last_call_timeout=30")]
    assert codes(nodes) == [1, 1]
    assert "--check-probe" in nodes[1].stderr.text


def test_a_signal_ends_a_job_whose_external_probes_run_and_the_probes(probed, tmp_path):
    nodes = [probed(command="setsid sleep 1000 & echo $! >> daemons; wait") for _ in range(2)]
    daemons = tmp_path / "daemons"
    wait_until(lambda: daemons.exists() and len(daemons.read_text().split()) >= 2, what="the external probes")
    nodes[0].send_signal(signal.SIGTERM)
    for node in nodes:
        node.wait()
    for daemon in map(int, daemons.read_text().split()):
        wait_until(lambda: not alive(daemon), what="the end of the external probes")


# --- What a host shows only while it is tested: here its disk for logs, which the probe fills.


@pytest.mark.parametrize("size, fill, severity, status", [(1030, 20, "warning", 0), (40, 30, "fatal", 1)])
def test_what_is_wrong_after_a_test_and_was_not_before_is_told_once(probed, tmp_path, full_disk,  # noqa: F811
                                                                    size, fill, severity, status):
    fills = f"[ -e $LOGS/big ] || head -c {fill}M /dev/zero > $LOGS/big; exec python3 {tmp_path}/probe.py"
    nodes = [probed(f"--log-dir={tmp_path}/of_first", nnodes="1:2"),
             probed(f"--log-dir={tmp_path}/logs", nnodes="1:2", command=fills, env={"LOGS": str(tmp_path / "logs")},
                    preexec_fn=full_disk(b"size=%dm" % size))]
    assert codes(nodes) == [0, status], nodes[1].stderr.text
    written, = (tmp_path / "of_first").glob("*/health.json")
    told = [[finding["what"] for finding in node["findings"] if finding["severity"] == severity and finding["where"] ==
             str(tmp_path / "logs")] for node in json.loads(written.read_text())["nodes"]]
    told = [each for each in told if each]
    assert len(told) == 1 and len(told[0]) == 1 and "the disk for logs is" in told[0][0], told
    assert re.search(rf"{severity}, node \d: the disk for logs is", nodes[0].stderr.text), nodes[0].stderr.text
    if status:
        assert re.search(re.escape(FAULTY) + "the disk for logs is full", nodes[1].stderr.text), nodes[1].stderr.text
