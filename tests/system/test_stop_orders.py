"""Who may order a stop, and that one order is one stop however often and to whomever it is given."""
# ctest: gate

import itertools
import os
import pathlib
import re
import signal
import subprocess

import harness
import pytest

INT, TERM, HUP, QUIT = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT
USR1, USR2 = signal.SIGUSR1, signal.SIGUSR2

# A worker says "up COUNT RANK" and, by a file, which signal it was told to end by. Then it ends with 0, or
# dies of it (argument: dies), or does not (argument: stays). With "leaves" rank 0 leaves a child in its group
# and is gone. USR1 ends all with 0, USR2 is not taken.
WORKER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "ends";
  const char* rank = getenv("RANK");
  sigset_t set;
  sigemptyset(&set);
  int numbers[] = {SIGINT, SIGTERM, SIGUSR1};
  for (int i = 0; i < 3; ++i) sigaddset(&set, numbers[i]);
  if (!strcmp(kind, "dies")) sigdelset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
  sigset_t unheeded;  /* to be seen as pending */
  sigemptyset(&unheeded);
  sigaddset(&unheeded, SIGUSR2);
  sigprocmask(SIG_BLOCK, &unheeded, NULL);
  const char* who = "worker";
  if (!strcmp(kind, "leaves") && !strcmp(rank, "0")) {
    if (fork() != 0) return 0;
    who = "child";
  }
  char text[64];
  int length = snprintf(text, sizeof text, "up %s %s\n", getenv("TORCHELASTIC_RESTART_COUNT"), rank);
  if (write(1, text, (size_t)length) < 0) return 9;
  for (;;) {
    int number = sigwaitinfo(&set, NULL);
    if (number < 0) continue;  /* stopped and continued */
    snprintf(text, sizeof text, "told.%s.%s.SIG%s", who, rank, sigabbrev_np(number));
    close(open(text, O_CREAT | O_EXCL | O_WRONLY, 0600));
    if (strcmp(kind, "stays") || number == SIGUSR1) return 0;
  }
}
"""

@pytest.fixture
def begin(elastic_run, static_c):
    """begin(kind, options...): a job of two workers, begun when both are up."""

    def start(kind, *options, program=None, env=None):
        running = elastic_run.start("--nproc-per-node=2", "--max-restarts=3", "--forward-signals=USR1,USR2",
                                    *options, "--no-python", static_c(WORKER), kind, program=program,
                                    env={"OMP_NUM_THREADS": "1"} | (env or {}))
        for _ in range(2):
            running.wait_for_line("^up 0 ", stream="stdout")
        return running

    return start


def workers_of(running):
    launcher = running.launcher()
    return sorted(process.pid for process in running.processes() if process.parent == launcher)


def told(tmp_path):
    """{"worker RANK" or "child RANK": the signal that it was told to end by}."""
    names = [path.name.split(".") for path in tmp_path.glob("told.*")]
    return {f"{who} {rank}": number for _, who, rank, number in names}


def is_stopped(pid):
    return harness.read_process(pid).state == "T"


def is_pending(pid, number):
    """True while a signal waits to be taken by the process."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return bool(int(re.search(r"^ShdPnd:\s*(\w+)", status, re.MULTILINE).group(1), 16) >> (number - 1) & 1)


# --- The user insists

@pytest.mark.parametrize("number", [TERM, INT], ids=lambda number: number.name)
@pytest.mark.parametrize("stopped", ["launcher", "launcher and workers"])
@pytest.mark.parametrize("kernel", ["cgroup", "no cgroup", "no pidfd"])
def test_who_insists_for_a_second_ends_the_job_though_the_launcher_is_stopped(
        begin, elastic_run, refusing, kernel, stopped, number):
    program = [*refusing("38 424-999"), elastic_run.binary] if kernel == "no pidfd" else None
    env = {} if kernel == "cgroup" else {"ELASTIC_RUN_CGROUP": "off"}
    running = begin("stays", "--shutdown-timeout=60", program=program, env=env)
    frozen = [running.launcher(), *(workers_of(running) if "workers" in stopped else [])]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    harness.wait_until(lambda: all(map(is_stopped, frozen)), what="they are stopped")
    assert running.insist(number) >= 1
    assert running.wait().returncode == 1
    harness.wait_until(lambda: not elastic_run.processes(), what="nothing is left")


