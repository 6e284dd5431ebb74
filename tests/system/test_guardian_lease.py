"""What the guardian does for a launcher that does not run any more: it enforces the lease of its workers, and says
the node's last word. Driven through tests/stand_ins/guardian_driver.cpp, whose launcher never judges a lease."""
# ctest: gate-cases
# ctest: clock

import os
import pathlib
import select
import signal
import socket
import subprocess
import time

import harness
import pytest
from test_nothing_left import FREEZER, SHAPES

# Generous: the guardian acts 50 ms after the lease's end.
PATIENCE = 60


def boottime_ms():
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


def wait_until_boottime(milliseconds):
    harness.wait_until(lambda: boottime_ms() > milliseconds, what="the time to pass")


class Launcher:
    """The driver's launcher, its guardian and its workers."""

    def __init__(self, elastic_run, *arguments):
        driver = pathlib.Path(elastic_run.binary).parent / "tests/stand_ins/guardian_driver"
        if not driver.exists():
            pytest.fail(f"no {driver}: scripts/test builds it")
        self.running = elastic_run.start(program=[driver], *arguments, stdin=subprocess.PIPE)
        self.pid = int(self.hears(r"^launcher (\d+)$|^no cgroup$").group(1) or 0)
        self.workers = []

    def hears(self, pattern):
        return self.running.wait_for_line(pattern, stream="stdout")

    def tell(self, line, answer=None):
        self.running.popen.stdin.write((line + "\n").encode())
        return self.hears(answer) if answer else None

    def start_worker(self, program, shape="plain", processes=1):
        self.tell(f"worker {program} {shape}")
        for _ in range(processes + 1):  # "worker PID" of the driver comes in any order with theirs
            word, pid = self.hears(r"^(up|worker) (\d+)$").groups()
            if word == "up":
                self.workers.append(int(pid))

    def lease(self, milliseconds):
        return int(self.tell(f"lease {milliseconds}", r"^lease (\d+)$").group(1))

    def leases(self, *times):
        """The same, one right after the other: the launcher reads all of them at once."""
        self.running.popen.stdin.write("".join(f"lease {each}\n" for each in times).encode())
        return [int(self.hears(r"^lease (\d+)$").group(1)) for _ in times]

    def stop(self, pid=None):
        """Stops the launcher, or another process; returns when it is stopped."""
        stop(pid or self.pid)

    def finish(self):
        # Under a lease that is over the guardian kills every child of the launcher, which with sanitizers has one at
        # its end, who looks for leaks, and is waited for in vain.
        self.tell("lease none", "^lease 0$")
        self.tell("exit 0")
        return self.running.wait()

    def say_to(self, listener, text):
        address, port = listener.getsockname()[:2]
        self.tell(f"word {address} {port} {text}", "^word$")

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    harness.wait_until(lambda: harness.read_process(pid).state == "T", what="a process to stop")


def ends(pids):
    """A descriptor for each process, readable when it has ended."""
    return [os.pidfd_open(pid) for pid in pids]


def wait_for(descriptors):
    """When the last of them has ended, in milliseconds after boot."""
    deadline = time.monotonic() + PATIENCE
    for descriptor in descriptors:
        left = max(0, deadline - time.monotonic())
        assert select.select([descriptor], [], [], left)[0], "a worker outlives its lease"
        os.close(descriptor)
    return boottime_ms()


def any_ended(descriptors):
    return bool(select.select(descriptors, [], [], 0)[0])


@pytest.fixture
def launcher(elastic_run):
    started = Launcher(elastic_run)
    yield started
    started.running.popen.stdin.close()


