"""--network-check between hosts: slow, lossy and broken ways, and what happens while a check runs."""
# ctest: timeout=600
# ctest: release-only

import os
import re
import signal

import pytest

from harness import read_process, wait_until
from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import environments, job  # noqa: F401 (a fixture)
from test_network_check import FAULTY, codes
from test_nothing_left import kill_in_one_call


@pytest.fixture
def hosts(network, job):  # noqa: F811
    """hosts(n): so many; a node of the job on each by start(host, ...)."""
    def make(count):
        made = network(count)
        job.host = made[0].address
        return made

    def start(host, *arguments, nnodes, **options):
        return job.node("--network-check", *arguments, nnodes=nnodes, preexec_fn=host.enter, **options)

    def start_all(made, *arguments, **options):
        first = start(made[0], *arguments, **options)
        first.wait_for_line("this node hosts the coordinator")
        return [first, *(start(host, *arguments, **options) for host in made[1:])]

    make.start, make.start_all = start, start_all
    return make


def test_two_nodes_whose_exchange_fails_are_told_that_nobody_knows_which_it_is(hosts):
    nodes = hosts.start_all(hosts(2), nnodes="2", env={"MOCK_ERR_RANK": "0"})
    assert codes(nodes) == [1, 1]
    for node in nodes:
        assert "undetermined" in node.stderr.text, node.stderr.text


@pytest.mark.parametrize("bad", [1, 3])
def test_a_slow_link_makes_a_straggler_that_trains_or_is_left_out(hosts, bad):
    made = hosts(4)
    made[bad].slow_down(200)
    nodes = hosts.start_all(made, nnodes="3:4", script_arguments=["0"], conf="last_call_timeout=30")
    assert codes(nodes) == [0, 0, 0, 0]
    assert re.search(rf"node \d \({made[bad].name}\) is slow in the exchange", nodes[0].stderr.text), nodes[0].stderr.text


def test_a_straggler_is_left_out_where_that_is_asked_for(hosts):
    made = hosts(4)
    made[2].slow_down(200)
    nodes = hosts.start_all(made, "--exclude-straggler", nnodes="3:4", script_arguments=["0"],
                            conf="last_call_timeout=30")
    assert codes(nodes) == [0, 0, 1, 0]
    assert "The node is a straggler and exits: " in nodes[2].stderr.text


def test_a_bad_link_between_two_good_nodes_is_named_as_a_link_and_all_train(hosts):
    made = hosts(3)  # of three each meets each
    made[1].cut_off_from(made[2])
    nodes = hosts.start_all(made, nnodes="3", script_arguments=["0"])
    assert codes(nodes) == [0, 0, 0]
    told = nodes[0].stderr.text
    assert "3 nodes checked" in told and "Fault nodes are: []  and stragglers are: []." in told, told
    assert re.search(r"link between node \d \(node[12]\) and node \d \(node[12]\)", told), told


def test_an_all_gather_that_cannot_be_made_is_told_with_its_reason_and_all_train(hosts):
    made = hosts(3)
    made[1].cut_off_from(made[2])
    nodes = hosts.start_all(made, "--comm-perf-test", nnodes="3", script_arguments=["0"])
    assert codes(nodes) == [0, 0, 0]
    told = nodes[0].stderr.text
    failed = re.search(r"warning: the all-gather of 3 nodes over TCP failed \(node (\d): node (\d): (.*)\); nobody is left out", told)
    assert failed, told
    names = {re.search(rf"node {rank} \((\w+)\)", told).group(1) for rank in failed.groups()[:2]}
    assert names == {"node1", "node2"}, told
    assert "AllGather Perf" not in told


def test_a_node_whose_packets_get_lost_is_named(hosts):
    made = hosts(4)
    made[3].lose_packets()
    nodes = hosts.start_all(made, nnodes="3:4", script_arguments=["0"], conf="last_call_timeout=30")
    nodes[0].wait_for_line("4 nodes checked", timeout=100)
    told = nodes[0].stderr.text
    assert re.search(r"node \d \(node3\) is (faulty|slow in the exchange)", told), told
    assert codes(nodes)[:3] == [0, 0, 0]


# --- While a check runs: one that a slow link holds up. ----------------------------------------------


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


@pytest.fixture
def held_up(hosts):
    """Three nodes of 2:3, whose check takes long because of the last one."""
    made = hosts(3)
    made[2].slow_down(20)
    nodes = hosts.start_all(made, nnodes="2:3", script_arguments=["0"], conf="last_call_timeout=30",
                            env={"NETWORK_CHECK_TIMEOUT": "6"})
    for node in nodes:
        node.wait_for_line("round 0: 3 nodes")
    return nodes


def test_a_node_that_is_killed_in_the_check_is_lost_and_the_others_go_on(held_up):
    probe = probe_of(held_up[2])
    outer, launcher = held_up[2].pid, held_up[2].launcher()
    kill_in_one_call([outer, launcher])
    held_up[2].wait()
    assert codes(held_up[:2]) == [0, 0]
    wait_until(lambda: is_gone(probe), timeout=5, what="the end of the probe")
    assert "was lost" in held_up[0].stderr.text
    assert {each["WORLD_SIZE"] for node in held_up[:2] for each in environments(node, 1)} == {"2"}


def test_a_probe_that_hangs_is_killed_and_its_node_left_out(held_up):
    probe = probe_of(held_up[2])
    os.kill(probe.pid, signal.SIGSTOP)
    assert codes(held_up, timeout=100) == [0, 0, 1]
    wait_until(lambda: is_gone(probe), timeout=5, what="the end of the probe")
    assert FAULTY in held_up[2].stderr.text
    assert re.search("the check of this node failed: .* did not answer within", held_up[2].stderr.text)


def test_a_probe_that_dies_makes_its_node_unfit(held_up):
    os.kill(probe_of(held_up[2]).pid, signal.SIGKILL)
    assert codes(held_up, timeout=100) == [0, 0, 1]
    assert FAULTY in held_up[2].stderr.text
    # What was asked of it then, or afterwards.
    assert re.search("the check of this node failed: its check process (was killed by SIGKILL|is not there|takes no orders)",
                     held_up[2].stderr.text)


def test_a_signal_ends_a_job_that_is_being_checked_at_once(held_up):
    probes = [probe_of(node) for node in held_up]
    held_up[0].send_signal(signal.SIGTERM)
    for node in held_up:
        node.wait(20)
    wait_until(lambda: all(is_gone(probe) for probe in probes), timeout=5, what="the end of the probes")