def test_a_second_signal_within_the_first_second_kills_no_stopped_launcher(begin, tmp_path):
    running = begin("ends", "--shutdown-timeout=60")
    launcher = running.launcher()
    os.kill(launcher, signal.SIGSTOP)
    harness.wait_until(lambda: is_stopped(launcher), what="it is stopped")
    # At once: on a busy machine a second may pass while it is waited for that the first one is taken. Where both are
    # pending, SIGINT is taken first, as the lower number.
    for number in (INT, TERM):
        running.send_signal(number)
    for number in (INT, TERM):
        harness.wait_until(lambda number=number: not is_pending(running.pid, number), what="the outer process takes it")
    os.kill(launcher, signal.SIGCONT)
    result = running.wait()
    assert result.returncode == 1
    assert told(tmp_path) == {"worker 0": "SIGINT", "worker 1": "SIGINT"}
    assert result.stderr == "elastic-run: stopped by SIGINT; all workers have ended\n"


# --- The whole tree is told at once

def check_one_stop(result):
    assert result.returncode == 1
    assert sorted(result.stdout.splitlines()) == ["up 0 0", "up 0 1"]  # nobody was started again
    assert result.stderr == "elastic-run: stopped by SIGTERM; all workers have ended\n"


ORDERS = pytest.mark.parametrize(
    "names", list(itertools.permutations(["outer", "launcher", "workers"])), ids="-".join)


def tell_all(running, names):
    pids = {"outer": [running.pid], "launcher": [running.launcher()], "workers": workers_of(running)}
    for name in names:
        for pid in pids[name]:
            os.kill(pid, TERM)


@ORDERS
def test_sigterm_to_every_process_is_one_stop_in_whatever_order_they_get_it(begin, names):
    """As systemd and Slurm do it. Here the workers heed it last, when the launcher has had its orders."""
    running = begin("ends")
    workers = workers_of(running)
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    tell_all(running, names)
    harness.wait_until(lambda: not is_pending(running.pid, TERM), what="the outer process hands it on")
    running.send_signal(USR2)  # which it hands on too, after that
    harness.wait_until(lambda: all(is_pending(pid, USR2) for pid in workers), what="the workers are told")
    for pid in workers:
        os.kill(pid, signal.SIGCONT)
    check_one_stop(running.wait())


@ORDERS
def test_workers_that_die_of_a_sigterm_to_every_process_have_not_failed_and_are_not_started_again(begin, names):
    """Here the workers are gone first: the launcher finds them dead, and its orders."""
    running = begin("dies")
    workers, launcher = workers_of(running), running.launcher()
    os.kill(launcher, signal.SIGSTOP)
    harness.wait_until(lambda: is_stopped(launcher), what="the launcher is stopped")
    tell_all(running, names)
    harness.wait_until(lambda: not any(map(harness.alive, workers)), what="the workers end")
    harness.wait_until(lambda: not is_pending(running.pid, TERM), what="the outer process hands it on")
    os.kill(launcher, signal.SIGCONT)
    check_one_stop(running.wait())


def test_a_worker_that_dies_of_sigterm_without_an_order_to_stop_has_failed_like_any_other(begin):
    running = begin("dies")
    os.kill(workers_of(running)[0], TERM)
    for _ in range(2):
        running.wait_for_line("^up 1 ", stream="stdout")
    running.send_signal(USR1)
    assert running.wait().returncode == 0


# Ends its whole process group, and outlives that to see how the job ended.
SCRIPT = """\
"$0" "$@" &
trap : TERM
read line
kill -TERM 0
while kill -0 $! 2>/dev/null; do wait $!; status=$?; done
echo "status $status"
"""


