"""A console that is slow, stopped or gone stops no training and costs no log; on a terminal workers see a terminal."""
# ctest: clock
# ctest: computes

import array
import ctypes
import fcntl
import os
import re
import select
import subprocess
import termios
import threading

import harness
import pytest
from file_server import RENAME

SH = ["--no-python", "sh", "-c"]
QUIET = {"OMP_NUM_THREADS": "1"}

# Writes so many numbered lines of 100 bytes to a descriptor at once, 64 KiB a time, then makes the file "done.RANK".
WRITER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  static char text[65500];
  long count = atol(argv[1]);
  int fd = argc > 2 ? atoi(argv[2]) : 1;
  for (long i = 0; i < count;) {
    size_t size = 0;
    for (; i < count && size < sizeof text; ++i, size += 100) {
      char line[101];
      snprintf(line, sizeof line, "%s:%-97ld\n", getenv("RANK"), i);
      memcpy(text + size, line, 100);
    }
    for (size_t at = 0; at < size;) {
      ssize_t wrote = write(fd, text + at, size - at);
      if (wrote < 0) return 9;
      at += (size_t)wrote;
    }
  }
  char name[32];
  snprintf(name, sizeof name, "done.%s", getenv("RANK"));
  close(open(name, O_CREAT | O_WRONLY, 0600));
  return 0;
}
"""
MANY = 200_000  # lines of one rank, 20 MB: more than pipe, buffer and console hold


def text_of(rank, count=MANY):
    return b"".join(b"%d:%-97d\n" % (rank, line) for line in range(count))


def prefixed(rank, count):
    return b"".join(b"[default%d]:%d:%-97d\n" % (rank, rank, line) for line in range(count))


def log_of(directory, rank, name="stdout"):
    (run,) = directory.iterdir()
    return (run / f"attempt_0/{rank}/{name}.log").read_bytes()


def dropped_in(stderr, lead=""):
    """The numbers of lines in the messages about what was dropped."""
    return [int(lines) for lines in re.findall(
        rf"^elastic-run: warning: {lead}(\d+) lines? \(\d+ bytes\) of worker output (?:was|were) dropped",
        stderr, re.MULTILINE)]


class Console:
    """A pipe whose reader reads when it is told to."""

    def __init__(self):
        self.reading, self.writing = os.pipe()

    def close(self):
        for name in ("reading", "writing"):
            if (fd := getattr(self, name)) is not None:
                os.close(fd)
                setattr(self, name, None)

    def handed_over(self):
        """Only the programs have its other end from now on."""
        os.close(self.writing)
        self.writing = None

    def read(self):
        with open(self.reading, "rb") as file:
            self.reading = None
            return file.read()


@pytest.fixture
def console():
    made = Console()
    yield made
    made.close()


# --- Nobody reads

@pytest.mark.parametrize("stream, fd", [("stdout", 1), ("stderr", 2)])
def test_a_console_that_nobody_reads_does_not_stop_training_and_the_logs_are_complete(
        elastic_run, static_c, tmp_path, console, stream, fd):
    running = elastic_run.start("--nproc-per-node=2", "--log-dir=logs", "-t", "3", "--no-python", static_c(WRITER),
                                str(MANY), str(fd), env=QUIET, **{stream: console.writing})
    console.handed_over()
    running.popen.wait(harness.RUN_PATIENCE)
    assert all((tmp_path / f"done.{rank}").exists() for rank in (0, 1))
    result = running.wait()
    assert result.returncode == 0
    for rank in (0, 1):
        same = log_of(tmp_path / "logs", rank, stream) == text_of(rank)
        assert same
    shown = console.read()
    assert len(shown) <= 65536  # what a pipe holds
    if stream == "stdout":  # where it can be told
        (lost,) = dropped_in(result.stderr, "stdout: ")
        # Of what was written at once a part may have been taken: lines cut there may count or not, or twice.
        assert abs(2 * MANY - lost - shown.count(b"\n")) <= 1


def test_a_console_that_is_stopped_gets_whole_lines_and_one_message_once_it_goes_on(
        elastic_run, static_c, tmp_path, console):
    """Ctrl-S, or `| less`: what fitted the buffer comes, then the message in the place of the rest, then the
    lines that follow."""
    os.mkfifo(tmp_path / "go")
    script = f'{static_c(WRITER)} {MANY} 2; read line < go; echo "goes on" >&2'
    running = elastic_run.start("--log-dir=logs", "-t", "2", *SH, script, env=QUIET, stderr=console.writing)
    console.handed_over()
    harness.wait_until((tmp_path / "done.0").exists, what="the worker has written all")
    # The launcher has read what its pipe still held once the log is complete, and dropped that once it waits for more.
    launcher = running.launcher()
    harness.wait_until(lambda: len(log_of(tmp_path / "logs", 0, "stderr")) == 100 * MANY and
                       harness.read_process(launcher).state == "S", what="the log is complete")
    seen = bytearray()
    while not re.search(rb"dropped: .*\n", seen):
        seen += os.read(console.reading, 65536)
    (tmp_path / "go").write_text("go\n")
    seen += console.read()
    assert running.wait().returncode == 0
    *lines, message, after = seen.decode().splitlines()
    assert after == "[default0]:goes on"
    (lost,) = dropped_in(message)
    assert [line.rstrip() for line in lines] == [f"[default0]:0:{number}" for number in range(MANY - lost)]
    assert lost > 0


@pytest.mark.parametrize("stream, fd", [("stdout", 1), ("stderr", 2)])
def test_a_console_that_goes_away_does_not_stop_training_and_the_logs_are_complete(
        elastic_run, static_c, tmp_path, console, stream, fd):
    running = elastic_run.start("--nproc-per-node=2", "--log-dir=logs", "-t", "3", "--no-python", static_c(WRITER),
                                str(MANY), str(fd), env=QUIET, **{stream: console.writing})
    console.handed_over()
    assert os.read(console.reading, 1)
    os.close(console.reading)
    console.reading = None
    result = running.wait()
    assert result.returncode == 0, result
    for rank in (0, 1):
        same = log_of(tmp_path / "logs", rank, stream) == text_of(rank)
        assert same
    if stream == "stdout":
        assert len(dropped_in(result.stderr, "stdout: ")) == 1, result


def test_stderr_without_tee_that_nobody_reads_does_not_stop_training(elastic_run, static_c, tmp_path, console):
    running = elastic_run.start("--nproc-per-node=2", "--no-python", static_c(WRITER), str(MANY), "2", env=QUIET,
                                stderr=console.writing)
    console.handed_over()
    assert running.wait().returncode == 0
    assert all((tmp_path / f"done.{rank}").exists() for rank in (0, 1))


def test_a_restart_needs_no_console(elastic_run, static_c, tmp_path, console):
    running = elastic_run.start("--max-restarts=3", "--log-dir=logs", "-t", "3", *SH, f"""
        {static_c(WRITER)} {MANY} 1; echo "$TORCHELASTIC_RESTART_COUNT" >> rounds
        [ $TORCHELASTIC_RESTART_COUNT = 3 ]""", env=QUIET, stdout=console.writing)
    console.handed_over()
    assert running.wait().returncode == 0
    assert (tmp_path / "rounds").read_text() == "0\n1\n2\n3\n"


# --- Slow

def test_a_console_that_begins_to_read_late_gets_all_that_fits_the_buffer(elastic_run, static_c, tmp_path, console):
    """Also what was written right before the end: as long as the reader goes on, it is waited for."""
    running = elastic_run.start("--log-dir=logs", "-t", "1", "--no-python", static_c(WRITER), "30000",
                                env=QUIET | harness.PATIENT, stdout=console.writing)
    console.handed_over()
    harness.wait_until((tmp_path / "done.0").exists)
    text = console.read()
    assert running.wait().returncode == 0
    same = text == prefixed(0, 30_000)
    assert same, text.count(b"\n")


def test_lines_dropped_for_a_slow_console_are_whole_and_all_are_counted(elastic_run, static_c, tmp_path, console):
    running = elastic_run.start("--nproc-per-node=2", "--log-dir=logs", "-t", "1", "--no-python", static_c(WRITER),
                                str(MANY), env=QUIET, stdout=console.writing)
    console.handed_over()
    text = bytearray()
    while piece := os.read(console.reading, 4096):
        text += piece
        # So slow that workers are done long before: a page for each of 2,500 lines of theirs.
        if not all((tmp_path / f"done.{rank}").exists() for rank in (0, 1)):
            select.select([], [], [], 0.02)
    result = running.wait()
    assert result.returncode == 0
    shown = text.decode().splitlines()
    assert all(re.fullmatch(r"\[default([01])\]:\1:\d+ *", line) and len(line) == 99 + 11 for line in shown)
    for rank in "01":
        numbers = [int(line[13:]) for line in shown if line[8] == rank]
        assert numbers == sorted(set(numbers))
    assert dropped_in(result.stderr, "stdout: ") == [2 * MANY - len(shown)]


# --- O_NONBLOCK

@pytest.mark.parametrize("stream, fd", [("stdout", 1), ("stderr", 2)])
def test_a_console_whose_open_file_does_not_block_gets_everything(
        elastic_run, static_c, console, stream, fd):
    """As node and some shells leave it behind: a full pipe is EAGAIN there."""
    os.set_blocking(console.writing, False)
    running = elastic_run.start("--log-dir=logs", "-t", "3", "--no-python", static_c(WRITER), "20000", str(fd),
                                env=QUIET, **{stream: console.writing})
    console.handed_over()
    text = console.read()
    assert running.wait().returncode == 0
    same = text == prefixed(0, 20_000)
    assert same, text.count(b"\n")


# --- The failure report at such a console

def test_the_end_is_not_held_up_by_a_console_that_nobody_reads(elastic_run, static_c, console):
    running = elastic_run.start(*SH, f"{static_c(WRITER)} {MANY} 2; exit 3", env=QUIET, stderr=console.writing)
    console.handed_over()
    assert running.wait().returncode == 1


# --- Log files that cannot be written

def mounted(directory, kind, options):
    """A preexec_fn: such a file system at `directory`, in a namespace that goes with the process."""
    def mount():
        libc = ctypes.CDLL(None, use_errno=True)
        if (libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x4000 | 1 << 18, None) or
                libc.mount(b"none", os.fsencode(directory), kind, 0, options)):
            raise OSError(ctypes.get_errno(), "cannot mount")
    return mount


@pytest.fixture
def full_disk(tmp_path):
    """full_disk(options): the preexec_fn that makes `logs` a tmpfs of that size."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    (tmp_path / "logs").mkdir()
    return lambda options: mounted(tmp_path / "logs", b"tmpfs", options)


