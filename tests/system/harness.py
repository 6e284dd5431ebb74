"""Programs under test: started with a clean environment, watched, and never left behind.

A test meets this through the fixture `elastic_run` of conftest.py; README.md shows how.
"""

import contextlib
import ctypes
import dataclasses
import hashlib
import os
import pathlib
import re
import select
import signal
import subprocess
import threading
import time
import uuid

# In the environment of everything that a test starts, so that it is found again whoever is its
# parent by then. The value belongs to one test.
MARKER = "ELASTIC_RUN_TEST_ID"

# Bounds for what is expected, in seconds: they end a test that fails, so that a machine with much other work needs them
# large and no test is slower for it.
PATIENCE = 60  # for a line, or a state
RUN_PATIENCE = 120  # for the end of a program
OUTPUT_PATIENCE = 20  # for the end of its output after that

# elastic-run, too, waits for what is outside before it calls it hung. Where that it does not hang is what is tested, it
# waits twenty times as long.
PATIENT = {"ELASTIC_RUN_PATIENCE": "20"}

SANITIZER_STATUS = 99
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
SANITIZER_REPORT = re.compile(
    rb"(Address|Leak|UndefinedBehavior)Sanitizer:|^\S+:\d+:\d+: runtime error: ", re.MULTILINE)


class HarnessError(AssertionError):
    """A test failed in what the harness holds for it: time, leftovers, sanitizers."""


@dataclasses.dataclass(frozen=True)
class Process:
    """A process as /proc tells of it."""

    pid: int
    parent: int
    group: int
    session: int
    state: str  # one letter: R, S, D, T, Z, ...
    start: int  # clock ticks after boot; with the pid it names one process for ever
    name: str
    command: str

    def __str__(self):
        return (f"pid {self.pid} (parent {self.parent}, group {self.group}, session {self.session}, "
                f"state {self.state}): {self.command or self.name}")


def read_process(pid):
    """The process of that number, a zombie too; None if there is none."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="surrogateescape")
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    name = stat[stat.index("(") + 1:stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2:].split()
    return Process(pid=int(pid), parent=int(fields[1]), group=int(fields[2]), session=int(fields[3]),
                   state=fields[0], start=int(fields[19]), name=name,
                   command=command.rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace"))


def alive(pid):
    """True while the process runs; a zombie, which only waits to be reaped, does not."""
    process = read_process(pid)
    return process is not None and process.state not in "ZX"


def marked_processes(marker):
    """Everything alive that was started with this marker in its environment."""
    wanted = f"{MARKER}={marker}".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:  # gone, or not ours to look at
            continue
        if wanted in environment.split(b"\0"):
            process = read_process(pid)
            if process is not None and process.state not in "ZX":
                found.append(process)
    return found


def ends_with_the_tests():
    """A preexec_fn for daemons of others: SIGKILL when the test's own process dies, as ctest ends one that hangs."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def kill_marked(marker, timeout=PATIENCE):
    """Ends everything with this marker by SIGKILL; returns what could not be ended in time."""
    deadline = time.monotonic() + timeout
    while found := marked_processes(marker):
        for process in found:
            try:
                handle = os.pidfd_open(process.pid)
            except ProcessLookupError:
                continue
            try:
                # The number may have been given to another process before the handle was there.
                again = read_process(process.pid)
                if again and again.start == process.start:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    select.select([handle], [], [], 0.2)
            except ProcessLookupError:
                pass
            finally:
                os.close(handle)
        if time.monotonic() > deadline:
            return marked_processes(marker)
    return []


def wait_until(condition, timeout=PATIENCE, what=None):
    """Returns the condition's first true value. For what sends no event, such as /proc; otherwise
    wait for a line or for the end of a process."""
    deadline = time.monotonic() + timeout
    while True:
        if value := condition():
            return value
        if time.monotonic() > deadline:
            raise HarnessError(f"did not come true within {timeout} s: {what or condition}")
        time.sleep(0.005)