@pytest.fixture
def listener():
    """Where the last word is heard."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE)
        yield listening


def heard(listener, pids=()):
    """What the next connection brings, and which of the processes were alive when it came."""
    connection, _ = listener.accept()
    left = [pid for pid in pids if harness.alive(pid)]
    with connection, connection.makefile("rb") as stream:
        connection.settimeout(PATIENCE)
        return stream.read().decode(), left


def nobody_has_called(listener):
    return not select.select([listener], [], [], 0)[0]


@pytest.mark.parametrize("shape, processes, place", [
    pytest.param(shape, processes, place, marks=[pytest.mark.gate] if (shape, place) == ("plain", "cgroup") else [])
    for place in ("cgroup", "no cgroup")
    for shape, processes in (("plain", 1), ("setsid", 2), ("double", 2))])
def test_no_worker_of_a_stopped_launcher_outlives_its_lease(elastic_run, request, static_c, shape, processes, place):
    if place == "cgroup":
        request.getfixturevalue("has_cgroup")
    launcher = Launcher(elastic_run, *(["cgroup"] if place == "cgroup" else []))
    for _ in range(2):
        launcher.start_worker(static_c(SHAPES), shape, processes)
    descriptors = ends(launcher.workers)
    until = launcher.lease(3000)  # there is time to stop it
    launcher.stop()
    assert wait_for(descriptors) >= until
    launcher.running.wait_for_line(
        rf"elastic-run: error: the lease expired while the launcher \(process {launcher.pid}\) was not running; "
        r"its workers were killed$")
    assert harness.read_process(launcher.pid).state == "T"
    os.kill(launcher.pid, signal.SIGCONT)
    # It is as good as before: a round under a new lease can follow, and be over in its turn.
    launcher.workers.clear()
    for _ in range(2):
        launcher.hears(f"^exited {signal.SIGKILL.value}$")
    if place == "no cgroup":  # after cgroup.kill the launcher starts workers elsewhere, as WorkerTree knows
        launcher.start_worker(static_c(SHAPES), shape, processes)
        launcher.lease(60_000)
        descriptors = ends(launcher.workers)
        until = launcher.lease(300)  # sooner than was said
        launcher.stop()
        assert wait_for(descriptors) >= until
        os.kill(launcher.pid, signal.SIGCONT)
    result = launcher.finish()
    assert result.returncode == 0, result


def test_a_launcher_that_hangs_is_not_waited_for(launcher, static_c):
    """It runs, and does not do what it has to: what the driver is like all the time."""
    launcher.start_worker(static_c(SHAPES))
    descriptors = ends(launcher.workers)
    until = launcher.lease(200)
    assert wait_for(descriptors) >= until
    assert launcher.finish().returncode == 0


@pytest.mark.parametrize("then", ["longer", "none"])
def test_a_renewed_lease_lets_the_workers_live(launcher, static_c, then):
    launcher.start_worker(static_c(SHAPES))
    descriptors = ends(launcher.workers)
    until, _ = launcher.leases(1000, 600_000 if then == "longer" else "none")
    launcher.stop()
    wait_until_boottime(until + 500)
    assert not any_ended(descriptors)
    os.kill(launcher.pid, signal.SIGCONT)
    result = launcher.finish()
    assert result.returncode == 0 and "lease" not in result.stderr, result


def test_a_renewed_lease_ends_as_well(launcher, static_c):
    """The guardian is not told of a renewal: it sees it when the lease before would be over."""
    launcher.start_worker(static_c(SHAPES))
    descriptors = ends(launcher.workers)
    _, until = launcher.leases(1000, 2000)
    launcher.stop()
    assert wait_for(descriptors) >= until
    os.kill(launcher.pid, signal.SIGCONT)
    assert launcher.finish().returncode == 0


def test_a_guardian_that_was_stopped_keeps_nobody_waiting_and_judges_by_the_last_lease(launcher, static_c):
    """More renewals than its socket holds messages: what it missed must not count when it goes on."""
    launcher.start_worker(static_c(SHAPES))
    descriptors = ends(launcher.workers)
    launcher.stop(launcher.running.pid)
    launcher.tell("renew 2000 1", "^renewed$")
    last = launcher.lease(600_000)
    os.kill(launcher.running.pid, signal.SIGCONT)
    launcher.hears(r"^signal 18 with 1 running$")  # it has judged, and goes on
    assert not any_ended(descriptors) and last > boottime_ms()
    until = launcher.lease(300)
    launcher.stop()
    assert wait_for(descriptors) >= until
    os.kill(launcher.pid, signal.SIGCONT)
    assert launcher.finish().returncode == 0


def test_who_is_continued_after_the_lease_finds_no_worker(launcher, static_c):
    """Both were stopped; the guardian judges before it lets the launcher go on, and that the workers."""
    for shape, processes in [("plain", 1), ("setsid", 2)]:
        launcher.start_worker(static_c(SHAPES), shape, processes)
    for pid in [launcher.running.pid, *launcher.workers]:
        stop(pid)
    descriptors = ends(launcher.workers)
    until = launcher.lease(200)
    launcher.stop()
    wait_until_boottime(until + 200)
    assert not any_ended(descriptors)  # nobody was there to enforce it
    os.kill(launcher.running.pid, signal.SIGCONT)
    launcher.hears(r"^signal 18 with 0 running$")
    wait_for(descriptors)
    assert launcher.finish().returncode == 0


@pytest.fixture
def freezer():
    if not (FREEZER / "cgroup.procs").exists():
        pytest.skip("no v1 freezer cgroup is mounted at /sys/fs/cgroup/freezer")
    place = FREEZER / f"elastic-run-lease-{os.getpid()}"
    place.mkdir()

    def freeze(*pids):
        for pid in pids:
            (place / "cgroup.procs").write_text(str(pid))
        (place / "freezer.state").write_text("FROZEN")
        harness.wait_until(lambda: (place / "freezer.state").read_text() == "FROZEN\n", what="freezing")

    def thaw():
        (place / "freezer.state").write_text("THAWED")

    yield freeze, thaw
    thaw()
    harness.wait_until(lambda: not (place / "cgroup.procs").read_text(), what="the frozen to end")
    place.rmdir()


def test_after_a_freeze_the_lease_is_over(launcher, static_c, freezer):
    freeze, thaw = freezer
    for shape, processes in [("plain", 1), ("double", 2)]:
        launcher.start_worker(static_c(SHAPES), shape, processes)
    descriptors = ends(launcher.workers)
    until = launcher.lease(5000)  # there is time to freeze them
    freeze(launcher.running.pid, launcher.pid, *launcher.workers)
    wait_until_boottime(until + 300)
    assert not any_ended(descriptors)
    thaw()
    wait_for(descriptors)
    assert harness.alive(launcher.pid) and harness.alive(launcher.running.pid)
    assert launcher.finish().returncode == 0


@pytest.mark.parametrize("how", ["is killed", "hangs and is ended"])
def test_the_last_word_is_said_when_the_last_worker_is_gone(launcher, static_c, listener, how):
    for shape, processes in [("plain", 1), ("child", 2), ("double", 2)]:
        launcher.start_worker(static_c(SHAPES), shape, processes)
    launcher.say_to(listener, "an-older-word")
    launcher.say_to(listener, "nothing-is-left")
    if how == "is killed":
        launcher.kill()
    else:
        launcher.stop()

        def ended_by_another_signal():  # one that comes at least a second after the first is for those who do not answer
            launcher.running.send_signal(signal.SIGTERM)
            return select.select([listener], [], [], 1.1)[0]

        harness.wait_until(ended_by_another_signal, what="the last word")
    assert heard(listener, launcher.workers) == ("nothing-is-left", [])
    result = launcher.running.wait()
    assert result.returncode == 1 and f"(process {launcher.pid}) was killed by SIGKILL" in result.stderr
    assert nobody_has_called(listener)


def test_a_long_last_word_reaches_an_ipv6_address_also_if_the_guardian_did_not_run_when_it_was_given(launcher):
    try:
        listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6")
    with listening:
        listening.settimeout(PATIENCE)
        launcher.stop(launcher.running.pid)
        for length in (1, 4096):
            launcher.say_to(listening, "x" * length)
        launcher.kill()
        os.kill(launcher.running.pid, signal.SIGCONT)
        assert heard(listening) == ("x" * 4096, [])
    assert launcher.running.wait().returncode == 1


@pytest.mark.parametrize("how", ["its own goodbye", "no numeric address", "word for nobody"])
def test_no_word_is_said_where_none_is_to_be_said(launcher, static_c, listener, how):
    launcher.start_worker(static_c(SHAPES))
    if how != "word for nobody":
        launcher.say_to(listener, "nothing-is-left")
        port = listener.getsockname()[1]
        launcher.tell({"its own goodbye": "word", "no numeric address": f"word localhost {port} hello"}[how], "^word$")
    launcher.kill()
    assert launcher.running.wait().returncode == 1
    assert nobody_has_called(listener)


def test_no_word_is_said_where_something_is_left(launcher, static_c, listener, freezer):
    freeze, thaw = freezer
    launcher.start_worker(static_c(SHAPES), "setsid", 2)
    launcher.say_to(listener, "nothing-is-left")
    freeze(launcher.workers[1])
    launcher.kill()
    launcher.running.wait_for_line(rf"process {launcher.workers[1]} \(.*did not exit after SIGKILL")
    # It ends with its frozen child; the pipe that this holds open is closed when it thaws.
    assert launcher.running.popen.wait(PATIENCE) == 1
    thaw()
    assert nobody_has_called(listener)
    launcher.running.wait()


def test_who_does_not_take_the_last_word_holds_nobody_up(launcher):
    """A full queue of connections: the kernel does not even answer."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        waiting = []
        for _ in range(3):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(deaf.getsockname())
        launcher.say_to(deaf, "nothing-is-left")
        launcher.kill()
        assert launcher.running.wait(PATIENCE).returncode == 1
        for one in waiting:
            one.close()
