"""Nothing outlives elastic-run: whoever is killed, however a worker has hidden what it forked."""
# ctest: gate

import itertools
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
  if ((!strcmp(argv[1], "setsid") || !strcmp(argv[1], "frozen")) && fork() == 0) { setsid(); up(); }
  if (!strcmp(argv[1], "double")) {
    pid_t middle = fork();
    if (middle == 0) { setsid(); if (fork() == 0) up(); _exit(0); }
  }
  up();
}
"""

PROCESSES = {"child": 2, "setsid": 2, "double": 2, "ignores": 1, "frozen": 2}
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")


@pytest.fixture
def freezer():
    """A v1 freezer cgroup: what is frozen in it does not end even when killed."""
    if not (FREEZER / "cgroup.procs").exists():
        pytest.skip("no v1 freezer cgroup is mounted at /sys/fs/cgroup/freezer")
    # Not one that an earlier process of this number has left.
    places = (FREEZER / f"elastic-run-test-{os.getpid()}-{number}" for number in itertools.count())
    place = next(place for place in places if not place.exists())
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
            running.wait_for_line(rf"process {frozen[0]} \(", timeout=60)
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


def status_when_stopped(elastic_run, script, number, on_signal, *options):
    """The status of a job of two workers, of which each does this shell code when it gets the signal."""
    worker = script("worker.sh", f"#!/bin/sh\ntrap '{on_signal}' TERM INT\necho up\nwhile :; do sleep 0.05; done\n")
    running = elastic_run.start("--nproc-per-node=2", *options, "--no-python", worker, env={"OMP_NUM_THREADS": "1"})
    for _ in range(2):
        running.wait_for_line("^up$", stream="stdout")
    running.send_signal(number)
    return running.wait().returncode


STOPS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)


@STOPS
@pytest.mark.parametrize("on_signal", ["exit $((3 + RANK))", "exit 0", "exit $RANK", "trap - TERM; kill -TERM $$"])
def test_a_job_that_a_signal_stops_ends_with_128_and_its_number_if_asked_for(elastic_run, script, number, on_signal):
    assert status_when_stopped(elastic_run, script, number, on_signal, "--propagate-exit-code") == 128 + number
    assert status_when_stopped(elastic_run, script, number, on_signal) == 1


@STOPS
def test_a_stopped_job_ends_with_the_one_code_of_all_its_workers_if_asked_for(elastic_run, script, number):
    assert status_when_stopped(elastic_run, script, number, "exit 85", "--propagate-exit-code") == 85
    assert status_when_stopped(elastic_run, script, number, "exit 85") == 1


def test_the_launcher_has_another_name_and_cleans_up_after_pkill(elastic_run, static_c):
    running = elastic_run.start("--no-python", static_c(SHAPES), "double")
    running.wait_for_pids(2)
    launcher = harness.read_process(running.launcher())
    assert "elastic-run" not in launcher.name and "elastic-run" not in launcher.command
    os.kill(running.pid, signal.SIGKILL)  # what pkill -9 elastic-run does
    running.wait()
    harness.wait_until(lambda: not running.processes(), what="nothing is left")


def test_the_outer_process_is_small_and_holds_no_pipe_open(elastic_run, static_c, sanitized):
    with open("/dev/null") as first, open("/dev/null") as second:
        running = elastic_run.start("--no-python", static_c(SHAPES), "plain",
                                    pass_fds=[first.fileno(), second.fileno()])
    running.wait_for_pids(1)
    # stderr for its last words, the signals, the channel to the launcher, the timer of the lease, and the worker's pidfd,
    # which it is sent. A worker may be there before the outer process has that, and before it has closed the others.
    # Which numbers the last four have depends on what was closed when they were made.
    directory = f"/proc/{running.pid}/fd"

    def others():
        return [os.readlink(f"{directory}/{fd}") for fd in os.listdir(directory) if fd != "2"]

    def holds_what_it_needs():
        try:
            found = others()
        except FileNotFoundError:  # it was closed meanwhile
            return False
        return len(found) == 4 and not any(one.startswith(("pipe:", "/")) for one in found)

    try:
        harness.wait_until(holds_what_it_needs, what="it holds only what it needs")
    except harness.HarnessError as error:
        raise AssertionError(f"beside stderr it holds {others()}") from error
    held = others()
    assert "anon_inode:[signalfd]" in held and any(one.startswith("socket:") for one in held)
    rollup = pathlib.Path(f"/proc/{running.pid}/smaps_rollup").read_text()
    private_kib = sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))
    assert sanitized or private_kib < 1024, rollup
    running.send_signal(signal.SIGTERM)
    assert running.wait().returncode == 1


# A process in a session of its own that every millisecond forks one that goes on in its place: whoever
# reads /proc to find it comes too late. It holds stdout open, whose end therefore says that it is gone.
HOPS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  if (fork() == 0) {
    setsid();
    if (write(1, "up\n", 3) < 0) return 9;
    for (;;) {
      usleep(1000);
      if (fork() != 0) _exit(0);
    }
  }
  if (argc > 1 && !strcmp(argv[1], "ends")) { sleep(1); return 0; }
  for (;;) pause();
}
"""


