"""--network-check between hosts: slow, lossy and broken ways, and what happens while a check runs."""
# ctest: long
# ctest: computes
# ctest: release-only
# ctest: clock

import json
import os
import re
import signal

import pytest

from harness import read_process, wait_until
from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import WORKER, environments, job  # noqa: F401 (a fixture)
from test_network_check import FAULTY, codes
from test_nothing_left import kill_in_one_call
from workers import LEAVE


@pytest.fixture
def hosts(network, job):  # noqa: F811
    """hosts(n): so many; a node of the job on each by start(host, ...)."""
    def make(count):
        made = network(count)
        job.host = made[0].address
        return made

    def start(host, *arguments, nnodes, **options):
        return job.node("--network-check", *arguments, nnodes=nnodes, preexec_fn=host.enter, **options)

    def start_all(made, *arguments, of_first=(), **options):
        first = start(made[0], *arguments, *of_first, **options)
        first.wait_for_line("this node hosts the coordinator")
        return [first, *(start(host, *arguments, **options) for host in made[1:])]

    make.start, make.start_all = start, start_all
    return make


def test_two_nodes_whose_exchange_fails_are_told_that_nobody_knows_which_it_is(hosts):
    nodes = hosts.start_all(hosts(2), nnodes="2", env={"MOCK_ERR_RANK": "0"})
    assert codes(nodes) == [1, 1]
    for node in nodes:
        assert "undetermined" in node.stderr.text, node.stderr.text


def four_hosts(hosts, slow=None):
    """With links whose speed is given, and far below what a busy machine makes of one without; one may be slow."""
    made = hosts(4)
    for index, host in enumerate(made):
        host.slow_down(40 if index == slow else 300)
    return made


@pytest.mark.timing  # kind G: rates of links
def test_a_slow_link_makes_a_straggler_that_trains_or_is_left_out(hosts):
    made = four_hosts(hosts, slow=3)
    nodes = hosts.start_all(made, nnodes="3:4", script_arguments=["0"], conf="last_call_timeout=30")
    assert codes(nodes) == [0, 0, 0, 0]
    assert re.search(rf"node \d \({made[3].name}\) is slow in the exchange", nodes[0].stderr.text), nodes[0].stderr.text


@pytest.mark.timing  # kind G: rates of links
def test_a_straggler_is_left_out_where_that_is_asked_for(hosts):
    made = four_hosts(hosts, slow=2)
    nodes = hosts.start_all(made, "--exclude-straggler", nnodes="3:4", script_arguments=["0"],
                            conf="last_call_timeout=30")
    assert codes(nodes) == [0, 0, 1, 0]
    assert "The node is a straggler and exits: " in nodes[2].stderr.text


def test_a_bad_link_between_two_good_nodes_is_named_as_a_link_and_all_train(hosts):
    made = four_hosts(hosts)
    made[2].cut_off_from(made[3])  # neighbours, which meet first
    nodes = hosts.start_all(made, nnodes="4", script_arguments=["0"])
    assert codes(nodes) == [0, 0, 0, 0]
    told = nodes[0].stderr.text
    assert "4 nodes checked" in told and "Fault nodes are: [] " in told, told
    assert "the link between node 2 (node2) and node 3 (node3) is bad" in told, told


def test_an_all_gather_that_cannot_be_made_is_told_with_its_reason_and_all_train(hosts):
    made = hosts(3)
    made[1].cut_off_from(made[2])
    nodes = hosts.start_all(made, "--comm-perf-test", nnodes="3", script_arguments=["0"])
    assert codes(nodes) == [0, 0, 0]
    told = nodes[0].stderr.text
    failed = re.search(r"warning: the all-gather of 3 nodes over TCP failed \(node (\d): node (\d): (.*)\); no node is excluded because of it", told)
    assert failed, told
    names = {re.search(rf"node {rank} \((\w+)\)", told).group(1) for rank in failed.groups()[:2]}
    assert names == {"node1", "node2"}, told
    assert "AllGather Perf" not in told


def test_a_node_whose_packets_get_lost_is_named(hosts):
    made = hosts(4)
    made[3].lose_packets()
    nodes = hosts.start_all(made, nnodes="3:4", script_arguments=["0"], conf="last_call_timeout=30",
                            env={"NETWORK_CHECK_TIMEOUT": "10"})
    nodes[0].wait_for_line("4 nodes checked", timeout=100)
    told = nodes[0].stderr.text
    assert re.search(r"node \d \(node3\) is (faulty|slow in the exchange)", told), told
    assert codes(nodes)[:3] == [0, 0, 0]


ALL_REDUCE = """
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
ones = torch.ones(1_000_000)
dist.all_reduce(ones)
dist.barrier()
os.write(1, b"sum %d\\n" % ones[-1])
""" + LEAVE


