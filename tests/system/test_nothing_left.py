"""Nothing outlives elastic-run: whoever is killed, however a worker has hidden what it forked."""

import os
import pathlib
import signal

import harness
import pytest

# A worker in one of several shapes. Every process of it says "up", in one write, when it is as it should be.
SHAPES = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void up(void) {
  char line[64];
  int length = snprintf(line, sizeof line, "up %d\n", (int)getpid());
  if (write(1, line, (size_t)length) < 0) _exit(9);
  for (;;) pause();
}
int main(int argc, char** argv) {
  if (argc < 2) return 9;
  if (!strcmp(argv[1], "ignores")) signal(SIGTERM, SIG_IGN);
  if (!strcmp(argv[1], "exits")) { if (fork() == 0) { setsid(); up(); } char c; return (int)read(0, &c, 1) + 3; }
  if (!strcmp(argv[1], "child") && fork() == 0) up();
  if (!strcmp(argv[1], "setsid") && fork() == 0) { setsid(); up(); }
  if (!strcmp(argv[1], "double")) {
    pid_t middle = fork();
    if (middle == 0) { setsid(); if (fork() == 0) up(); _exit(0); }
  }
  up();
}
"""

PROCESSES = {"child": 2, "setsid": 2, "double": 2, "ignores": 1, "frozen": 1}
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")


@pytest.fixture
def freezer():
    """A v1 freezer cgroup: what is frozen in it does not end even when killed."""
    if not (FREEZER / "cgroup.procs").exists():
        pytest.skip("no v1 freezer cgroup is mounted at /sys/fs/cgroup/freezer")
    place = FREEZER / f"elastic-run-test-{os.getpid()}"
    place.mkdir()
    yield place
    (place / "freezer.state").write_text("THAWED")
    harness.wait_until(lambda: not (place / "cgroup.procs").read_text(), what="the frozen to end")
    place.rmdir()


def kill_in_one_call(pids):
    """Both at once, as near as can be had: a process group of nobody else cannot be made of them, so
    they are stopped first and neither can act between the two kills."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


KILLS = {
    "worker": lambda running, workers: os.kill(workers[0], signal.SIGKILL),
    "launcher": lambda running, workers: os.kill(running.launcher(), signal.SIGKILL),
    "outer": lambda running, workers: os.kill(running.pid, signal.SIGKILL),
    "outer's group": lambda running, workers: os.killpg(os.getpgid(running.pid), signal.SIGKILL),
    "both": lambda running, workers: kill_in_one_call([running.pid, running.launcher()]),
}


@pytest.mark.parametrize("shape", PROCESSES)
@pytest.mark.parametrize("killed", KILLS)
def test_nothing_is_alive_after_two_seconds(elastic_run, static_c, request, with_cgroup, killed, shape):
    freezer = request.getfixturevalue("freezer") if shape == "frozen" else None
    running = elastic_run.start("--nproc-per-node=2", "--shutdown-timeout=1", "--no-python", static_c(SHAPES),
                                shape, env={"OMP_NUM_THREADS": "1"} | with_cgroup)
    everybody = running.wait_for_pids(2 * PROCESSES[shape])
    workers = [pid for pid in everybody if os.getpgid(pid) == pid and parent_of(pid) == running.launcher()]
    assert len(workers) == 2
    in_cgroup = f"0::/elastic-run-{running.pid}" in pathlib.Path(f"/proc/{workers[0]}/cgroup").read_text()
    assert in_cgroup == (not with_cgroup)
    if freezer is not None:
        (freezer / "cgroup.procs").write_text(str(workers[1]))
        (freezer / "freezer.state").write_text("FROZEN")
        harness.wait_until(lambda: (freezer / "freezer.state").read_text() == "FROZEN\n", what="freezing")
    KILLS[killed](running, workers)
    # What PR_SET_PDEATHSIG does not reach may stay where nobody is left to look.
    must_end = workers if killed == "both" else everybody
    frozen = workers[1:] if freezer is not None else []
    ends = [pid for pid in must_end if pid not in frozen]
    harness.wait_until(lambda: not any(map(harness.alive, ends)), timeout=2 + 8, what="all to end")
    if freezer is not None:
        if killed != "both":
            running.wait_for_line(rf"process {frozen[0]} \(", timeout=20)
        (freezer / "freezer.state").write_text("THAWED")
    if killed == "both":
        elastic_run.kill_all()
    assert running.wait().returncode == {"worker": 1, "launcher": 1}.get(killed, -signal.SIGKILL)


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_forwarded_signals_reach_the_workers_and_the_job_goes_on(elastic_run, script):
    worker = script("worker.sh", "#!/bin/sh\ntrap 'echo got; exit 0' USR1\necho up\nwhile :; do sleep 0.05; done\n")
    running = elastic_run.start("--nproc-per-node=2", "--forward-signals=USR1", "--no-python", worker,
                                env={"OMP_NUM_THREADS": "1"})
    for _ in range(2):
        running.wait_for_line("^up$", stream="stdout")
    running.send_signal(signal.SIGUSR1)
    result = running.wait()
    assert result.returncode == 0, result
    assert result.stdout.count("got") == 2


@pytest.mark.parametrize("script_text, status", [("exit 85", 85), ("kill -SEGV $$", 128 + signal.SIGSEGV)])
def test_the_first_failures_code_is_handed_on_if_asked_for(elastic_run, script_text, status):
    job = ["--no-python", "sh", "-c", script_text]
    assert elastic_run("--propagate-exit-code", *job).returncode == status
    assert elastic_run(*job).returncode == 1


def test_the_launcher_has_another_name_and_cleans_up_after_pkill(elastic_run, static_c):
    running = elastic_run.start("--no-python", static_c(SHAPES), "double")
    running.wait_for_pids(2)
    launcher = harness.read_process(running.launcher())
    assert "elastic-run" not in launcher.name and "elastic-run" not in launcher.command
    os.kill(running.pid, signal.SIGKILL)  # what pkill -9 elastic-run does
    running.wait()
    harness.wait_until(lambda: not running.processes(), what="nothing is left")


def test_the_outer_process_is_small_and_holds_no_pipe_open(elastic_run, static_c, sanitized):
    running = elastic_run.start("--no-python", static_c(SHAPES), "plain")
    running.wait_for_pids(1)
    held = {os.readlink(f"/proc/{running.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{running.pid}/fd")}
    pipes = {name for name in held if name.startswith("pipe:")}
    assert pipes == {os.readlink(f"/proc/{running.pid}/fd/2")}  # stderr, for its last words
    rollup = pathlib.Path(f"/proc/{running.pid}/smaps_rollup").read_text()
    private_kib = sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))
    assert sanitized or private_kib < 1024, rollup
    running.send_signal(signal.SIGTERM)
    assert running.wait().returncode == 1
