"""No worker of a node that the others have given up lives when theirs begin anew, whatever has stopped the node."""
# ctest: gate-cases
# ctest: clock
# ctest: nodes

import os
import pathlib
import signal
import time

import pytest

import lives
from harness import alive, read_process, wait_until
from lives import STAMPS, Worker
from test_many_nodes import job  # noqa: F401 (a fixture)
from test_nothing_left import freezer  # noqa: F401 (a fixture)

LOSS_TIMEOUT = 5  # seconds, of which the lease is three fifths: nobody loses it because the machine is busy


def boottime_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Cluster:
    """Three nodes of a job of two or three, one worker each."""

    def __init__(self, job, static_c, loss_timeout=LOSS_TIMEOUT):
        self._directory = pathlib.Path(job.elastic_run.directory)
        self._program = static_c(STAMPS)
        options = {"nnodes": "2:3", "script": self._program, "conf": f"loss_timeout={loss_timeout}"}
        # As a shell starts a job: only a process group with a parent outside can be stopped by SIGTSTP.
        options |= {"start_new_session": False, "process_group": 0}
        self.nodes = job.nodes(3, "--no-python", "--max-restarts=0", **options)
        self.workers = self.next_round(3)
        self.victim = self.nodes[1]  # the first hosts the coordinator
        self.launcher = self.victim.launcher()
        self.left = [self.nodes[0], self.nodes[2]]

    def worker_of(self, node):
        return Worker(node, self._directory)

    def next_round(self, world):
        """The workers of the next round of all nodes, or of those that are left, and no others."""
        nodes = self.nodes if world == 3 else self.left
        workers = []
        for node in nodes:
            while (worker := self.worker_of(node)).world != world:
                pass
            workers.append(worker)
        assert [each.restart for each in workers] == [0] * world
        assert sorted(each.rank for each in workers) == list(range(world))
        return workers

    def assert_no_rank_lived_twice(self):
        """Nor two worlds, in any round until now."""
        lives.check(self._directory)

    def end(self):
        for node in reversed(self.nodes):  # the coordinator last
            node.send_signal(signal.SIGTERM)
        for node in self.nodes:
            node.wait()


@pytest.fixture
def cluster(job, static_c):
    return Cluster(job, static_c)


def stop(pid, number=signal.SIGSTOP):
    os.kill(pid, number)
    wait_until(lambda: read_process(pid).state == "T", what="a process to stop")


def assert_gone_before(old, new):
    """Of the old worker nothing was left when the first of the new ones began."""
    assert old.was_alive < min(each.began for each in new)


@pytest.mark.gate
def test_a_paused_agents_worker_is_dead_before_the_others_begin_and_it_comes_back(cluster):
    stop(cluster.launcher)
    old = cluster.workers[1]
    new = cluster.next_round(2)
    assert_gone_before(old, new)
    assert not alive(old.pid)
    assert read_process(cluster.launcher).state == "T"
    cluster.victim.wait_for_line("the lease expired while the launcher .* was not running")
    os.kill(cluster.launcher, signal.SIGCONT)
    back = cluster.next_round(3)
    assert_gone_before(old, back)
    cluster.assert_no_rank_lived_twice()
    cluster.end()


def test_a_job_of_the_shell_that_is_paused_and_continued_late_lets_no_worker_go_on(cluster):
    """Ctrl-Z stops the workers, too; fg may come when their ranks are others' already."""
    old = cluster.workers[1]
    cluster.victim.send_signal(signal.SIGTSTP)
    wait_until(lambda: read_process(cluster.victim.pid).state == "T", what="elastic-run to stop")
    new = cluster.next_round(2)
    assert_gone_before(old, new)
    cluster.victim.send_signal(signal.SIGCONT)
    back = cluster.next_round(3)
    assert_gone_before(old, new + back)
    assert not alive(old.pid)
    cluster.end()


