"""elastic-run at a terminal: Ctrl-C, Ctrl-Z, fg, bg, `stty tostop`, and a terminal that goes away.

A pseudo-terminal stands for the terminal and a few lines of Python for the shell with job control;
one test asks a real bash.
"""
# ctest: gate

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time

import harness
import pytest

CTRL_C, CTRL_Z = b"\x03", b"\x1a"

# The session leader: gives its terminal to one job, tells on stdout what becomes of the job, and takes
# orders on stdin, as a shell takes them from its user. Arguments: the terminal, how the job begins (fg or bg),
# how the shell is (usual; tells: hands SIGHUP to its job, as bash does; adopts: orphans become its children,
# as those of a container's PID 1 do), the job.
SHELL = """\
import ctypes, fcntl, os, signal, sys, termios, threading
name, begins, kind, *command = sys.argv[1:]
if kind == "adopts":
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
terminal = os.open(name, os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    if begins == "fg":
        os.tcsetpgrp(terminal, os.getpid())
    for number in (signal.SIGTTOU, signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    for fd in (0, 1, 2):
        os.dup2(terminal, fd)
    os.execv(command[0], command)

def tell(text):
    os.write(1, f"{text}\\n".encode())

def watch():
    while True:
        _, status = os.waitpid(job, os.WUNTRACED | os.WCONTINUED)
        if os.WIFSTOPPED(status):
            tell(f"stopped by {signal.Signals(os.WSTOPSIG(status)).name}")
        elif os.WIFCONTINUED(status):
            tell("continued")
        else:
            tell(f"ended with {os.waitstatus_to_exitcode(status)}")
            if kind != "adopts":
                os._exit(0)
            return

signal.signal(signal.SIGTTOU, signal.SIG_IGN)
if kind == "tells":
    signal.signal(signal.SIGHUP, lambda *_: os.killpg(job, signal.SIGHUP))
tell(f"job {job}")
threading.Thread(target=watch).start()
for order in sys.stdin:
    if order == "fg\\n":
        os.tcsetpgrp(terminal, job)
    os.killpg(job, signal.SIGCONT)
"""