def wait_until_readable(file, milliseconds=None):
    """False if it is not within that time; its end can be read, too."""
    looking = select.poll()
    looking.register(file, select.POLLIN)
    return bool(looking.poll(milliseconds))


def before_others():
    """A preexec_fn for what the program does in a short time of its own choice: other work of the machine does not hold it
    up, where we may say so."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)


class Output:
    """One output stream of a process, read as it arrives."""

    def __init__(self, file):
        self.inode = os.fstat(file.fileno()).st_ino  # while the file is open: it is closed at the end of the stream
        self._file = file
        self._data = bytearray()
        self._seen = 0  # where the next wait_for_line begins
        self._ended = False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while not self._ended:
            wait_until_readable(self._file)
            with self._changed:
                self._take()
        self._file.close()

    def _take(self):
        """Reads all that is there now."""
        while not self._ended and wait_until_readable(self._file, 0):
            try:
                piece = os.read(self._file.fileno(), 65536)
            except OSError:  # a terminal says EIO where a pipe says end
                piece = b""
            self._data += piece
            self._ended = not piece
            self._changed.notify_all()

    @property
    def data(self):
        """All that was written until now: what was there before something else was seen is in it."""
        with self._changed:
            self._take()
            return bytes(self._data)

    @property
    def text(self):
        return self.data.decode("utf-8", "surrogateescape")

    def wait_for_end(self, timeout):
        with self._changed:
            return self._changed.wait_for(lambda: self._ended, timeout)

    def wait_for_line(self, pattern, timeout):
        """The match of the first whole line that fits and that no earlier call returned or passed
        over; None if the stream ends or the time is up before."""
        pattern = re.compile(pattern)
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                while (end := self._data.find(b"\n", self._seen)) >= 0:
                    line = bytes(self._data[self._seen:end]).decode("utf-8", "surrogateescape")
                    self._seen = end + 1
                    if match := pattern.search(line.rstrip("\r")):
                        return match
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    return None
                self._changed.wait(left)


@dataclasses.dataclass(frozen=True)
class Result:
    """How a program ended. A negative returncode is the signal that killed it, as in subprocess."""

    command: list
    returncode: int
    stdout_bytes: bytes
    stderr_bytes: bytes
    duration: float  # seconds

    @property
    def stdout(self):
        return self.stdout_bytes.decode("utf-8", "surrogateescape")

    @property
    def stderr(self):
        return self.stderr_bytes.decode("utf-8", "surrogateescape")

    def __repr__(self):  # what pytest shows of a failed `assert result.returncode == 0`
        return (f"<{self.command} ended with {self.returncode} after {self.duration:.2f} s\n"
                f"--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}\n--->")


class Running:
    """A program that was started and not yet waited for."""

    def __init__(self, command, popen, owner):
        self.command = command
        self.pid = popen.pid
        self.popen = popen
        self._owner = owner
        self._began = time.monotonic()
        self.stdout = Output(popen.stdout) if popen.stdout else None
        self.stderr = Output(popen.stderr) if popen.stderr else None

    def send_signal(self, number):
        self.popen.send_signal(number)

    def wait_for_line(self, pattern, timeout=PATIENCE, stream="stderr"):
        """The match of the next line of that stream that fits, read as it arrives. Lines before it
        are passed over. Fails when the stream ends or the time is up without it."""
        match = getattr(self, stream).wait_for_line(pattern, timeout)
        if match is None:
            raise HarnessError(f"no line like {pattern!r} on {stream} within {timeout} s " +
                               f"({self._state()})\n{self.so_far()}")
        return match

    def wait(self, timeout=RUN_PATIENCE):
        """Waits for the end of the program and of its output. When the time is up, everything that
        it started is killed and the test fails with the output so far."""
        try:
            status = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise HarnessError(f"still running after {timeout} s:\n{self._give_up()}") from None
        duration = time.monotonic() - self._began
        for stream in filter(None, (self.stdout, self.stderr)):
            # Whoever keeps the pipe open after the program's end has been left behind.
            if not stream.wait_for_end(OUTPUT_PATIENCE):
                raise HarnessError("ended, but its output is held open:\n" + self._give_up())
        result = Result(self.command, status, self.stdout.data if self.stdout else b"",
                        self.stderr.data if self.stderr else b"", duration)
        self._owner.check_sanitizers(result.stderr_bytes)
        return result

    def wait_for_pids(self, count):
        """The numbers of so many processes, each of which writes "up <pid>" in a line to stdout."""
        return [int(self.wait_for_line(r"^up (\d+)", stream="stdout").group(1)) for _ in range(count)]

    def insist(self, number):
        """Sends a signal again and again until the program has ended. Returns the seconds it took."""
        began = time.monotonic()
        while self.popen.poll() is None:
            if time.monotonic() > began + PATIENCE:
                raise HarnessError(f"still running in spite of signal {number}:\n{self._give_up()}")
            self.send_signal(number)
            try:
                self.popen.wait(0.05)  # the end would end this wait
            except subprocess.TimeoutExpired:
                pass
        return time.monotonic() - began

    def launcher(self):
        """The pid of elastic-run's inner process, which starts the workers; the outer one is `pid`."""
        return wait_until(lambda: next((process.pid for process in self.processes()
                                        if process.parent == self.pid), None), what="a launcher")

    def processes(self):
        """Everything alive that this test started, this program among it."""
        return self._owner.processes()

    def _state(self):
        try:
            # Its output ends a moment before the program does.
            return f"it ended with {self.popen.wait(0.5)}"
        except subprocess.TimeoutExpired:
            return "still running"

    def so_far(self):
        """Its command line, and what it has written."""
        parts = [f"{self.command}"]
        for name in ("stdout", "stderr"):
            if stream := getattr(self, name):
                parts.append(f"--- {name}\n{stream.text}")
        return "\n".join(parts)

    def _give_up(self):
        tree = "\n".join(map(str, self.processes()))
        self._owner.kill_all()
        others = "".join(f"\n--- beside it\n{each.so_far()}" for each in self._owner.started if each is not self)
        return f"{self.so_far()}\n--- processes\n{tree}{others}"


