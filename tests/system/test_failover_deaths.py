"""With failover=majority the coordinator's launcher, node or host is lost, or its network is cut in any way: who may go
on does, and no rank lives twice, nor two worlds, whatever happens."""
# ctest: long
# ctest: gate-cases
# ctest: clock
# ctest: nodes

import os
import re
import signal
import time

import pytest

from cluster import cluster  # noqa: F401 (a fixture)
from harness import wait_until
from networks import network  # noqa: F401 (a fixture)
from test_nothing_left import kill_in_one_call

LOSS_TIMEOUT = 5  # seconds, of which the lease is three fifths: nobody loses it because the machine is busy
# No test waits for the end of these times.
CONF = "failover=majority,join_timeout=100,rejoin_timeout=100"
STANDS = "this node hosts the coordinator at port .*: the one before was lost"
ELECTED = "it acts from now on"


def begin(cluster, count, kind="endpoint", conf=CONF):
    cluster.start(count, f"2:{count}", kind, conf, loss_timeout=LOSS_TIMEOUT)
    return cluster.nodes


def everything_of(node):
    launcher = node.launcher()
    # Whoever is stopped reaps nobody: the inner ones are killed first.
    return [*(each.pid for each in node.processes() if each.parent == launcher), launcher, node.pid]


def lose_launcher(host, node):
    os.kill(node.launcher(), signal.SIGKILL)


def lose_guardian(host, node):
    os.kill(node.pid, signal.SIGKILL)


def lose_node(host, *nodes):
    kill_in_one_call([pid for node in nodes for pid in everything_of(node)])


def lose_host(host, node):
    """As by a power cut: nobody is told."""
    host.silence()
    kill_in_one_call(everything_of(node))


@pytest.mark.parametrize("kind, lose", [
    ("endpoint", lose_launcher), ("endpoint", lose_guardian),
    pytest.param("endpoint", lose_node, marks=pytest.mark.gate),
    pytest.param("endpoint", lose_host, marks=pytest.mark.gate),
    ("file", lose_launcher), ("file", lose_host)])
def test_the_others_go_on_whatever_is_lost_of_the_coordinators_node(cluster, kind, lose):
    nodes = begin(cluster, 4, kind)
    lose(cluster.hosts[0], nodes[0])
    cluster.round_of(nodes[1:])
    cluster.assert_no_rank_lived_twice()
    cluster.end()


def mute(hosts):
    """What the coordinator's host sends gets nowhere."""
    return [(hosts[0], other) for other in hosts[1:]]


def deaf(hosts):
    """What is sent to the coordinator's host gets nowhere."""
    return [(other, hosts[0]) for other in hosts[1:]]


def both(ones, others):
    return [pair for one in ones for other in others for pair in ((one, other), (other, one))]


CUTS = {  # who does not reach whom, and which nodes go on
    "2|2": (lambda hosts: both(hosts[:2], hosts[2:]), [0, 1]),
    "1|3": (lambda hosts: both(hosts[:1], hosts[1:]), [1, 2, 3]),
    "3|1": (lambda hosts: both(hosts[:3], hosts[3:]), [0, 1, 2]),
    "mute": (mute, [1, 2, 3]),
    "deaf": (deaf, [1, 2, 3]),
}


@pytest.mark.parametrize("how", [pytest.param(how, marks=pytest.mark.gate) if how == "1|3" else how for how in CUTS])
def test_one_side_goes_on_while_a_job_of_four_nodes_is_cut_and_all_of_them_when_it_is_not(cluster, how):
    nodes = begin(cluster, 4)
    cut, going_on = CUTS[how]
    pairs = cut(cluster.hosts)
    before = {life.fence for life in cluster.assert_no_rank_lived_twice()}
    for one, other in pairs:
        one.cut_off_from(other)
    cut_at = time.monotonic()
    side = [nodes[index] for index in going_on]
    cluster.round_of(side)
    # All promises are over by then, and a candidate of the other side has stood in vain.
    wait_until(lambda: time.monotonic() > cut_at + 2 * LOSS_TIMEOUT, what="the other side to have looked on")
    since = [life for life in cluster.assert_no_rank_lived_twice() if life.fence not in before]
    # They were of one side, however many rounds it took to have all of its nodes.
    assert {life.host for life in since} == {cluster.hosts[index].name for index in going_on}
    for one, other in pairs:
        one.reach_again(other)
    cluster.round_of(nodes)
    cluster.assert_no_rank_lived_twice()
    cluster.end()


def test_a_coordinators_host_whose_cable_was_pulled_is_a_node_when_it_is_in_again(cluster):
    nodes = begin(cluster, 4, "file")
    cluster.hosts[0].silence()
    cluster.lose_file(cluster.hosts[0])
    cluster.round_of(nodes[1:])
    cluster.hosts[0].restore()
    cluster.reach_file(cluster.hosts[0])
    cluster.round_of(nodes)
    cluster.assert_no_rank_lived_twice()
    cluster.end()


def first_that_says(what, nodes):
    """Mostly the first of the next leaders; where that is slow, another one may be before it."""
    return wait_until(lambda: next((node for node in nodes if re.search(what, node.stderr.text)), None), what=what)


@pytest.mark.parametrize("when, lose", [(STANDS, lose_host), (ELECTED, lose_node)])
def test_the_others_go_on_when_the_next_coordinator_is_lost_as_soon_as_it(cluster, when, lose):
    nodes = begin(cluster, 5)
    lose(cluster.hosts[0], nodes[0])
    second = first_that_says(when, nodes[1:])
    lose(cluster.hosts[nodes.index(second)], second)
    cluster.round_of([node for node in nodes[1:] if node is not second])
    cluster.assert_no_rank_lived_twice()
    cluster.end()


def test_all_nodes_end_that_get_sigterm_at_once_while_the_coordinator_is_handed_over_from_one_to_the_next(cluster):
    nodes = begin(cluster, 4)
    lose_node(None, nodes[0])
    cluster.round_of(nodes[1:])
    cluster.end()
    for node in nodes[1:]:
        assert "SIGTERM" in node.stderr.text


def test_the_others_go_on_when_the_coordinator_and_its_first_successor_are_killed_at_once(cluster):
    nodes = begin(cluster, 5)
    lose_node(None, *nodes[:2])
    cluster.round_of(nodes[2:])
    cluster.assert_no_rank_lived_twice()
    cluster.end()


def test_the_others_go_on_when_the_next_coordinator_is_killed_as_soon_as_it_has_claimed_the_job(cluster):
    nodes = begin(cluster, 4, "file")
    lose_node(None, nodes[0])
    left = nodes[1:]
    second = first_that_says("this node hosts the coordinator", left)
    lose_node(None, second)
    cluster.round_of([node for node in left if node is not second])
    cluster.assert_no_rank_lived_twice()
    cluster.end()