@pytest.mark.parametrize("count", [1000, MANY])
def test_a_full_disk_costs_the_rest_of_the_logs_one_warning_each_and_no_training(
        elastic_run, static_c, tmp_path, full_disk, count):
    result = elastic_run("--log-dir=logs", "-t", "1", "--no-python", static_c(WRITER), str(count), env=QUIET,
                         preexec_fn=full_disk(b"size=64k"))
    assert result.returncode == 0, result
    assert (tmp_path / "done.0").exists()
    assert result.stdout_bytes.count(b"\n") + sum(dropped_in(result.stderr, "stdout: ")) == count
    warnings = re.findall(r"warning: cannot write (\S+): (.*)\n", result.stderr)
    assert [text for _, text in warnings] == ["No space left on device; what follows is not kept"], result.stderr
    assert warnings[0][0].endswith("/attempt_0/0/stdout.log")


@pytest.mark.parametrize("stream, fd", [("stdout", 1), ("stderr", 2)])
def test_a_disk_that_gets_full_before_a_restart_costs_the_logs_and_no_training(
        elastic_run, tmp_path, full_disk, stream, fd):
    """No directory can be made any more."""
    result = elastic_run("--max-restarts=2", "--log-dir=logs", "-t", str(fd), *SH, f"""
        echo "$TORCHELASTIC_RESTART_COUNT" >&{fd}
        i=0; while mkdir "logs/fills.$i" 2> /dev/null; do i=$((i+1)); done
        [ $TORCHELASTIC_RESTART_COUNT = 2 ]""", env=QUIET, preexec_fn=full_disk(b"nr_inodes=40"))
    assert result.returncode == 0, result
    lines = [line for line in getattr(result, stream).splitlines() if re.fullmatch(r"(\[default0\]:)?\d", line)]
    assert [line[-1] for line in lines] == ["0", "1", "2"]