class Programs:
    """Starts programs for one test and sees to it that none is left. Called like a function it runs
    elastic-run to its end; `start` returns while it runs."""

    def __init__(self, binary, directory, path_first):
        self.binary = binary
        self.marker = uuid.uuid4().hex
        self.directory = directory  # cwd of the programs, unless the test names another
        self.home = directory / "home"
        self.temporary = directory / "tmp"
        for made in (self.home, self.temporary):
            made.mkdir()
        self._sanitizer_log = directory / "sanitizer"
        self._path_first = path_first
        self.started = []

    def environment(self, changes=None):
        """The whole environment of a program: nothing of the tests' own gets in. A value None
        takes a variable away."""
        values = {
            "PATH": f"{self._path_first}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            MARKER: self.marker,
        }
        if is_sanitized(self.binary):
            for name, options in SANITIZER_OPTIONS.items():
                values[name] = f"{options}:exitcode={SANITIZER_STATUS}:log_path={self._sanitizer_log}"
        values.update(changes or {})
        return {name: value for name, value in values.items() if value is not None}

    def __call__(self, *arguments, timeout=RUN_PATIENCE, **options):
        """Runs it to its end, see start(); returns a Result."""
        return self.start(*arguments, **options).wait(timeout)

    def start(self, *arguments, env=None, cwd=None, stdin=None, program=None, **popen):
        """Starts elastic-run, or the command line `program`, in a session of its own.

        `env`: what is different from environment(). `stdin`: str or bytes that it reads, or
        anything that subprocess takes; nothing by default. `popen`: whatever else subprocess.Popen
        takes, such as stdout=, pass_fds=, umask=; an output stream that goes elsewhere is not read.
        """
        command = [os.fspath(part) if isinstance(part, os.PathLike) else part
                   for part in [*(program or [self.binary]), *arguments]]
        text = stdin.encode() if isinstance(stdin, str) else stdin
        given = isinstance(text, bytes)
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True} | popen
        started = subprocess.Popen(
            command, env=self.environment(env), cwd=cwd or self.directory, bufsize=0,
            stdin=subprocess.PIPE if given else subprocess.DEVNULL if stdin is None else stdin, **popen)
        running = Running(command, started, self)
        self.started.append(running)
        if given:
            threading.Thread(target=feed, args=(started.stdin, text), daemon=True).start()
        return running

    def processes(self):
        return marked_processes(self.marker)

    def kill_all(self):
        """Ends everything that this test started."""
        stuck = {process.pid for process in kill_marked(self.marker)}
        for running in self.started:
            if running.pid not in stuck:
                running.popen.kill()  # does nothing to what has been waited for
                running.popen.wait(PATIENCE)

    def finish(self, patience=5.0):
        """The end of a test: fails if anything that it started is left. What is dying already has
        `patience` seconds to be gone."""
        deadline = time.monotonic() + patience
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.005)
        if left:
            self.kill_all()
            raise HarnessError("left behind by this test (killed now):\n" + "\n".join(map(str, left)))
        self.check_sanitizers(b"")

    def _left(self):
        """What is alive of this test: by its marker, or because we started it without one."""
        left = {process.pid: process for process in self.processes()}
        for running in self.started:
            if running.popen.poll() is None and (process := read_process(running.pid)):
                left[running.pid] = process
        return list(left.values())

    def check_sanitizers(self, stderr):
        reports = [stderr] if SANITIZER_REPORT.search(stderr) else []
        for file in self.directory.glob(self._sanitizer_log.name + ".*"):
            reports.append(file.read_bytes())
            file.unlink()  # told once
        if reports:
            raise HarnessError("a sanitizer found something:\n" +
                               b"\n".join(reports).decode("utf-8", "replace"))


