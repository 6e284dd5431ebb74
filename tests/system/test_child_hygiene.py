"""What a worker inherits: signals, limits, descriptors, directory, as elastic-run itself found them."""
# ctest: gate

import os
import pathlib
import re
import resource
import signal
import subprocess

import pytest
from harness import PATIENT

# Not every parent starts its children with all signals at their defaults: CI, nohup, `&` in a script.
EVERY_SIGNAL = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


def state_of(ignored=(), blocked=()):
    """A preexec_fn: exactly these signals are ignored and blocked when elastic-run starts."""

    def prepare():
        for number in EVERY_SIGNAL:
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    return prepare


def mask(numbers):
    return sum(1 << (number - 1) for number in numbers)


def status_fields(text):
    """What /proc/PID/status says, one dict for each worker that printed it."""
    found = []
    for line in text.splitlines():
        name, _, value = line.partition(":\t")
        if name == "Name":
            found.append({})
        if found:
            found[-1][name] = value.strip()
    return found


SHOW_STATUS = ["--no-python", "cat", "/proc/self/status"]


# --- Signals

@pytest.mark.parametrize("numbers", [
    [], [signal.SIGTERM], [signal.SIGCHLD], [signal.SIGUSR1, signal.SIGHUP],
    [signal.SIGINT, signal.SIGQUIT], [signal.SIGTSTP, signal.SIGTTOU, signal.SIGRTMIN],
], ids=lambda numbers: "+".join(number.name for number in numbers) or "none")
def test_ignored_and_blocked_signals_are_those_that_elastic_run_found(elastic_run, numbers):
    for ignored, blocked in [(numbers, []), ([], numbers), (numbers, numbers)]:
        result = elastic_run(*SHOW_STATUS, preexec_fn=state_of(ignored, blocked))
        assert (result.returncode, result.stderr) == (0, "")
        (worker,) = status_fields(result.stdout)
        assert int(worker["SigIgn"], 16) == mask(ignored)
        assert int(worker["SigBlk"], 16) == mask(blocked)
        assert int(worker["SigCgt"], 16) == 0


def test_sigpipe_has_its_default_action_whatever_elastic_run_found(elastic_run):
    for ignored in ([], [signal.SIGPIPE]):
        result = elastic_run(*SHOW_STATUS, preexec_fn=state_of(ignored))
        (worker,) = status_fields(result.stdout)
        assert int(worker["SigIgn"], 16) == 0


def test_signals_are_as_elastic_run_found_them_after_a_restart_too(elastic_run):
    result = elastic_run(
        "--max-restarts=1", "--no-python", "sh", "-c",
        '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && exec cat /proc/self/status; exit 1',
        preexec_fn=state_of([signal.SIGUSR1], [signal.SIGUSR2]))
    assert result.returncode == 0
    (worker,) = status_fields(result.stdout)
    assert int(worker["SigIgn"], 16) == mask([signal.SIGUSR1])
    assert int(worker["SigBlk"], 16) == mask([signal.SIGUSR2])


def test_exit_codes_are_seen_where_a_parent_left_sigchld_ignored_or_blocked(elastic_run):
    for prepare in (state_of([signal.SIGCHLD]), state_of([], [signal.SIGCHLD])):
        result = elastic_run("--no-python", "sh", "-c", "exit 23", preexec_fn=prepare)
        assert result.returncode == 1
        assert "exited with code 23" in result.stderr


# --- Limits

def limits_of(text):
    """The lines of /proc/PID/limits by the limit's name."""
    return {line[:26].strip(): line[26:].split() for line in text.splitlines()}


def test_the_worker_has_the_open_files_limit_that_elastic_run_found_and_raised_for_itself(elastic_run):
    def prepare():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))

    running = elastic_run.start("--no-python", "sh", "-c", "cat /proc/self/limits; echo shown; read line",
                                stdin=subprocess.PIPE, preexec_fn=prepare)
    running.wait_for_line("^shown$", stream="stdout")
    own = limits_of(pathlib.Path(f"/proc/{running.pid}/limits").read_text())
    running.popen.stdin.write(b"\n")
    result = running.wait()
    assert result.returncode == 0
    assert own["Max open files"][:2] == ["4096", "4096"]
    assert limits_of(result.stdout)["Max open files"][:2] == ["64", "4096"]


def test_all_other_limits_stay(elastic_run):
    wanted = {resource.RLIMIT_CORE: (0, 12345), resource.RLIMIT_STACK: (1 << 20, 1 << 22),
              resource.RLIMIT_MEMLOCK: (4096, 8192), resource.RLIMIT_FSIZE: (1 << 30, 1 << 31)}

    def prepare():
        for which, pair in wanted.items():
            resource.setrlimit(which, pair)

    shown = limits_of(elastic_run("--no-python", "cat", "/proc/self/limits", preexec_fn=prepare).stdout)
    names = ["Max core file size", "Max stack size", "Max locked memory", "Max file size"]
    assert [tuple(map(int, shown[name][:2])) for name in names] == list(wanted.values())


def test_more_workers_than_the_soft_limit_of_descriptors_allows_are_started(elastic_run):
    result = elastic_run("--nproc-per-node=120", "--no-python", "sh", "-c", "echo; exec sleep 0.01",
                         env={"OMP_NUM_THREADS": "1"} | PATIENT,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 1024)))
    assert (result.returncode, result.stdout, result.stderr) == (0, "\n" * 120, "")


