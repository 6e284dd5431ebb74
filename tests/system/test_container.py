"""elastic-run as PID 1 of a container: a pid and a mount namespace of its own, in a read-only root directory
that holds elastic-run and one static worker, and nothing else; no /proc, no /dev, no /tmp."""
# ctest: release-only

import os
import re
import shutil
import signal
import subprocess

import harness
import pytest
from roots import CONTAINER

TERM, INT, USR1, KILL = signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGKILL

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces and mounts")

# exit CODE, signal NUMBER: ends so. waits: says "up", then by what signal it was told to end, and ends with 0.
# daemon, daemon-once: leaves a daemon, then waits, or fails the first time. orphans: leaves 50 processes that
# end soon, then waits. adopted: leaves a process that ends when stdin does.
WORKER = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static sigset_t set;
static void say(const char* what) {
  char line[64];
  int length = snprintf(line, sizeof line, "%s\n", what);
  if (write(1, line, (size_t)length) < 0) _exit(9);
}
static int wait_for_the_end(void) {
  char line[64];
  say("up");
  int number = 0;
  while ((number = sigwaitinfo(&set, NULL)) < 0) {}  /* stopped and continued */
  snprintf(line, sizeof line, "told SIG%s", sigabbrev_np(number));
  say(line);
  return 0;
}
static void start_daemon(void) {
  int ready[2];
  char byte = 0;
  if (pipe(ready) != 0) _exit(9);
  pid_t middle = fork();
  if (middle == 0) {
    setsid();
    if (fork() == 0) {
      if (write(ready[1], "", 1) != 1) _exit(9);
      for (;;) pause();
    }
    _exit(0);
  }
  if (read(ready[0], &byte, 1) != 1 || waitpid(middle, NULL, 0) != middle) _exit(9);
}
int main(int argc, char** argv) {
  if (argc < 2) return 9;
  sigemptyset(&set);
  int numbers[] = {SIGTERM, SIGINT, SIGUSR1};
  for (int i = 0; i < 3; ++i) sigaddset(&set, numbers[i]);
  sigprocmask(SIG_BLOCK, &set, NULL);
  if (!strcmp(argv[1], "exit")) return atoi(argv[2]);
  if (!strcmp(argv[1], "signal")) { sigprocmask(SIG_UNBLOCK, &set, NULL); raise(atoi(argv[2])); }
  if (!strcmp(argv[1], "adopted")) {
    if (fork() != 0) return 0;
    char byte;
    close(1);
    close(2);
    return (int)read(0, &byte, 1);
  }
  if (!strncmp(argv[1], "daemon", 6)) {
    int first = !strcmp(getenv("TORCHELASTIC_RESTART_COUNT"), "0");
    if (first) start_daemon();
    if (first && !strcmp(argv[1], "daemon-once")) return 3;
  }
  if (!strcmp(argv[1], "orphans")) {
    for (int i = 0; i < 50; ++i) {
      if (fork() == 0) { setsid(); if (fork() == 0) usleep((unsigned)(i * 1000)); _exit(0); }
    }
    for (int i = 0; i < 50; ++i) wait(NULL);
  }
  return wait_for_the_end();
}
"""


class Container:
    """A program in a container; what is in it as the host sees it."""

    def __init__(self, running):
        self.running = running
        self.pid1 = running.launcher()  # the child of the process that made the container

    def inside(self):
        """PID 1 and all its descendants, zombies too."""
        everybody = [process for pid in filter(str.isdigit, os.listdir("/proc"))
                     if (process := harness.read_process(pid))]
        found, parents = [], {self.pid1}
        while parents:
            children = [process for process in everybody if process.parent in parents]
            found += children
            parents = {process.pid for process in children}
        return [process for process in everybody if process.pid == self.pid1] + found

    def launcher(self):
        (launcher,) = [process for process in self.inside() if process.name == "elastic_launch"]
        return launcher.pid

    def workers(self):
        launcher = self.launcher()
        return [process for process in self.inside() if process.parent == launcher and process.group == process.pid]

    def is_down_to(self, count):
        """True when that many processes are left and none of them is a zombie."""
        found = self.inside()
        return len(found) == count and not any(process.state == "Z" for process in found)


@pytest.fixture(params=["nothing else", "/proc"])
def root(request, elastic_run, static_c, tmp_path):
    """The root directory; the container has /proc, or not even that."""
    directory = tmp_path / "root"
    directory.mkdir()
    shutil.copy(elastic_run.binary, directory / "elastic-run")
    shutil.copy(static_c(WORKER), directory / "worker")
    if request.param == "/proc":
        (directory / "proc").mkdir()
    return directory


@pytest.fixture
def start(elastic_run, static_c, root):
    """start(worker and its arguments, options of elastic-run): a Running of the container."""

    def begin(*worker, options=("--log-dir=/dev/null",), count=1, **more):
        return elastic_run.start(
            root, "/elastic-run", f"--nproc-per-node={count}", *options, "--no-python", "/worker", *worker,
            program=[static_c(CONTAINER)], env={"OMP_NUM_THREADS": "1", "TMPDIR": None, "HOME": None}, **more)

    return begin


@pytest.fixture
def begin(start):
    """As `start`, but a Container whose workers are all up."""

    def begun(*worker, count=1, **more):
        running = start(*worker, count=count, **more)
        for _ in range(count):
            running.wait_for_line("^up$", stream="stdout")
        return Container(running)

    return begun


# --- The exit status

@pytest.mark.parametrize("worker, status, propagated", [
    (["exit", "0"], 0, 0), (["exit", "85"], 1, 85), (["signal", "11"], 1, 128 + 11), (["signal", "15"], 1, 128 + 15),
], ids=lambda value: "-".join(value) if isinstance(value, list) else None)
def test_the_containers_exit_status_is_the_jobs(start, worker, status, propagated):
    assert start(*worker, count=2).wait().returncode == status
    options = ["--log-dir=/dev/null", "--propagate-exit-code"]
    assert start(*worker, count=2, options=options).wait().returncode == propagated


def test_a_job_runs_where_there_is_no_place_for_logs(start):
    result = start("exit", "0", options=[]).wait()
    assert result.returncode == 0, result
    assert re.search("warning: .*no log directory", result.stderr)
    failed = start("exit", "3", options=[]).wait()
    assert failed.returncode == 1
    assert "exited with code 3" in failed.stderr


# --- Signals

@pytest.mark.parametrize("number", [TERM, INT], ids=lambda number: number.name)
def test_a_signal_to_pid_1_ends_the_job_in_order(begin, number):
    container = begin("waits", count=2)
    os.kill(container.pid1, number)
    result = container.running.wait()
    assert result.returncode == 1
    assert sorted(result.stdout.split("\n"))[1:] == [f"told {number.name}"] * 2 + ["up"] * 2
    assert result.stderr == f"elastic-run: stopped by {number.name}; all workers have ended\n"


def test_signals_are_forwarded_and_a_ctrl_z_without_a_shell_stops_nothing(begin):
    container = begin("waits", options=["--log-dir=/dev/null", "--forward-signals=USR1"])
    os.kill(container.pid1, signal.SIGTSTP)
    os.kill(container.pid1, USR1)
    result = container.running.wait()
    assert (result.returncode, result.stdout) == (0, "up\ntold SIGUSR1\n")


# --- Orphans

def test_orphans_are_reaped(begin):
    container = begin("orphans", count=2)
    harness.wait_until(lambda: container.is_down_to(4), what="PID 1, the launcher and two workers are left")
    os.kill(container.pid1, TERM)
    assert container.running.wait().returncode == 1


@pytest.mark.skipif(shutil.which("nsenter") is None, reason="there is no nsenter")
def test_pid_1_reaps_what_came_from_outside_and_lost_its_parent(begin, elastic_run, root):
    """As `docker exec` brings it in: an orphan of it goes to PID 1, not to the launcher."""
    container = begin("waits")
    entered = elastic_run.start("nsenter", "--target", f"{container.pid1}", "--pid", root / "worker", "adopted",
                                program=["env"], stdin=subprocess.PIPE)
    entered.popen.wait(harness.PATIENCE)
    (adopted,) = [process.pid for process in container.inside()
                  if process.parent == container.pid1 and process.name == "worker"]
    assert harness.alive(adopted)
    entered.popen.stdin.close()
    harness.wait_until(lambda: container.is_down_to(3), what="the orphan is gone, and no zombie")
    os.kill(container.pid1, TERM)
    assert container.running.wait().returncode == 1


# --- Nothing is left

@pytest.mark.parametrize("who", ["PID 1", "launcher", "worker"])
def test_nothing_is_left_whoever_is_killed(begin, elastic_run, who):
    container = begin("daemon", options=["--log-dir=/dev/null", "--shutdown-timeout=1"], count=2)
    pids = {"PID 1": container.pid1, "launcher": container.launcher(), "worker": container.workers()[0].pid}
    os.kill(pids[who], KILL)
    result = container.running.wait()
    assert result.returncode == (128 + KILL if who == "PID 1" else 1)
    assert ("was killed by SIGKILL; all workers were killed" in result.stderr) == (who == "launcher")
    harness.wait_until(lambda: not elastic_run.processes(), what="nothing is left")


def test_a_daemon_is_dead_at_the_end_of_the_job(begin, elastic_run):
    container = begin("daemon", options=["--log-dir=/dev/null", "--forward-signals=USR1"])
    assert len(container.inside()) == 4
    os.kill(container.pid1, USR1)
    assert container.running.wait().returncode == 0
    assert elastic_run.processes() == []


@pytest.mark.parametrize("root", ["/proc"], indirect=True)
def test_a_daemon_is_dead_before_the_next_round_where_there_is_proc(begin):
    container = begin("daemon-once", options=["--log-dir=/dev/null", "--max-restarts=1"])
    assert len([process for process in container.inside() if process.state not in "ZX"]) == 3
    harness.wait_until(lambda: container.is_down_to(3), what="no zombie is left")
    os.kill(container.pid1, TERM)
    assert container.running.wait().returncode == 1
# ctest: gate