def test_one_that_is_paused_and_continued_in_time_goes_on_as_if_nothing_had_been(job, static_c):
    loss_timeout = 20  # a lease of 12 s, in which it is stopped and continued
    cluster = Cluster(job, static_c, loss_timeout)
    old = cluster.workers[1]
    cluster.victim.send_signal(signal.SIGTSTP)
    wait_until(lambda: read_process(cluster.victim.pid).state == "T", what="elastic-run to stop")
    cluster.victim.send_signal(signal.SIGCONT)
    seen = boottime_ns()
    wait_until(lambda: old.was_alive > seen + 1_000_000_000 * (loss_timeout + 1), what="the worker to work on",
               timeout=60)
    assert all(alive(each.pid) for each in cluster.workers)
    cluster.end()


def test_a_machine_that_was_suspended_past_the_lease_ends_its_worker_when_it_wakes(job, static_c, freezer):
    """Agent, guardian and worker in a freezer, as a virtual machine that was paused; nothing of it ran meanwhile."""
    loss_timeout = 15  # a lease of 9 s: what had any of it left would run for longer than a busy machine takes to wake
    cluster = Cluster(job, static_c, loss_timeout)
    old = cluster.workers[1]
    for pid in (cluster.victim.pid, cluster.launcher, old.pid):
        (freezer / "cgroup.procs").write_text(str(pid))
    (freezer / "freezer.state").write_text("FROZEN")
    wait_until(lambda: (freezer / "freezer.state").read_text().strip() == "FROZEN", what="it to freeze")
    new = cluster.next_round(2)
    assert_gone_before(old, new)
    thawed = boottime_ns()
    (freezer / "freezer.state").write_text("THAWED")
    wait_until(lambda: not alive(old.pid), what="the worker to end")
    # Whoever of them is woken first runs first: what cannot be had is that it never runs at all.
    assert old.was_alive - thawed < 4_000_000_000
    back = cluster.next_round(3)
    assert_gone_before(old, back)
    cluster.end()


def test_an_agent_that_is_killed_leaves_no_worker_to_the_next_round(job, static_c):  # noqa: F811
    """Its guardian lives, ends the worker and says so: nobody waits for the lease, which is long here."""
    loss_timeout = 30
    cluster = Cluster(job, static_c, loss_timeout)
    old = cluster.workers[1]
    killed = boottime_ns()
    os.kill(cluster.launcher, signal.SIGKILL)
    cluster.victim.wait()
    new = cluster.next_round(2)
    assert_gone_before(old, new)
    assert min(each.began for each in new) - killed < loss_timeout * 1_000_000_000 * 3 // 5, "they waited for the lease"
    cluster.nodes.remove(cluster.victim)
    cluster.end()


@pytest.mark.gate
def test_a_guardian_and_agent_killed_at_once_leave_none_either(cluster):
    """Nobody is left who could say that the node is empty; the kernel ends its worker."""
    old = cluster.workers[1]
    for pid in (cluster.victim.pid, cluster.launcher):
        os.kill(pid, signal.SIGSTOP)
    for pid in (cluster.victim.pid, cluster.launcher):
        os.kill(pid, signal.SIGKILL)
    cluster.victim.wait()
    new = cluster.next_round(2)
    assert_gone_before(old, new)
    cluster.assert_no_rank_lived_twice()
    cluster.nodes.remove(cluster.victim)
    cluster.end()


def test_a_node_alone_has_no_lease(job, static_c):
    """Nobody could take its ranks: however long it was stopped, it goes on."""
    node = job.node("--no-python", nnodes="1:2", script=static_c(STAMPS), conf="loss_timeout=1")
    worker = Worker(node, pathlib.Path(job.elastic_run.directory))
    launcher = node.launcher()
    stop(launcher)
    stopped = boottime_ns()
    wait_until(lambda: worker.was_alive > stopped + 3_000_000_000, what="three leases to pass", timeout=60)
    os.kill(launcher, signal.SIGCONT)
    resumed = boottime_ns()
    wait_until(lambda: worker.was_alive > resumed + 1_000_000_000, what="the worker to work on", timeout=60)
    node.send_signal(signal.SIGTERM)
    result = node.wait()
    assert "the lease expired" not in result.stderr and "round 1" not in result.stderr, result