# --- Directory, umask, session

def test_working_directory_and_umask_stay(elastic_run, tmp_path):
    place = tmp_path / "elsewhere"
    place.mkdir()
    result = elastic_run("--no-python", "sh", "-c", "pwd -P; umask", cwd=place, umask=0o027)
    assert result.stdout == f"{place}\n0027\n"


def test_every_worker_leads_a_session_and_a_group_of_its_own(elastic_run):
    result = elastic_run("--nproc-per-node=2", "--no-python", "cat", "/proc/self/stat")
    workers = [line.split() for line in result.stdout.splitlines()]
    assert len({worker[0] for worker in workers}) == 2
    for pid, _, _, parent, group, session, terminal, *_ in workers:
        assert pid == group == session
        assert parent != "1" and terminal == "0"


def test_nice_value_and_cpu_affinity_stay(elastic_run):
    def prepare():
        os.nice(5)
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    cpu = max(os.sched_getaffinity(0))
    result = elastic_run("--no-python", "sh", "-c", "grep Cpus_allowed_list /proc/self/status; nice",
                         preexec_fn=prepare)
    assert result.stdout == f"Cpus_allowed_list:\t{cpu}\n5\n"


# --- Descriptors

# Prints each descriptor that is open in it, with what it leads to.
SHOW_DESCRIPTORS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
  for (int fd = 0; fd < 5000; ++fd) {
    char path[64], target[4096];
    if (fcntl(fd, F_GETFD) < 0) continue;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(path, target, sizeof target - 1);
    if (size < 0) size = 0;
    dprintf(1, "%d %.*s\n", fd, (int)size, target);
  }
  return 0;
}
"""


@pytest.mark.parametrize("options", [["--stderr-tail=never"], []])
def test_a_worker_has_stdin_and_stdout_of_elastic_run_a_stderr_and_nothing_else(
        elastic_run, static_c, tmp_path, options):
    (tmp_path / "input").write_text("")
    with open(tmp_path / "input") as given, open(tmp_path / "errors", "w") as errors:
        running = elastic_run.start("--nproc-per-node=2", *options, "--no-python", static_c(SHOW_DESCRIPTORS),
                                    stdin=given, stderr=errors, env={"OMP_NUM_THREADS": "1"})
        result = running.wait()
    pipe = running.stdout.inode
    # What ends in the failure report passes through a pipe of the launcher.
    shown = [re.sub(r"^2 pipe:.*", f"2 {tmp_path}/errors", line) if not options else line
             for line in result.stdout.splitlines()]
    expected = [f"0 {tmp_path}/input", f"1 pipe:[{pipe}]", f"2 {tmp_path}/errors"]
    assert sorted(shown) == sorted(expected * 2)


def test_a_descriptor_that_elastic_run_inherited_does_not_reach_its_workers(
        elastic_run, static_c, tmp_path):
    low = os.open(tmp_path, os.O_RDONLY)
    high = os.dup2(low, 900)
    try:
        result = elastic_run("--no-python", static_c(SHOW_DESCRIPTORS), pass_fds=(low, high))
    finally:
        os.close(low)
        os.close(high)
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["0", "1", "2"]


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]])
def test_a_standard_stream_that_was_closed_is_dev_null_and_never_a_file_of_the_launcher(
        elastic_run, static_c, tmp_path, closed):
    show = static_c(SHOW_DESCRIPTORS.replace("dprintf(1, ", "dprintf(report, ").replace(
        "int main(void) {", 'int main(void) {\n  int report = open("shown", O_WRONLY | O_CREAT, 0600);'))

    def prepare():
        for fd in closed:
            os.close(fd)

    result = elastic_run("--stderr-tail=never", "--no-python", show, preexec_fn=prepare)
    assert (result.returncode, result.stderr) == (0, "")
    shown = dict(line.split(" ", 1) for line in (tmp_path / "shown").read_text().splitlines())
    assert sorted(shown) == ["0", "1", "2", "3"] and shown["3"] == f"{tmp_path}/shown"
    assert [shown[str(fd)] for fd in closed] == ["/dev/null"] * len(closed)


def test_stdin_reaches_the_worker(elastic_run):
    text = "".join(f"line {i}\n" for i in range(5000))
    assert elastic_run("--no-python", "cat", stdin=text).stdout == text


def test_a_worker_that_waits_for_stdin_gets_it_while_it_runs(elastic_run):
    running = elastic_run.start("--no-python", "cat", stdin=subprocess.PIPE)
    for word in ("first", "second"):
        running.popen.stdin.write(f"{word}\n".encode())
        running.wait_for_line(f"^{word}$", stream="stdout")
    running.popen.stdin.close()
    assert running.wait().returncode == 0


def test_a_reader_that_has_gone_ends_the_worker_by_sigpipe_and_elastic_run_in_order(elastic_run, tmp_path):
    reading, writing = os.pipe()
    running = elastic_run.start("--no-python", "sh", "-c", "echo begun >&2; while echo more; do :; done",
                                stdout=writing)
    os.close(writing)
    running.wait_for_line("^begun$")
    os.close(reading)
    result = running.wait()
    assert result.returncode == 1
    assert "was killed by SIGPIPE" in result.stderr