# --- A log directory that hangs in the middle of writing, or is slow

@pytest.mark.parametrize("restarts", [0, 1])
def test_training_goes_on_and_ends_where_the_log_directory_stops_answering_in_the_middle(
        elastic_run, static_c, tmp_path, file_server, sanitized, restarts):
    if sanitized and restarts:
        pytest.skip("that build starts workers by plain vfork, which copies all descriptors (docs/supervision.md)")
    server = file_server(deaf_after=1_000_000)
    running = elastic_run.start("--log-dir=logs", f"--max-restarts={restarts}", "-t", "3", *SH, f"""
        {static_c(WRITER)} {MANY} 1; {static_c(WRITER)} {MANY} 2; echo "$TORCHELASTIC_RESTART_COUNT" >> rounds
        [ $TORCHELASTIC_RESTART_COUNT = {restarts} ]""", env=QUIET, preexec_fn=server.mount_here)
    server.start()
    running.popen.wait(harness.RUN_PATIENCE)
    assert server.asked.is_set()
    server.close()
    result = running.wait()
    assert result.returncode == 0, result
    assert (tmp_path / "rounds").read_text() == "".join(f"{number}\n" for number in range(restarts + 1))
    assert re.search(r"warning: /\S+/logs/\S+ does not answer", result.stderr), result.stderr[-3000:]


