"""Nodes that meet by a file: whatever the network does between them, and between them and the file, votes decide who
leads, and no two workers hold one rank at the same time."""
# ctest: long
# ctest: clock
# ctest: nodes

import json
import os
import signal
import time

from cluster import LOSS_TIMEOUT, cluster, hosts_of  # noqa: F401 (cluster is a fixture)
from harness import wait_until
from networks import network  # noqa: F401 (a fixture)

# So long those without a quorum have to look on: longer than a lease, a search and an election last.
LOOKS_ON = 5 * LOSS_TIMEOUT


def entry_of(cluster):
    """What the file says of the job; None while it cannot be read."""
    try:
        return json.loads((cluster.shared / "meeting").read_text())["jobs"]["job"]
    except (OSError, ValueError, KeyError):
        return None


def leads(cluster, host):
    """Once the file names this host's process as the leader."""
    wait_until(lambda: (entry_of(cluster) or {}).get("leader", {}).get("address") == host.address,
               what=f"the file to name {host.name}", timeout=60)


def test_of_two_halves_the_leaders_trains_while_they_are_cut_apart_and_both_when_they_are_not(cluster):
    cluster.start(4, "2:4")
    cluster.cut(cluster.hosts[:2], cluster.hosts[2:])
    cut_at = time.monotonic()
    cluster.round_of(cluster.nodes[:2])
    wait_until(lambda: time.monotonic() - cut_at > LOOKS_ON, what="the other half to have looked on")
    cluster.assert_no_rank_lived_twice()
    cluster.heal(cluster.hosts[:2], cluster.hosts[2:])
    cluster.round_of(cluster.nodes)
    cluster.assert_no_rank_lived_twice()
    leads(cluster, cluster.hosts[0])
    cluster.end()


def test_three_of_four_elect_another_leader_while_the_first_is_cut_off_and_train_with_it_after_that(cluster):
    cluster.start(4, "1:4")
    leads(cluster, cluster.hosts[0])
    cluster.cut(cluster.hosts[:1], cluster.hosts[1:])
    cluster.round_of(cluster.nodes[1:])
    cluster.assert_no_rank_lived_twice()
    wait_until(lambda: entry_of(cluster)["leader"]["address"] in [host.address for host in cluster.hosts[1:]],
               what="the file to name the elected leader", timeout=60)
    cluster.heal(cluster.hosts[:1], cluster.hosts[1:])
    cluster.round_of(cluster.nodes)
    cluster.assert_no_rank_lived_twice()
    assert entry_of(cluster)["leader"]["address"] != cluster.hosts[0].address
    cluster.end()


def test_a_file_that_cannot_be_reached_stops_nobody_who_trains(cluster, network):
    cluster.start(2, "2:3", conf="scale_up=on-restart,last_call_timeout=4")
    away = cluster.shared.with_name("away")
    began = time.monotonic()
    os.rename(cluster.shared, away)
    cluster.nodes[0].wait_for_line("does not take this job's entry: .*No such file or directory")
    wait_until(lambda: time.monotonic() - began > 3 * LOSS_TIMEOUT, what="leases to have been over")
    os.rename(away, cluster.shared)
    cluster.nodes[0].wait_for_line("takes this job's entry again")
    newcomer = cluster.join(network.add())
    newcomer.wait_for_line("standing by")
    nodes = cluster.nodes[:2]
    cluster.succeed(cluster.nodes)
    for node in nodes:
        assert node.stdout.text.count("up ") == 1, node.stdout.text
    cluster.assert_no_rank_lived_twice()


def test_a_newcomer_finds_the_elected_leader_by_the_file(cluster, network):
    cluster.start(3, "2:3")
    lost, *others = cluster.nodes
    for pid in (lost.launcher(), lost.pid):
        os.kill(pid, signal.SIGKILL)
    lost.wait()
    cluster.round_of(others)
    cluster.nodes.remove(lost)
    cluster.join(network.add())
    cluster.round_of(cluster.nodes)
    cluster.assert_no_rank_lived_twice()
    assert not hosts_of(cluster.nodes[-1:])
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
    assert entry_of(cluster) is None


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