def test_kill_0_in_a_script_is_one_stop(elastic_run, static_c, tmp_path):
    """The outer process is in the script's group; launcher and workers are told by it alone."""
    running = elastic_run.start(
        "--nproc-per-node=2", "--max-restarts=3", "--no-python", static_c(WORKER),
        program=["sh", "-c", SCRIPT, elastic_run.binary],
        stdin=subprocess.PIPE, env={"OMP_NUM_THREADS": "1"})
    for _ in range(2):
        running.wait_for_line("^up 0 ", stream="stdout")
    running.popen.stdin.write(b"now\n")
    result = running.wait()
    assert sorted(result.stdout.splitlines()) == ["status 1", "up 0 0", "up 0 1"]
    assert result.stderr == "elastic-run: stopped by SIGTERM; all workers have ended\n"
    assert told(tmp_path) == {"worker 0": "SIGTERM", "worker 1": "SIGTERM"}


# --- Who is not listened to

FOUR = pytest.mark.parametrize("number", [TERM, INT, HUP, QUIT], ids=lambda number: number.name)


@FOUR
def test_a_strangers_signal_to_the_launcher_alone_changes_nothing(begin, tmp_path, number):
    running = begin("ends")
    os.kill(running.launcher(), number)
    running.send_signal(USR1)  # goes through the launcher, after that
    result = running.wait()
    assert result.returncode == 0, result
    assert set(told(tmp_path).values()) == {"SIGUSR1"}
    assert result.stderr == ""


# --- A worker signals its parent

# Rank 1 says by a file which signal it was told to end by. Rank 0 does what its argument says once a line has come, with
# the signal's number in N and the launcher's in PARENT, says so and waits to be stopped.
FROM_WORKER = """\
import os, signal, subprocess, sys, time
N, PARENT, HERE = getattr(signal, os.environ["SIGNAL"]), os.getppid(), os.environ["RANK"]
numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1]
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
os.write(1, f"up {os.environ['TORCHELASTIC_RESTART_COUNT']}\\n".encode())

def orphan(act):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            while os.getppid() != PARENT:
                time.sleep(0.001)
            act()
            signal.sigwait(numbers)
        os._exit(0)
    os.wait()

if HERE == "0":
    sys.stdin.readline()
    exec(sys.argv[1])
    os.write(1, b"sent\\n")
number = signal.sigwait(numbers)
open(f"told.worker.{HERE}.{number.name}", "x").close()
"""

WAYS = {
    "python": "os.kill(os.getppid(), N)",
    "a thread": "import threading; threading.Thread(target=os.kill, args=(PARENT, N)).start()",
    "a child": "if os.fork() == 0: os.kill(PARENT, N); signal.sigwait(numbers); os._exit(0)",
    "a shell": "shell = subprocess.Popen(['sh', '-c', f'kill -{N} {PARENT}; read line'], stdin=subprocess.PIPE)",
    "a child that has ended": "subprocess.run(['sh', '-c', f'kill -{N} {PARENT}'], check=True)",
    "an orphan": "orphan(lambda: os.kill(PARENT, N))",
}


@pytest.fixture
def begin_python(elastic_run, script):
    """begin_python(way, number, options...): a job of two workers of FROM_WORKER, begun when both are up."""

    def start(way, number, *options):
        running = elastic_run.start("--nproc-per-node=2", "--max-restarts=3", *options,
                                    script("from_worker.py", FROM_WORKER), WAYS.get(way, way), stdin=subprocess.PIPE,
                                    env={"OMP_NUM_THREADS": "1", "SIGNAL": number.name})
        for _ in range(2):
            running.wait_for_line("^up 0", stream="stdout")
        return running

    return start


def go(running):
    running.popen.stdin.write(b"now\n")
    running.popen.stdin.close()


def check_stopped_by_worker(result, number):
    assert result.returncode == 1
    assert "up 1" not in result.stdout  # nobody was started again
    first, second = result.stderr.splitlines()
    assert re.fullmatch(rf"elastic-run: warning: {number.name} came from process \d+, a worker or a child of one; "
                        "stopping all workers", first)
    assert second == f"elastic-run: stopped by {number.name}; all workers have ended"