def test_a_disk_that_only_is_slow_gets_everything(elastic_run, static_c, tmp_path, file_server):
    """Workers wait for it: a log is not dropped."""
    server = file_server(write_seconds=0.005, write_bytes=65536)
    running = elastic_run.start("--log-dir=logs", "-t", "1", "--no-python", static_c(WRITER), str(MANY),
                                env=QUIET | harness.PATIENT, preexec_fn=server.mount_here, stdout=subprocess.DEVNULL)
    server.start()
    result = running.wait()
    assert (result.returncode, result.stderr) == (0, "")
    same = server.content("*", "attempt_0", "0", "stdout.log") == text_of(0)
    assert same


@pytest.mark.parametrize("option", ["-r", "-t"])
def test_a_log_file_whose_renaming_hangs_costs_the_log_and_not_the_training(
        elastic_run, static_c, tmp_path, file_server, option):
    server = file_server(deaf_at=RENAME)
    running = elastic_run.start("--log-dir=logs", option, "1", "--log-max-bytes=64K", "--no-python", static_c(WRITER),
                                str(2 * MANY), env=QUIET, preexec_fn=server.mount_here, stdout=subprocess.DEVNULL)
    server.start()
    harness.wait_until((tmp_path / "done.0").exists)
    assert server.asked.is_set()
    assert running.popen.wait(harness.RUN_PATIENCE) == 0
    server.close()
    result = running.wait()
    assert re.search(r"warning: /\S+/0/stdout\.log does not answer; what follows is not kept\n", result.stderr)


def test_nothing_is_dropped_when_many_ranks_end_at_once_with_full_pipes_and_the_console_takes_it(
        elastic_run, static_c):
    """More lies in the pipes then than may wait for the console."""
    count = 10_000
    console = os.memfd_create("console")  # no disk makes it slow
    try:
        result = elastic_run("--nproc-per-node=10", "--log-dir=logs", "-t", "1", "--no-python", static_c(WRITER),
                             str(count), env=QUIET, stdout=console, preexec_fn=harness.before_others)
        with open(f"/proc/self/fd/{console}", "rb") as shown:
            found = shown.read()
    finally:
        os.close(console)
    assert (result.returncode, result.stderr) == (0, "")
    for rank in range(10):
        same = b"".join(re.findall(rb"^\[default%d\]:.*\n" % rank, found, re.MULTILINE)) == prefixed(rank, count)
        assert same, rank


# --- On a terminal

class Screen:
    """A terminal that shows all at once, and what it has been sent."""

    def __init__(self):
        self.master, self.slave = os.openpty()
        self._changed = threading.Condition()
        self._data = bytearray()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, array.array("H", [rows, columns, 0, 0]))

    def handed_over(self):
        os.close(self.slave)
        self._reader.start()

    def _read(self):
        while not self._ended:
            harness.wait_until_readable(self.master)
            with self._changed:
                self._take()

    def _take(self):
        """Reads all that is there now."""
        while not self._ended and harness.wait_until_readable(self.master, 0):
            try:
                self._data += os.read(self.master, 65536)
            except OSError:  # nobody has it any more
                self._ended = True
            self._changed.notify_all()

    def wait_until(self, predicate):
        """Waits until what it has been sent so far is so."""
        with self._changed:
            assert self._changed.wait_for(lambda: predicate(self._data), harness.PATIENCE), bytes(self._data)

    def wait_for(self, text):
        self.wait_until(lambda data: text in data)

    def data(self):
        with self._changed:
            self._take()
            return bytes(self._data)

    def shown(self):
        self._reader.join()
        os.close(self.master)
        return bytes(self._data)


def at(screen, elastic_run, *arguments, env=None, **more):
    """Starts it with its streams at the screen, which is its controlling terminal: so SIGWINCH comes."""
    def take():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    running = elastic_run.start(*arguments, env=QUIET | {"TERM": "xterm"} | (env or {}),
                                preexec_fn=take,
                                **{"stdin": screen.slave, "stdout": screen.slave, "stderr": screen.slave} | more)
    screen.handed_over()
    return running


