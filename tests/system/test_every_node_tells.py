"""What each node of a job tells its user: who is waited for, why the job failed, who was not let in."""
# ctest: gate
# ctest: nodes

import json
import re
import signal
import socket
import sys

import pytest

from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import environments, job  # noqa: F401 (a fixture)

# Rank 1 fails with a traceback, and is the only one that does.
FAILS = """
import os, sys, time
print("from rank", os.environ["RANK"], file=sys.stderr, flush=True)
if os.environ["RANK"] == "1":
    time.sleep(float(os.environ.get("FAILS_AFTER", "0")))
    raise ValueError("the data is " + "spoilt")
time.sleep(600)
"""
RECORDED = """
import os, time
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("the data is " + "spoilt")
    time.sleep(600)

main()
"""


def failure_json(result):
    place = re.search(r"log directory: (.*)", result.stderr).group(1)
    with open(f"{place}/failure.json", encoding="utf-8") as file:
        return json.load(file)


@pytest.mark.parametrize("text", [FAILS, RECORDED], ids=["stderr", "error file"])
def test_the_node_that_failed_tells_the_whole_and_the_others_tell_in_a_line_which_one_that_was(network, job, script, text):
    worker = script("fails.py", text)
    hosts = network(3)
    job.host = hosts[0].address
    nodes = [job.node(nnodes="3", script=worker, preexec_fn=host.enter) for host in hosts]
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [1, 1, 1], results
    for node, result in enumerate(results):
        last = result.stderr[result.stderr.index("elastic-run: error: the job failed"):]
        assert "first failure: rank 1 (node 1, local rank 0" in last and "node1" in last, result
        assert "ValueError: the data is spoilt" in last, result
        assert ("raise ValueError" in result.stderr) == ("Root Cause" in result.stderr) == (node == 1), result
        assert node == 1 or len(last.splitlines()) == 1, result
        first = failure_json(result)["failures"][0]
        assert (first["rank"], first["node_rank"], first["host"]) == (1, 1, "node1"), first
        assert "spoilt" in json.dumps(first), first


def test_after_a_restart_it_is_the_last_rounds_failure_that_all_tell(job, script):
    worker = script("fails.py", FAILS)
    nodes = job.nodes(2, "--max-restarts=1", script=worker)
    results = [node.wait() for node in nodes]
    for result in results:
        assert result.returncode == 1 and result.stderr.count("ValueError: the data is spoilt") >= 1, result
        assert "it ran on another node" not in result.stderr, result


def test_why_nothing_was_kept_of_its_stderr_is_told_by_its_node_and_stands_in_every_nodes_report(network, job, script):
    worker = script("fails.py", FAILS)
    hosts = network(2)
    job.host = hosts[0].address
    nodes = [job.node("--stderr-tail=never", nnodes="2", script=worker, preexec_fn=host.enter) for host in hosts]
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [1, 1], results
    for node, result in enumerate(results):
        assert ("stderr was not kept: --stderr-tail=never" in result.stderr) == (node == 1), result
        assert "--stderr-tail=never" in json.dumps(failure_json(result)["failures"][0]), result


def test_who_waits_is_told_who_is_here_and_what_is_waited_for(job):
    first = job.node(nnodes="3:4", conf="join_timeout=300")
    first.wait_for_line("this node hosts the coordinator")
    first.wait_for_line(r"^elastic-run: 1 node present, 3 needed")
    second = job.node(nnodes="3:4", conf="join_timeout=300")
    second.wait_for_line(r"2 nodes present, 3 needed")
    for node in (second, first):
        node.send_signal(signal.SIGTERM)
        node.wait()


# Tells where the workers' store is, and stays.
TELLS = """
import os, time
os.write(1, f"store {os.environ['MASTER_ADDR']} {os.environ['MASTER_PORT']}\\n".encode())
time.sleep(600)
"""
VALIDATE = bytes([0]) + (0x3C85F7CE).to_bytes(4, "little")
# PING with a nonce: a store that serves answers by the nonce.
ASKS = f"""
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as connection:
    try:
        connection.sendall({VALIDATE!r} + bytes([13]) + (4711).to_bytes(4, "little"))
        print("answer", connection.recv(4).hex(), flush=True)
    except ConnectionError:
        print("answer ", flush=True)
"""


def ask(elastic_run, host, address, port):
    """What somebody on that host gets from the store."""
    running = elastic_run.start(program=[sys.executable, "-c", ASKS, address, port], preexec_fn=host.enter)
    answer = running.wait_for_line(r"^answer (.*)", stream="stdout").group(1)
    running.wait()
    return answer


@pytest.mark.parametrize("admits", ["nodes", "all"])
def test_the_store_admits_the_nodes_of_its_round_and_tells_of_others(network, job, script, admits):
    worker = script("tells.py", TELLS)
    hosts = network(3)
    job.host = hosts[0].address
    hosts[1].ip("addr", "add", "10.77.0.101/24", "dev", "eth0")
    conf = "" if admits == "nodes" else "store_admits=all"
    nodes = [job.node(nnodes="2", script=worker, conf=conf, preexec_fn=host.enter) for host in hosts[:2]]
    address, port = nodes[0].wait_for_line(r"^store (\S+) (\d+)", stream="stdout").groups()
    nonce = (4711).to_bytes(4, "little").hex()
    assert ask(job.elastic_run, hosts[0], address, port) == nonce
    assert ask(job.elastic_run, hosts[1], address, port) == nonce
    stranger = ask(job.elastic_run, hosts[2], address, port)
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    results = [node.wait() for node in nodes]
    told = results[0].stderr + results[1].stderr
    if admits == "all":
        assert stranger == nonce and "no node of this round" not in told, results
        return
    assert stranger == "", results
    assert re.search(r"worker store on port \d+ closed the connection from 10\.77\.0\.3: no node of this round has "
                     r"this address; .*store_admits=all", told), results


def test_another_address_of_a_node_is_one_of_the_round(network, job, script):
    worker = script("tells.py", TELLS)
    hosts = network(2)
    job.host = hosts[0].address
    hosts[1].ip("addr", "add", "10.77.0.101/32", "dev", "eth0")
    nodes = [job.node(nnodes="2", script=worker, preexec_fn=host.enter) for host in hosts]
    address, port = nodes[0].wait_for_line(r"^store (\S+) (\d+)", stream="stdout").groups()
    asks = ASKS.replace("timeout=60)", 'timeout=60, source_address=("10.77.0.101", 0))')
    hosts[0].ip("route", "add", "10.77.0.101/32", "dev", "eth0")
    running = job.elastic_run.start(program=[sys.executable, "-c", asks, address, port], preexec_fn=hosts[1].enter)
    assert running.wait_for_line(r"^answer (.*)", stream="stdout").group(1) == (4711).to_bytes(4, "little").hex()
    running.wait()
    for node in nodes:
        node.send_signal(signal.SIGTERM)
        node.wait()