@pytest.mark.parametrize("killed", ["launcher", "outer", "nobody"])
def test_what_forks_faster_than_proc_is_read_ends_with_the_cgroup(elastic_run, static_c, has_cgroup, killed):
    running = elastic_run.start("--no-python", static_c(HOPS), "ends" if killed == "nobody" else "stays")
    running.wait_for_line("^up$", stream="stdout")
    if killed != "nobody":
        os.kill(running.launcher() if killed == "launcher" else running.pid, signal.SIGKILL)
    assert running.wait().returncode == {"launcher": 1, "outer": -signal.SIGKILL, "nobody": 0}[killed]


@pytest.fixture
def unread():
    """A pipe that is full and that nobody reads: its writing end."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    while True:
        try:
            os.write(writer, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(writer, True)
    yield writer
    os.close(reader)
    os.close(writer)


def test_a_stderr_that_nobody_reads_makes_nobody_deaf(elastic_run, static_c, unread):
    running = elastic_run.start("--nproc-per-node=2", "--max-restarts=3", "--no-python", static_c(SHAPES), "setsid",
                                stderr=unread)
    first = running.wait_for_pids(4)
    os.kill(next(pid for pid in first if parent_of(pid) == running.launcher()), signal.SIGKILL)
    running.wait_for_pids(4)  # the restart was not told to anybody
    running.send_signal(signal.SIGTERM)
    assert running.wait().returncode == 1


@pytest.mark.parametrize("killed", ["launcher", "outer"])
def test_a_stderr_that_nobody_reads_saves_nobody(elastic_run, static_c, unread, with_cgroup, killed):
    running = elastic_run.start("--nproc-per-node=2", "--no-python", static_c(SHAPES), "setsid", stderr=unread,
                                env=with_cgroup)
    everybody = running.wait_for_pids(4)
    os.kill(running.launcher() if killed == "launcher" else running.pid, signal.SIGKILL)
    harness.wait_until(lambda: not any(map(harness.alive, everybody)), what="all to end")
    running.wait()


def test_who_is_continued_at_once_is_not_stopped_for_ever(elastic_run, static_c):
    """In a group of its own in our session, where SIGTSTP stops."""
    running = elastic_run.start("--no-python", static_c(SHAPES), "plain", start_new_session=False, process_group=0)
    running.wait_for_pids(1)
    for _ in range(20):
        running.send_signal(signal.SIGTSTP)
        running.send_signal(signal.SIGCONT)
    running.send_signal(signal.SIGTERM)
    assert running.wait().returncode == 1


@pytest.mark.parametrize("instead", ["nothing", "a file"])
def test_a_job_outlives_its_temporary_log_directory(elastic_run, script, instead):
    worker = script("worker.py", f"""\
import glob, os, shutil, sys
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    base, = glob.glob(os.environ["TMPDIR"] + "/torchelastic_*")
    while os.path.isdir(base):  # the launcher may be making the next attempt's directories in it
        shutil.rmtree(base, ignore_errors=True)
        if {instead!r} == "a file":
            try:
                open(base, "w").close()
            except IsADirectoryError:
                pass
    sys.exit(1)
print("file", os.environ["TORCHELASTIC_ERROR_FILE"])
""")
    result = elastic_run("--max-restarts=1", worker)
    assert result.returncode == 0, result
    assert ("going on without log directory" in result.stderr) == (result.stdout == "file \n") == (instead == "a file")