# A worker and a child in its group. Each says "up" and "continued", writes down which signal it was told
# to end by, and ends with 0. Signals are waited for, not caught: none slips in before a handler.
WORKER = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void say(const char* what) {
  char line[64];
  int length = snprintf(line, sizeof line, "%s %d\n", what, (int)getpid());
  if (write(1, line, (size_t)length) < 0) { }  /* the terminal may have gone */
}
int main(void) {
  sigset_t set;
  sigemptyset(&set);
  int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCONT};
  for (int i = 0; i < 5; ++i) sigaddset(&set, numbers[i]);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const char* who = fork() == 0 ? "child" : "worker";
  say("up");
  for (;;) {
    int number = sigwaitinfo(&set, NULL);
    if (number < 0) continue;  /* stopped and continued */
    if (number == SIGCONT) { say("continued"); continue; }
    char name[64];
    snprintf(name, sizeof name, "told.%s.%s.%s", who, getenv("RANK"), sigabbrev_np(number));
    close(open(name, O_CREAT | O_EXCL | O_WRONLY, 0600));
    return 0;
  }
}
"""
WORKER = "#define _GNU_SOURCE\n" + WORKER


class Terminal:
    """A pseudo-terminal, and the user before it."""

    def __init__(self):
        self._master, slave = os.openpty()
        self.name = os.ttyname(slave)
        self._slave = slave  # until a job has it; with no slave open the master would say EIO
        self._seen = b""

    def stop_background_writers(self):
        mode = termios.tcgetattr(self._slave)
        mode[3] |= termios.TOSTOP
        termios.tcsetattr(self._slave, termios.TCSANOW, mode)

    def press(self, keys):
        os.write(self._master, keys)

    def wait_for(self, pattern, timeout=harness.PATIENCE):
        """The match of the first text that fits after what earlier calls returned."""
        deadline = time.monotonic() + timeout
        while not (match := re.search(pattern.encode(), self._seen, re.MULTILINE)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._master], [], [], left)[0]:
                raise harness.HarnessError(f"no {pattern!r} at the terminal within {timeout} s: {self._seen}")
            self._seen += os.read(self._master, 65536)
        self._seen = self._seen[match.end():]
        return match

    def close(self):
        for fd in (self._master, self._slave):
            if fd >= 0:
                os.close(fd)
        self._master = self._slave = -1


@pytest.fixture
def terminal():
    made = Terminal()
    yield made
    made.close()


class Job:
    """elastic-run as a job of SHELL."""

    def __init__(self, shell, terminal, directory):
        self.shell = shell
        self._terminal = terminal
        self._directory = directory
        self.pid = int(shell.wait_for_line(r"^job (\d+)$", stream="stdout").group(1))

    def wait_for(self, pattern, timeout=harness.PATIENCE):
        """The next word of the shell about its job."""
        line = self.shell.wait_for_line("", timeout, stream="stdout").string.strip()
        assert re.fullmatch(pattern, line), f"the shell says {line!r}, not {pattern!r}"

    def all_say(self, word, count=4):
        """Waits until all have said so: two workers, and a child of each."""
        said = set()
        while len(said) < count:
            said.add(int(self._terminal.wait_for(rf"{word} (\d+)\r$").group(1)))

    def states(self):
        """One letter for each process but the shell: guardian, launcher, workers, their children."""
        return sorted(process.state for process in self.shell.processes() if process.pid != self.shell.pid)

    def told(self):
        """{who.rank: signal} of those that were told to end."""
        names = [path.name.split(".") for path in self._directory.glob("told.*")]
        return {f"{who}.{rank}": f"SIG{number}" for _, who, rank, number in names}

    def end_with_usr1(self):
        os.kill(self.pid, signal.SIGUSR1)
        self.wait_for("ended with 0")
        assert self.told() == all_of("SIGUSR1")


def all_of(number):
    return dict.fromkeys(["worker.0", "child.0", "worker.1", "child.1"], number)


@pytest.fixture
def begin(elastic_run, script, static_c, terminal, tmp_path):
    """begin("fg" or "bg"): elastic-run with two workers at the terminal, begun when all are up."""

    def start(begins="fg", *options, kind="usual", command=None):
        job = command or [elastic_run.binary, "--nproc-per-node=2", "--forward-signals=USR1",
                          "--max-restarts=3", *options, "--no-python", static_c(WORKER)]
        shell = elastic_run.start(terminal.name, begins, kind, *job,
                                  program=[sys.executable, script("shell.py", SHELL)], stdin=subprocess.PIPE,
                                  env={"OMP_NUM_THREADS": "1"})
        made = Job(shell, terminal, tmp_path)
        if command is None:
            made.all_say("up")
        return made

    return start


def order(job, text):
    job.shell.popen.stdin.write(f"{text}\n".encode())


# --- Keys

def test_ctrl_c_once_ends_the_job_in_order(begin, terminal, elastic_run):
    job = begin()
    terminal.press(CTRL_C)
    job.wait_for("ended with 1")
    assert job.told() == all_of("SIGINT")
    terminal.wait_for("elastic-run: stopped by SIGINT; all workers have ended\r\n")
    assert job.shell.wait().returncode == 0
    assert elastic_run.processes() == []


@pytest.mark.parametrize("how", ["fg", "bg"])
def test_ctrl_z_stops_the_whole_tree_and_the_shell_continues_all_of_it(begin, terminal, how):
    job = begin()
    for _ in range(2):
        terminal.press(CTRL_Z)
        job.wait_for("stopped by SIGTSTP")
        harness.wait_until(lambda: job.states() == ["T"] * 6, what="guardian, launcher, workers, children stop")
        order(job, how)
        job.wait_for("continued")
        job.all_say("continued")
        harness.wait_until(lambda: "T" not in job.states(), what="all go on")
        if how == "bg":  # Ctrl-Z is for the foreground
            break
    job.end_with_usr1()


def test_ctrl_c_ends_a_job_that_was_stopped_and_continued(begin, terminal):
    job = begin()
    terminal.press(CTRL_Z)
    job.wait_for("stopped by SIGTSTP")
    order(job, "fg")
    job.wait_for("continued")
    job.all_say("continued")
    terminal.press(CTRL_C)
    job.wait_for("ended with 1")
    assert job.told() == all_of("SIGINT")


def test_a_stopped_job_that_gets_sigterm_ends_in_order_once_it_is_continued(begin, terminal):
    """What bash's `kill %1` does."""
    job = begin()
    terminal.press(CTRL_Z)
    job.wait_for("stopped by SIGTSTP")
    os.kill(job.pid, signal.SIGTERM)
    order(job, "bg")
    job.wait_for("continued")
    job.wait_for("ended with 1")
    assert job.told() == all_of("SIGTERM")


