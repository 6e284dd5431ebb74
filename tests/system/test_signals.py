"""Signals that reach elastic-run: the job ends in order, its workers get the same signal first."""
# ctest: gate

import os
import signal
import subprocess
import time

import harness
import pytest

TERM, INT, HUP, QUIT, USR1 = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
FOUR = [TERM, INT, HUP, QUIT]

# Says which signal it was sent. Signals are waited for, not caught: none slips in before a handler.
TELLS = """\
import os, signal, sys
numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1]
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
count, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
child = "CHILD" in os.environ and os.fork() == 0
if not child:
    os.write(1, f"up {count}\\n".encode())  # in one piece, which print is not with python -u
name = f"rank {rank}" + (" child" if child else "")
number = signal.sigwait(numbers)
with open(f"told.{name}", "x") as file:
    file.write(signal.Signals(number).name)
if "THEN_WAIT" in os.environ:
    while True:
        signal.pause()
sys.exit(int(os.environ.get("STATUS", "0")))
"""


def heeding(ignored=()):
    """A preexec_fn: these signals are ignored when elastic-run starts, and none of the others that may
    have been when the tests were started."""

    def prepare():
        for number in [*FOUR, USR1]:
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])

    return prepare


@pytest.fixture
def begin(elastic_run, script):
    """begin(options...): a job of two workers of TELLS, begun when both are up."""

    def start(*options, env=None, ignored=(), text=TELLS):
        running = elastic_run.start("--nproc-per-node=2", *options, script("tells.py", text),
                                    env={"OMP_NUM_THREADS": "1"} | (env or {}), preexec_fn=heeding(ignored))
        for _ in range(2):
            running.wait_for_line("^up", stream="stdout")
        return running

    return start


def told(tmp_path):
    return {path.name.removeprefix("told."): path.read_text() for path in tmp_path.glob("told.*")}


@pytest.mark.parametrize("number", FOUR, ids=lambda number: number.name)
def test_a_signal_reaches_every_process_of_the_workers_and_ends_the_job_with_1(begin, tmp_path, number):
    running = begin(env={"CHILD": "yes"})
    running.send_signal(number)
    result = running.wait()
    assert result.returncode == 1
    everyone = [f"rank {rank}{child}" for rank in (0, 1) for child in ("", " child")]
    assert told(tmp_path) == dict.fromkeys(everyone, number.name)
    assert result.stderr == f"elastic-run: stopped by {number.name}; all workers have ended\n"


@pytest.mark.parametrize("status", ["0", "3"])
def test_a_stopped_job_is_not_restarted_however_its_workers_end(begin, status):
    running = begin("--max-restarts=3", env={"STATUS": status})
    running.send_signal(TERM)
    result = running.wait()
    assert result.returncode == 1
    assert result.stdout == "up 0\n" * 2
    assert "restart" not in result.stderr


def test_a_signal_that_was_blocked_when_elastic_run_started_ends_the_job_all_the_same(
        elastic_run, script, tmp_path):
    def prepare():
        heeding()()
        signal.pthread_sigmask(signal.SIG_BLOCK, FOUR)

    running = elastic_run.start(script("tells.py", TELLS), preexec_fn=prepare)
    running.wait_for_line("^up", stream="stdout")
    running.send_signal(TERM)
    assert running.wait().returncode == 1
    assert told(tmp_path) == {"rank 0": "SIGTERM"}


# --- Workers that do not end

def test_what_is_left_after_the_shutdown_timeout_is_killed(begin, tmp_path):
    running = begin("--shutdown-timeout=4", env={"THEN_WAIT": "yes", "CHILD": "yes"})
    running.send_signal(INT)
    result = running.wait()
    assert result.returncode == 1
    assert result.duration >= 4
    assert len(told(tmp_path)) == 4


@pytest.mark.parametrize("number", [INT, TERM], ids=lambda number: number.name)
def test_a_user_who_insists_for_a_second_has_the_workers_killed(begin, number):
    running = begin("--shutdown-timeout=60", env={"THEN_WAIT": "yes"})
    assert running.insist(number) >= 1
    assert running.wait().returncode == 1


def test_sighup_after_a_signal_does_not_kill_the_workers(begin, elastic_run, tmp_path):
    """A terminal that closes sends it to a job that is ending already."""
    running = begin("--shutdown-timeout=5", env={"THEN_WAIT": "yes"})
    began = time.monotonic()
    running.send_signal(TERM)
    harness.wait_until(lambda: len(told(tmp_path)) == 2, what="both workers have SIGTERM")
    running.insist(HUP)
    running.wait()
    assert time.monotonic() - began >= 5


# --- Which signals