def test_pytorch_trains_without_a_host_whose_network_is_bad_even_if_it_has_the_coordinator(hosts, script):
    made = hosts(4)
    made[0].drop_large_packets()
    # The hosts have names that nobody resolves: gloo is told where it is.
    nodes = hosts.start_all(made, nnodes="3:4", script=script("all_reduce.py", ALL_REDUCE), conf="last_call_timeout=30",
                            env={"NETWORK_CHECK_TIMEOUT": "8", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"})
    assert codes(nodes) == [1, 0, 0, 0]
    assert FAULTY + "its exchange failed with nodes " in nodes[0].stderr.text
    assert "node 0 (node0) is faulty" in nodes[0].stderr.text, nodes[0].stderr.text
    assert [node.stdout.text for node in nodes] == ["", "sum 3\n", "sum 3\n", "sum 3\n"]


# --- While a check runs: one that waits for what a bad link keeps back. ------------------------------


# A worker that waits to be ended, unless it is one of five.
ENDS_AS_FIVE = WORKER.replace("len(sys.argv) > 1", "found['WORLD_SIZE'] == '5'").replace("sys.argv[1]", "0")


def probe_of(node):
    """The process that checks this node's host."""
    found = []

    def is_there():
        found[:] = [each for each in node.processes()
                    if "--health-probe" in each.command and each.parent == node.launcher()]
        return found

    wait_until(is_there, timeout=30, what="a probe")
    return found[0]


def is_gone(process):
    now = read_process(process.pid)
    return now is None or now.start != process.start or now.state in "ZX"


def recorded(recording, what):
    """How often it stands in the recording of the coordinator."""
    return recording.read_text().count(what)


@pytest.fixture
def held_up(hosts, tmp_path):
    """held_up(nnodes=...): four nodes, whose check does not end before `release()`, or a test of the last one's link has
    taken too long. `recording`: that of their coordinator."""
    made = hosts(4)

    # A test between two nodes that are well must not take that long, however busy the machine is: a pair has taken 4 s.
    def start(test_s=8, **options):
        made[3].drop_large_packets()
        nodes = hosts.start_all(made, of_first=[f"--record={start.recording}"],
                                env={"NETWORK_CHECK_TIMEOUT": str(test_s)}, **options)
        # Each has looked at itself, and is told whom to meet.
        wait_until(lambda: recorded(start.recording, '"check":"orders"') == 2, timeout=30, what="the first tests")
        return nodes

    start.recording = tmp_path / "recording"
    start.release = made[3].let_all_through
    return start


ALL_OR_ONE_LESS = {"nnodes": "3:4", "conf": "last_call_timeout=30", "script_arguments": ["0"]}


def test_a_node_that_is_killed_in_the_check_is_lost_and_the_others_go_on(held_up):
    nodes = held_up(**ALL_OR_ONE_LESS)
    probe = probe_of(nodes[3])
    kill_in_one_call([nodes[3].pid, nodes[3].launcher()])
    nodes[3].wait()
    assert codes(nodes[:3]) == [0, 0, 0]
    wait_until(lambda: is_gone(probe), what="the end of the probe")
    assert "was lost" in nodes[0].stderr.text
    assert {each["WORLD_SIZE"] for node in nodes[:3] for each in environments(node, 1)} == {"3"}


def test_a_probe_that_hangs_is_killed_and_its_node_left_out(held_up):
    nodes = held_up(**ALL_OR_ONE_LESS)
    probe = probe_of(nodes[3])
    os.kill(probe.pid, signal.SIGSTOP)
    held_up.release()
    assert codes(nodes, timeout=100) == [0, 0, 0, 1]
    wait_until(lambda: is_gone(probe), what="the end of the probe")
    assert FAULTY in nodes[3].stderr.text
    assert re.search("the check of this node failed: .* did not answer within", nodes[3].stderr.text)


def test_a_probe_that_dies_makes_its_node_unfit(held_up):
    nodes = held_up(**ALL_OR_ONE_LESS)
    os.kill(probe_of(nodes[3]).pid, signal.SIGKILL)
    held_up.release()
    assert codes(nodes, timeout=100) == [0, 0, 0, 1]
    assert FAULTY in nodes[3].stderr.text
    # What was asked of it then, or afterwards.
    assert re.search("the check of this node failed: its check process (was killed by SIGKILL|is not running|does not accept orders)",
                     nodes[3].stderr.text)


def test_a_node_that_comes_during_a_check_is_checked_and_taken_in_afterwards(held_up, hosts, network, script):  # noqa: F811
    options = {"nnodes": "4:5", "script": script("ends_as_five.py", ENDS_AS_FIVE)}
    nodes = held_up(test_s=30, **options)
    nodes.append(hosts.start(network.add(), **options))
    wait_until(lambda: recorded(held_up.recording, '"message":"node-joins"') == 5, timeout=30, what="the fifth node")
    assert recorded(held_up.recording, '"check":"unfit"') == 0, "the check is over"
    held_up.release()
    assert codes(nodes) == [0, 0, 0, 0, 0]
    assert re.findall(r"(\d) nodes checked in", nodes[0].stderr.text) == ["4", "5"]
    only, = re.findall(r"^env (.*)", nodes[4].stdout.text, re.MULTILINE)
    assert json.loads(only)["WORLD_SIZE"] == "5"


def test_a_signal_ends_a_job_that_is_being_checked_at_once(held_up):
    nodes = held_up(**ALL_OR_ONE_LESS)
    probes = [probe_of(node) for node in nodes]
    nodes[0].send_signal(signal.SIGTERM)
    for node in nodes:
        node.wait(20)
    wait_until(lambda: all(is_gone(probe) for probe in probes), what="the end of the probes")
