"""Nodes that meet by a claim in a file: whatever the network does between them, and between them and the file, no two
workers hold one rank at the same time."""
# ctest: long
# ctest: clock
# ctest: nodes

import os
import signal
import time

from cluster import LOSS_TIMEOUT, cluster, hosts_of  # noqa: F401 (cluster is a fixture)
from harness import wait_until
from networks import network  # noqa: F401 (a fixture)

# A coordinator that was cut off was once taken over after twice that: so long the others have to look on.
LOOKS_ON = 5 * LOSS_TIMEOUT


def test_a_host_that_is_cut_off_goes_on_alone_and_the_others_never_host_beside_it(cluster):
    cluster.start(3, "1:3", conf=f"rejoin_timeout={LOOKS_ON}")
    cluster.hosts[0].silence()
    cluster.round_of(cluster.nodes[:1])
    results = [node.wait() for node in cluster.nodes[1:]]
    assert [result.returncode for result in results] == [1, 1]
    for result in results:
        assert "lost the coordinator" in result.stderr, result
    cluster.assert_no_rank_lived_twice()
    assert hosts_of(cluster.nodes) == cluster.nodes[:1]
    cluster.end()


def test_of_two_halves_one_trains_while_they_are_cut_apart_and_both_when_they_are_not(cluster):
    cluster.start(4, "2:4")
    cluster.cut(cluster.hosts[:2], cluster.hosts[2:])
    cut_at = time.monotonic()
    cluster.round_of(cluster.nodes[:2])
    wait_until(lambda: time.monotonic() - cut_at > LOOKS_ON, what="the other half to have looked on")
    cluster.assert_no_rank_lived_twice()
    cluster.heal(cluster.hosts[:2], cluster.hosts[2:])
    cluster.round_of(cluster.nodes)
    cluster.assert_no_rank_lived_twice()
    assert hosts_of(cluster.nodes) == cluster.nodes[:1]
    cluster.end()


def test_a_host_that_does_not_reach_the_file_ends_its_workers_before_others_take_over_and_joins_them(cluster):
    cluster.start(3, "1:3")
    cluster.lose_file(cluster.hosts[0])
    cluster.nodes[0].wait_for_line("does not accept the renewal of this node's claim")
    cluster.round_of(cluster.nodes[1:])
    cluster.assert_no_rank_lived_twice()
    assert len(hosts_of(cluster.nodes[1:])) == 1
    cluster.reach_file(cluster.hosts[0])
    cluster.nodes[0].wait_for_line("this node does not host the coordinator any more")
    cluster.round_of(cluster.nodes)
    cluster.assert_no_rank_lived_twice()
    cluster.end()


def test_a_place_that_is_away_for_longer_than_a_lease_stops_training_until_it_is_back(cluster):
    cluster.start(2, "2:2")
    shared = cluster._shared
    away = shared.with_name("away")
    os.rename(shared, away)
    cluster.nodes[0].wait_for_line("does not accept the renewal of this node's claim: .*No such file or directory")
    for node in cluster.nodes:
        node.wait_for_line("killing the workers")
    os.rename(away, shared)
    cluster.round_of(cluster.nodes)
    cluster.assert_no_rank_lived_twice()
    cluster.end()


def test_a_host_that_sleeps_until_the_job_has_ended_does_not_train_it_again(cluster):
    cluster.start(3, "1:3", conf="rejoin_timeout=5")
    host, *others = cluster.nodes
    os.kill(host.launcher(), signal.SIGSTOP)
    cluster.round_of(others)
    cluster.succeed(others)
    os.kill(host.launcher(), signal.SIGCONT)
    assert host.wait().returncode == 1
    assert host.stdout.text.count("up ") == 1


def test_a_node_that_is_cut_off_while_it_stands_by_does_not_train_a_job_that_has_ended(cluster, network):
    cluster.start(2, "1:3", conf="scale_up=on-restart,last_call_timeout=4")
    nodes = list(cluster.nodes)
    host = network.add()
    standby = cluster.join(host)
    standby.wait_for_line("standing by")
    host.silence()
    standby.wait_for_line("connection_lost|silent|lost|gave up|given up")
    cluster.succeed(nodes)
    standby.wait_for_line("the job's coordinator has ended")
    assert standby.stdout.text.count("up ") == 0
    standby.send_signal(signal.SIGTERM)
    standby.wait()