@pytest.mark.parametrize("options", [[], ["--stderr-tail=never"], ["--log-dir=/dev/null"]])
def test_workers_see_a_terminal_of_the_same_size(elastic_run, options):
    screen = Screen()
    screen.resize(33, 101)
    running = at(screen, elastic_run, *options, *SH, """
        for fd in 0 1 2; do [ -t $fd ] && echo "$fd is a terminal"; done
        stty size < /proc/self/fd/2 ; stty size <&1; stty size <&2 >&2""")
    assert running.wait().returncode == 0
    assert screen.shown() == b"0 is a terminal\r\n1 is a terminal\r\n2 is a terminal\r\n" + b"33 101\r\n" * 3


def test_a_resized_terminal_is_resized_for_workers_too(elastic_run, tmp_path):
    screen = Screen()
    screen.resize(24, 80)
    slave = os.dup(screen.slave)
    running = at(screen, elastic_run, *SH, """
        stty size <&2 >&2; while [ "$(stty size <&2)" = "24 80" ]; do :; done; stty size <&2 >&2""")
    screen.wait_for(b"24 80\r\n")
    fcntl.ioctl(slave, termios.TIOCSWINSZ, array.array("H", [50, 132, 0, 0]))
    os.close(slave)
    assert running.wait().returncode == 0
    assert screen.shown() == b"24 80\r\n50 132\r\n"


def test_a_terminal_gets_each_line_end_once_and_streams_in_order(elastic_run):
    screen = Screen()
    running = at(screen, elastic_run, *SH,
                 "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done; printf 'a\\rb'")
    assert running.wait().returncode == 0
    assert screen.shown() == b"".join(b"out %d\r\nerr %d\r\n" % (i, i) for i in range(1, 10)) + b"a\rb"


def test_escape_sequences_and_progress_bars_pass_a_terminal_byte_by_byte(elastic_run, tmp_path):
    os.mkfifo(tmp_path / "go")
    screen = Screen()
    running = at(screen, elastic_run, *SH, "printf '\\033[31m 50%%\\r' >&2; read line < go; printf '100%%\\033[0m' >&2")
    screen.wait_for(b"\x1b[31m 50%\r")
    (tmp_path / "go").write_text("go\n")
    assert running.wait().returncode == 0
    assert screen.shown() == b"\x1b[31m 50%\r100%\x1b[0m"


def test_everything_that_was_written_to_a_terminal_comes_before_the_report(elastic_run, static_c):
    """A worker that is killed right after 2 MB: a pseudo-terminal holds 4 KiB."""
    screen = Screen()
    running = at(screen, elastic_run, *SH, f"{static_c(WRITER)} 20000 2; kill -KILL $$")
    assert running.wait().returncode == 1
    shown = screen.shown()
    begin = shown.index(b"torch.distributed.elastic.multiprocessing.errors")
    same = shown[:begin] == text_of(0, 20_000).replace(b"\n", b"\r\n")
    assert same, shown[max(0, begin - 500):]


def test_only_stdout_at_a_terminal_leaves_stderr_a_pipe(elastic_run):
    screen = Screen()
    running = at(screen, elastic_run, *SH, "[ -t 1 ] && echo yes; [ -t 2 ] || echo no >&2", stderr=subprocess.PIPE)
    result = running.wait()
    assert (result.returncode, result.stderr, screen.shown()) == (0, "no\n", b"yes\r\n")


def test_only_stderr_at_a_terminal_leaves_stdout_a_pipe(elastic_run):
    screen = Screen()
    running = at(screen, elastic_run, *SH, "[ -t 1 ] || echo no; [ -t 2 ] && echo yes >&2", stdout=subprocess.PIPE)
    result = running.wait()
    assert (result.returncode, result.stdout, screen.shown()) == (0, "no\n", b"yes\r\n")


def test_teed_lines_at_a_terminal_have_their_prefix_and_one_line_end(elastic_run, tmp_path):
    screen = Screen()
    running = at(screen, elastic_run, "--log-dir=logs", "-t", "3", *SH, "echo out; echo err >&2")
    assert running.wait().returncode == 0
    assert sorted(screen.shown().splitlines(keepends=True)) == [b"[default0]:err\r\n", b"[default0]:out\r\n"]
    assert log_of(tmp_path / "logs", 0) == b"out\n"