@pytest.mark.parametrize("ignored", FOUR, ids=lambda number: number.name)
def test_a_signal_that_was_ignored_when_elastic_run_started_stays_ignored(begin, tmp_path, ignored):
    """As nohup does it with SIGHUP, and `&` in a script with SIGINT and SIGQUIT."""
    running = begin(ignored=[ignored])
    other = USR1 if ignored == TERM else TERM
    running.send_signal(ignored)
    launcher = running.launcher()
    for process in running.processes():
        if process.parent == launcher:
            os.kill(process.pid, other)
    assert running.wait().returncode == 0
    assert set(told(tmp_path).values()) == {other.name}


def test_nohup_keeps_a_job_alive_when_the_terminal_closes(elastic_run, script, tmp_path):
    running = elastic_run.start(script("tells.py", TELLS), program=["nohup", elastic_run.binary],
                                stdin=subprocess.DEVNULL, preexec_fn=heeding())
    running.wait_for_line("^up", stream="stdout")
    running.send_signal(HUP)
    (worker,) = [process for process in running.processes() if process.parent == running.launcher()]
    os.kill(worker.pid, USR1)
    assert running.wait().returncode == 0
    assert told(tmp_path) == {"rank 0": "SIGUSR1"}


@pytest.mark.parametrize("value", ["SIGUSR1", "SIGTERM, SIGUSR1", "USR1"])
def test_signals_to_handle_names_those_that_end_the_job(begin, tmp_path, value):
    running = begin("--signals-to-handle", value)
    running.send_signal(USR1)
    result = running.wait()
    assert result.returncode == 1
    assert told(tmp_path) == {"rank 0": "SIGUSR1", "rank 1": "SIGUSR1"}
    assert "stopped by SIGUSR1" in result.stderr


def test_a_signal_that_is_not_named_has_its_default_action_and_leaves_no_worker(begin, elastic_run):
    running = begin("--signals-to-handle=SIGUSR1", env={"THEN_WAIT": "yes"})
    running.send_signal(TERM)
    assert running.wait().returncode == -TERM
    harness.wait_until(lambda: not elastic_run.processes(), what="no worker is left")


def test_a_signal_of_no_concern_changes_nothing(begin, tmp_path):
    running = begin()
    for number in (signal.SIGWINCH, signal.SIGCONT, signal.SIGCHLD, signal.SIGPIPE):
        running.send_signal(number)
    launcher = running.launcher()
    for process in running.processes():
        if process.parent == launcher:
            os.kill(process.pid, USR1)
    assert running.wait().returncode == 0
    assert set(told(tmp_path).values()) == {"SIGUSR1"}


# --- When

# Rank 1 fails once rank 0 is ready for SIGTERM, which it tells and does not heed.
RESTARTS = TELLS.replace('name = f"rank {rank}"', """\
if rank == "1":
    open("ready").read()
    sys.exit(7)
open("ready", "w").close()
name = f"rank {rank}\"""")


@pytest.mark.parametrize("number", FOUR, ids=lambda number: number.name)
def test_a_signal_while_workers_are_being_restarted_ends_the_job_instead(begin, tmp_path, number):
    os.mkfifo(tmp_path / "ready")
    running = begin("--max-restarts=3", "--shutdown-timeout=4", env={"THEN_WAIT": "yes"}, text=RESTARTS)
    harness.wait_until(lambda: told(tmp_path).get("rank 0") == "SIGTERM", what="rank 0 is being stopped")
    running.send_signal(number)
    result = running.wait()
    assert result.returncode == 1
    assert result.stdout == "up 0\n" * 2
    assert result.stderr == f"elastic-run: stopped by {number.name}; all workers have ended\n"


def test_a_signal_at_any_moment_of_the_start_leaves_nothing(elastic_run):
    """Before elastic-run is ready for it, a signal has its default action."""
    def took(moment):
        began = time.monotonic()
        running = elastic_run.start("--nproc-per-node=4", "--no-python", "sleep", "100", preexec_fn=heeding())
        time.sleep(moment)
        running.send_signal(TERM)
        assert running.wait().returncode in (1, -TERM)
        harness.wait_until(lambda: not elastic_run.processes(), what="nothing is left")
        return time.monotonic() - began

    usual = min(took(0.05), 0.2)
    for step in range(30):
        took(usual * step / 30)


def test_a_signal_while_what_a_successful_job_left_is_being_ended_does_not_hang(elastic_run, script):
    """Its child does not heed SIGTERM; then the user wants it to be over."""
    leaves = script("leaves.py", """\
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = os.getpid()  # which may have ended when the child runs
if os.fork() == 0:
    os.write(1, f"{worker}\\n".encode())
    while True:
        signal.pause()
""")
    running = elastic_run.start("--shutdown-timeout=60", leaves, preexec_fn=heeding())
    worker = int(running.wait_for_line(r"^(\d+)$", stream="stdout").group(1))
    harness.wait_until(lambda: not harness.alive(worker), what="the worker has ended")
    began = time.monotonic()
    while running.popen.poll() is None:
        assert time.monotonic() < began + 30, "still waits for the child"
        running.send_signal(TERM)
        try:
            running.popen.wait(0.05)
        except subprocess.TimeoutExpired:
            pass
    running.wait()