@pytest.mark.parametrize("kind", ["usual", "adopts"])
@pytest.mark.parametrize("options", [[], ["--signals-to-handle=SIGTERM"]],
                         ids=["SIGHUP handled", "SIGHUP not handled"])
def test_a_stopped_job_is_ended_whole_when_the_outer_process_is_killed(begin, terminal, kind, options):
    """The launcher is stopped then, and nobody but the kernel is left to continue it."""
    job = begin("fg", *options, kind=kind)
    terminal.press(CTRL_Z)
    job.wait_for("stopped by SIGTSTP")
    os.kill(job.pid, signal.SIGKILL)
    job.wait_for("ended with -9")
    harness.wait_until(lambda: job.states() == [], what="launcher, workers and children end")
    job.shell.popen.stdin.close()
    assert job.shell.wait().returncode == 0


# A launcher of its own session, as `ssh -t host elastic-run` or `docker run -t` makes it.
LEADER = """\
import fcntl, os, sys, termios
fcntl.ioctl(os.open(sys.argv[1], os.O_RDWR), termios.TIOCSCTTY, 0)
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_ctrl_z_where_no_shell_could_continue_the_job_lets_it_go_on(
        elastic_run, script, static_c, terminal, tmp_path):
    running = elastic_run.start(terminal.name, elastic_run.binary, "--nproc-per-node=2", "--forward-signals=USR1",
                                "--no-python", static_c(WORKER), program=[sys.executable, script("l.py", LEADER)],
                                env={"OMP_NUM_THREADS": "1"})
    for _ in range(4):
        running.wait_for_line("^up", stream="stdout")
    for _ in range(2):
        terminal.press(CTRL_Z)
        for _ in range(4):  # they were stopped for a moment
            running.wait_for_line("^continued", stream="stdout")
    harness.wait_until(lambda: "T" not in {process.state for process in running.processes()}, what="all go on")
    running.send_signal(signal.SIGUSR1)
    assert running.wait().returncode == 0
    assert len(list(tmp_path.glob("told.*.USR1"))) == 4


# --- A real shell

@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_stops_and_continues_a_job(elastic_run, script, static_c, terminal):
    bash = elastic_run.start(terminal.name, "/bin/bash", "--norc", "--noprofile", "-i",
                             program=[sys.executable, script("l.py", LEADER.replace("os.execv", """\
for fd in (0, 1, 2):
    os.dup2(3, fd)