@FOUR
@pytest.mark.parametrize("way", WAYS)
def test_a_signal_that_a_worker_sends_its_parent_ends_the_job(begin_python, tmp_path, way, number):
    running = begin_python(way, number)
    go(running)
    result = running.wait()
    check_stopped_by_worker(result, number)
    assert told(tmp_path) == {"worker 0": number.name, "worker 1": number.name}


@pytest.mark.parametrize("kind", ["child that has ended", "worker that has ended"])
def test_a_workers_signal_counts_though_the_sender_is_gone_before_the_launcher_sees_it(begin_python, tmp_path, kind):
    way = WAYS["a child that has ended"] if kind.startswith("child") else "os.kill(PARENT, N); os._exit(3)"
    running = begin_python(way, TERM)
    launcher, workers = running.launcher(), workers_of(running)
    os.kill(launcher, signal.SIGSTOP)
    harness.wait_until(lambda: is_stopped(launcher), what="the launcher is stopped")
    go(running)
    if kind.startswith("child"):
        running.wait_for_line("^sent", stream="stdout")
    else:
        harness.wait_until(lambda: not all(map(harness.alive, workers)), what="rank 0 has ended")
    os.kill(launcher, signal.SIGCONT)
    check_stopped_by_worker(running.wait(), TERM)
    assert told(tmp_path)["worker 1"] == "SIGTERM"


@FOUR
def test_a_shell_signals_its_parent_as_it_would_torchrun(elastic_run, number):
    result = elastic_run("--max-restarts=3", "--no-python", "sh", "-c",
                         f"echo up $TORCHELASTIC_RESTART_COUNT; kill -{number.name[3:]} $PPID; exec sleep 1000")
    assert result.stdout == "up 0\n"
    check_stopped_by_worker(result, number)


@pytest.mark.parametrize("to", ["PARENT, OUTER", "OUTER, PARENT"])
def test_a_worker_that_signals_launcher_and_outer_process_has_ordered_one_stop(begin_python, tmp_path, to):
    way = ("OUTER = int(open(f'/proc/{PARENT}/stat').read().rpartition(')')[2].split()[1])\n"
           f"for pid in ({to}): os.kill(pid, N)")
    running = begin_python(way, TERM)
    go(running)
    result = running.wait()
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "elastic-run: stopped by SIGTERM; all workers have ended"
    assert told(tmp_path) == {"worker 0": "SIGTERM", "worker 1": "SIGTERM"}


def test_a_workers_signal_counts_if_signals_to_handle_names_it(begin_python, tmp_path):
    running = begin_python("python", USR1, "--signals-to-handle=SIGUSR1")
    go(running)
    check_stopped_by_worker(running.wait(), USR1)
    assert told(tmp_path) == {"worker 0": "SIGUSR1", "worker 1": "SIGUSR1"}


def test_a_workers_signal_that_was_ignored_when_elastic_run_started_stays_ignored(elastic_run):
    result = elastic_run("--no-python", "sh", "-c", "kill -HUP $PPID", program=["nohup", elastic_run.binary],
                         stdin=subprocess.DEVNULL)
    assert (result.returncode, result.stderr) == (0, "")


# --- Who is told

def test_sigterm_reaches_a_group_whose_leader_has_gone(begin, tmp_path):
    running = begin("leaves")
    harness.wait_until(lambda: len(workers_of(running)) == 2 and rank_0_has_gone(running), what="rank 0 ends")
    running.send_signal(TERM)
    result = running.wait()
    assert result.returncode == 1
    assert told(tmp_path) == {"child 0": "SIGTERM", "worker 1": "SIGTERM"}


def rank_0_has_gone(running):
    """What is left of its group is a child of the launcher now, and leads no group."""
    launcher = running.launcher()
    return any(process.group != process.pid for process in running.processes() if process.parent == launcher)