# Runs a program under a filter that answers some system calls with an error: "38 424-999" is ENOSYS for
# those numbers, "1 434" EPERM for that one.
SYSTEM_CALL_FILTER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char** argv) {
  unsigned error = 0, first = 0, last = 0;
  if (argc < 3) return 120;
  int read = sscanf(argv[1], "%u %u-%u", &error, &first, &last);
  if (read < 2) return 121;
  if (read == 2) last = first;
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 122;
  execvp(argv[2], argv + 2);
  return 123;
}
"""


# Linux 4.18, the kernel of RHEL 8, knows rseq; what x86-64 has behind it came later. On other machines the table ends
# elsewhere, and has the numbers from 424 on in common.
YOUNGER_THAN_4_18 = "38 335-999" if os.uname().machine == "x86_64" else "38 424-999"


def feed(stream, data):
    try:
        with stream:
            stream.write(data)
    except BrokenPipeError:  # it ended, or does not read
        pass


def is_sanitized(binary):
    """True if the binary was built with the address sanitizer."""
    try:
        key = (os.fspath(binary), os.stat(binary).st_mtime_ns)
    except OSError:
        return False
    if key not in _sanitized:
        _sanitized[key] = b"__asan_init" in pathlib.Path(binary).read_bytes()
    return _sanitized[key]


_sanitized = {}


class StaticC:
    """Compiles small C programs, each once in a session."""

    def __init__(self, directory):
        self._directory = directory

    def __call__(self, source):
        """The path of a static executable made from the text of one C file."""
        path = self._directory / hashlib.sha256(source.encode()).hexdigest()[:16]
        if not path.exists():
            made = subprocess.run(["gcc", "-O1", "-static", "-Wall", "-x", "c", "-", "-o", path],
                                  input=source, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                raise HarnessError(f"the C program of this test does not compile:\n{made.stderr}")
        return path