os.execv"""))], stdin=subprocess.DEVNULL, env={"PS1": "ready$ ", "TERM": "dumb", "HISTFILE": "/dev/null"})
    terminal.wait_for(r"ready\$ ")
    terminal.press(f"{elastic_run.binary} --forward-signals=USR1 --no-python {static_c(WORKER)}\n".encode())
    for _ in range(2):
        terminal.wait_for(r"^up \d+\r$")
    terminal.press(CTRL_Z)
    terminal.wait_for(r"Stopped.*\n")
    terminal.wait_for(r"ready\$ ")
    terminal.press(b"bg\n")
    for _ in range(2):
        terminal.wait_for(r"continued \d+\r$")
    terminal.press(b"kill -USR1 %1; wait %1; echo \"status $?\"\n")
    terminal.wait_for(r"^status 0\r$")
    terminal.press(b"exit\n")
    assert bash.wait().returncode == 0


# --- stty tostop

def test_a_background_job_writes_to_a_terminal_that_stops_others_for_it(begin, terminal, elastic_run, script):
    """A worker that writes, a warning at the start, one of a restart, and the failure report."""
    terminal.stop_background_writers()
    worker = script("worker.sh", "#!/bin/sh\necho a worker writes\nexit 7\n")
    job = begin("bg", command=[elastic_run.binary, "--max-restarts=1", "--no-python", worker])
    job.wait_for("ended with 1")  # and was not stopped before
    for text in ("a worker writes", r"restarting all workers \(restart 1 of 1\)", "a worker writes",
                 "error: the job failed; 1 of 1 restarts were used", "exited with code 7"):
        terminal.wait_for(text)


@pytest.mark.parametrize("command, text, status", [
    (["VIRTUAL_ENV=/nowhere", "PATH=/usr/bin:/bin", "{}", "/dev/null"], "/nowhere has no bin/python", 0),
    (["{}", "--nproc-per-node=none", "--no-python", "true"], "--nproc-per-node=none", 2),
])
def test_a_background_job_may_complain_about_how_it_was_started(
        begin, terminal, elastic_run, command, text, status):
    terminal.stop_background_writers()
    job = begin("bg", command=["/usr/bin/env", *(part.format(elastic_run.binary) for part in command)])
    job.wait_for(f"ended with {status}")
    terminal.wait_for(text)


def test_the_outer_process_tells_of_the_launchers_death_there(begin, terminal, elastic_run):
    terminal.stop_background_writers()
    job = begin("bg")
    (launcher,) = [process for process in job.shell.processes() if process.parent == job.pid]
    os.kill(launcher.pid, signal.SIGKILL)
    job.wait_for("ended with 1")
    terminal.wait_for(rf"the launcher \(process {launcher.pid}\) was killed by SIGKILL")


# --- The terminal goes away

@pytest.mark.parametrize("kind", ["usual", "tells"])
def test_the_job_ends_in_order_when_the_terminal_goes_away(begin, terminal, elastic_run, kind):
    """The shell dies of it, and the kernel tells the foreground; or the shell tells its jobs."""
    job = begin(kind=kind)
    terminal.close()
    if kind == "tells":
        job.wait_for("ended with 1")
    assert job.shell.wait().returncode == (0 if kind == "tells" else -signal.SIGHUP)
    harness.wait_until(lambda: not elastic_run.processes(), what="nothing is left")
    assert job.told() == all_of("SIGHUP")


def test_a_stopped_job_ends_in_order_when_the_terminal_goes_away(begin, terminal, elastic_run):
    job = begin()
    terminal.press(CTRL_Z)
    job.wait_for("stopped by SIGTSTP")
    terminal.close()
    assert job.shell.wait().returncode == -signal.SIGHUP
    harness.wait_until(lambda: not elastic_run.processes(), what="nothing is left")
    assert job.told() == all_of("SIGHUP")


# --- No job control

# Waits for the job, as often as Ctrl-C interrupts that.
SCRIPT = """\
"$0" "$@" & echo "job $!"
trap : INT
while kill -0 $! 2>/dev/null; do wait $!; status=$?; done
exit $status
"""


def test_ctrl_c_does_not_reach_a_job_that_a_script_put_into_the_background(elastic_run, static_c, tmp_path):
    """`&` without job control: same process group, SIGINT and SIGQUIT ignored by the shell."""
    running = elastic_run.start(elastic_run.binary, "--forward-signals=USR1", "--no-python", static_c(WORKER),
                                program=["sh", "-c", SCRIPT])
    pid = int(running.wait_for_line(r"^job (\d+)", stream="stdout").group(1))
    for _ in range(2):
        running.wait_for_line("^up", stream="stdout")
    assert os.getpgid(pid) == running.pid
    os.killpg(running.pid, signal.SIGINT)
    os.kill(pid, signal.SIGUSR1)
    assert running.wait().returncode == 0
    assert sorted(path.name for path in tmp_path.glob("told.*")) == ["told.child.0.USR1", "told.worker.0.USR1"]
