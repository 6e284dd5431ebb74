"""Nodes that meet by a claim, in a file or a TCPStore: whatever the network does between them, and between them and
the place, no two workers hold one rank at the same time."""
# ctest: long

import os
import pathlib
import re
import signal
import time

import pytest

from harness import wait_until
from networks import network  # noqa: F401 (a fixture)
from test_node_lease import STAMPS, Worker

LOSS_TIMEOUT = 3  # seconds, of which a lease is three fifths, and a claim renewed each fifth
# A coordinator that was cut off was once taken over after twice that: so long the others have to look on.
LOOKS_ON = 5 * LOSS_TIMEOUT


class Cluster:
    """Nodes of one job on hosts of their own, which meet in a file that all hosts reach, or in a TCPStore that runs on
    one more host."""

    def __init__(self, elastic_run, static_c, network, tmp_path):
        self._run = elastic_run
        self._network = network
        self._program = static_c(STAMPS.replace("for (;;) {", 'for (;;) {\n    if (access("done", F_OK) == 0) return 0;'))
        self._done = pathlib.Path(elastic_run.directory) / "done"
        self._shared = tmp_path / "shared"
        self._shared.mkdir()
        self.nodes = []

    def start(self, count, nnodes, kind="file", conf=""):
        self.hosts = list(self._network(count))
        endpoint = str(self._shared / "meeting")
        if kind == "tcpstore":
            self.store_host = self._network.add()
            store = self._run.start("--store-only", "--port=0", preexec_fn=self.store_host.enter)
            endpoint = f"{self.store_host.address}:" + store.wait_for_line(r"listens on port (\d+)").group(1)
        conf = ",".join(filter(None, [f"store_type={kind},loss_timeout={LOSS_TIMEOUT},last_call_timeout=60", conf]))
        self._command = [f"--nnodes={nnodes}", "--nproc-per-node=1", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}",
                         "--rdzv-id=job", f"--rdzv-conf={conf}", "--log-level=debug", "--no-python", self._program]
        for host in self.hosts:
            self.join(host)
            # The first hosts the coordinator.
            if len(self.nodes) == 1:
                self.nodes[0].wait_for_line("this node hosts the coordinator")
        self.round_of(self.nodes)

    def join(self, host):
        self.nodes.append(self._run.start(*self._command, preexec_fn=host.enter))
        return self.nodes[-1]

    def round_of(self, nodes):
        """Waits for the workers of a round of these nodes and no others."""
        for node in nodes:
            while Worker(node, pathlib.Path(self._run.directory)).world != len(nodes):
                pass

    def stamps(self):
        """Of all workers that there ever were: rank, when each began, and when it was last alive."""
        directory = pathlib.Path(self._run.directory)
        for node in self.nodes:
            for pid, rank in re.findall(r"^up (\d+) rank (\d+) ", node.stdout.text, re.MULTILINE):
                worker = Worker.__new__(Worker)
                worker._file = directory / f"stamps.{pid}"
                yield int(rank), worker.began, worker.was_alive

    def assert_no_rank_lived_twice(self):
        lives = sorted(self.stamps())
        for (rank, began, ended), (next_rank, next_began, next_ended) in zip(lives, lives[1:]):
            assert rank != next_rank or ended < next_began, lives

    def cut(self, ones, others):
        for one in ones:
            for other in others:
                one.cut_off_from(other)
                other.cut_off_from(one)

    def heal(self, ones, others):
        for one in ones:
            for other in others:
                one.reach_again(other)
                other.reach_again(one)

    def succeed(self, nodes):
        """The workers of these nodes are done; those that are started after that are not."""
        self._done.touch()
        assert [node.wait().returncode for node in nodes] == [0] * len(nodes)
        self._done.unlink()

    def end(self):
        for node in self.nodes:
            if node.popen.poll() is None:
                node.send_signal(signal.SIGTERM)
        return [node.wait() for node in self.nodes]


@pytest.fixture
def cluster(elastic_run, static_c, network, tmp_path):  # noqa: F811
    return Cluster(elastic_run, static_c, network, tmp_path)


def hosts_of(nodes):
    return [node for node in nodes if "this node hosts the coordinator" in node.stderr.text]


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
    wait_until(lambda: time.monotonic() - cut_at > LOOKS_ON, what="the other half to have looked on", timeout=60)
    cluster.assert_no_rank_lived_twice()
    cluster.heal(cluster.hosts[:2], cluster.hosts[2:])
    cluster.round_of(cluster.nodes)
    cluster.assert_no_rank_lived_twice()
    assert hosts_of(cluster.nodes) == cluster.nodes[:1]
    cluster.end()


def test_a_host_that_is_cut_off_from_the_place_ends_its_workers_before_others_take_over_and_joins_them(cluster):
    cluster.start(3, "1:3", kind="tcpstore")
    cluster.cut(cluster.hosts[:1], [cluster.store_host])
    cluster.nodes[0].wait_for_line("does not accept the renewal of this node's claim")
    cluster.round_of(cluster.nodes[1:])
    cluster.assert_no_rank_lived_twice()
    assert len(hosts_of(cluster.nodes[1:])) == 1
    cluster.heal(cluster.hosts[:1], [cluster.store_host])
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
    assert host.wait(timeout=60).returncode == 1
    assert host.stdout.text.count("up ") == 1


def test_a_node_that_is_cut_off_while_it_stands_by_does_not_train_a_job_that_has_ended(cluster, network):  # noqa: F811
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
