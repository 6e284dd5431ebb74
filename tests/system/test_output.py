"""What workers write reaches the console: whole lines, every byte of stderr before the end, streams in order."""
# ctest: gate

import collections
import fcntl
import os
import re
import signal
import subprocess

import harness
import pytest

SH = ["--no-python", "sh", "-c"]
QUIET = {"OMP_NUM_THREADS": "1"}


def files_in(directory):
    (run,) = directory.iterdir()
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


# --- Whole lines

# Writes lines of all lengths, which say whose they are and add up to their length, in pieces that end anywhere:
# argv[1] is how many, argv[2] the descriptor.
ODD_PIECES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  unsigned long rank = strtoul(getenv("RANK"), NULL, 10), seed = rank + 1;
  long count = atol(argv[1]);
  int fd = atoi(argv[2]);
  size_t size = 0, at = 0;
  char* text = malloc((size_t)count * 400);
  for (long i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    int length = (int)(seed >> 33) % 300;
    size += (size_t)sprintf(text + size, "<%lu %ld %d %*s>\n", rank, i, length, length, "");
  }
  while (at < size) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    size_t piece = 1 + (seed >> 33) % 700;
    if (piece > size - at) piece = size - at;
    ssize_t wrote = write(fd, text + at, piece);
    if (wrote < 0) return 9;
    at += (size_t)wrote;
  }
  return 0;
}
"""


def check_lines(data, ranks, count, prefix=""):
    """Every line of every rank once, in its order, and nothing else."""
    following = collections.Counter()
    for line in data.decode().splitlines():
        match = re.fullmatch(prefix + r"<(\d+) (\d+) (\d+) ( *)>", line)
        assert match, f"no line of a worker, or one that was cut: {line!r}"
        rank, number, length = (int(match[group]) for group in (1, 2, 3))
        assert number == following[rank] and len(match[4]) == length
        following[rank] += 1
    assert following == {rank: count for rank in range(ranks)}


@pytest.mark.parametrize("stream, fd", [("stdout", 1), ("stderr", 2)])
def test_lines_of_many_ranks_are_never_cut_or_mixed_however_they_are_written(
        elastic_run, static_c, tmp_path, stream, fd):
    result = elastic_run("--nproc-per-node=32", "--log-dir=logs", "-t", "3", "--no-python", static_c(ODD_PIECES),
                         "400", str(fd), env=QUIET | harness.PATIENT)
    assert result.returncode == 0, result
    check_lines(getattr(result, f"{stream}_bytes"), 32, 400, r"\[default(?:\d+)\]:")
    files = files_in(tmp_path / "logs")
    assert result.stdout_bytes + result.stderr_bytes == getattr(result, f"{stream}_bytes")
    for rank in range(32):
        data = files[f"attempt_0/{rank}/{stream}.log"]
        assert data.count(b"\n") == 400 and set(re.findall(rb"^<(\d+) ", data, re.MULTILINE)) == {b"%d" % rank}


def test_lines_of_stderr_are_not_cut_or_mixed_without_tee_either(elastic_run, static_c):
    # The start of a line whose rest does not come for a moment is shown, as it may be a prompt.
    result = elastic_run("--nproc-per-node=32", "--no-python", static_c(ODD_PIECES), "400", "2", env=QUIET,
                         preexec_fn=harness.before_others)
    assert (result.returncode, result.stdout) == (0, "")
    check_lines(result.stderr_bytes, 32, 400)


def test_a_last_line_without_an_end_is_shown(elastic_run):
    result = elastic_run("--nproc-per-node=2", "--log-dir=logs", "-t", "1", *SH,
                         "printf 'one\\nlast %s' $RANK", env=QUIET)
    assert result.returncode == 0
    assert sorted(result.stdout.splitlines()) == [
        "[default0]:last 0", "[default0]:one", "[default1]:last 1", "[default1]:one"]
    assert result.stdout.endswith("\n")


def test_bytes_that_are_no_text_pass_unchanged(elastic_run):
    text = bytes(byte for byte in range(256) if byte not in b"\r\n") + b"\n\xff\xc3\x28\x00end"
    octal = "".join(f"\\{byte:03o}" for byte in text)
    result = elastic_run("--log-dir=logs", "-t", "3", *SH, f"printf '{octal}'; printf '{octal}' >&2", env=QUIET)
    wanted = b"".join(b"[default0]:" + line + b"\n" for line in text.split(b"\n"))
    assert (result.returncode, result.stdout_bytes, result.stderr_bytes) == (0, wanted, wanted)
    result = elastic_run(*SH, f"printf '{octal}' >&2", env=QUIET)
    assert (result.returncode, result.stderr_bytes) == (0, text)


def test_a_line_of_megabytes_comes_whole_to_the_file_and_in_marked_pieces_to_the_console(elastic_run, tmp_path):
    size = 3_000_000
    result = elastic_run("--log-dir=logs", "-t", "1", *SH, f"head -c {size} /dev/zero | tr '\\0' x; echo; echo after",
                         env=QUIET)
    assert result.returncode == 0
    assert files_in(tmp_path / "logs")["attempt_0/0/stdout.log"] == b"x" * size + b"\nafter\n"
    *pieces, after = result.stdout.splitlines()
    assert after == "[default0]:after"
    assert all(piece.startswith("[default0]:") for piece in pieces)
    assert "".join(piece.removeprefix("[default0]:") for piece in pieces) == "x" * size


def test_a_prompt_is_shown_before_its_line_ends(elastic_run, tmp_path):
    os.mkfifo(tmp_path / "go")
    running = elastic_run.start(*SH, "printf 'ready? ' >&2; read line < go; echo yes >&2", env=QUIET)
    harness.wait_until(lambda: running.stderr.text == "ready? ", what="the prompt is shown")
    (tmp_path / "go").write_text("go\n")
    assert running.wait().stderr == "ready? yes\n"


# --- Which descriptors

def test_stdout_is_the_launchers_own_where_nothing_was_asked_for(elastic_run):
    reading, writing = os.pipe()
    with open(reading, "rb"), open(writing, "wb"):
        inode = f"pipe:[{os.fstat(writing).st_ino}]"
        result = elastic_run("--nproc-per-node=2", *SH, "own=$(readlink /proc/$$/fd/1); echo $own >&2", env=QUIET,
                             stdout=writing)
    assert result.stderr.splitlines() == [inode, inode]


@pytest.mark.parametrize("option, inherited", [("--stderr-tail=never", True), ("--stderr-tail=auto", False)])
def test_stderr_is_the_launchers_own_only_where_no_tail_is_kept(elastic_run, option, inherited):
    reading, writing = os.pipe()
    with open(reading, "rb"), open(writing, "wb"):
        result = elastic_run(option, *SH, "readlink /proc/self/fd/2", env=QUIET, stderr=writing)
        same = result.stdout == f"pipe:[{os.fstat(writing).st_ino}]\n"
    assert result.returncode == 0
    assert same == inherited
    assert result.stdout.startswith("pipe:")


@pytest.mark.parametrize("options", [[], ["-t", "3"], ["-t", "1"], ["-r", "3"], ["--local-ranks-filter=1"]])
def test_a_worker_has_no_descriptors_of_another_or_of_the_launcher(elastic_run, options):
    result = elastic_run("--nproc-per-node=3", "--log-dir=logs", *options, *SH, "ls /proc/self/fd > fds.$RANK",
                         env=QUIET)
    assert result.returncode == 0
    for rank in range(3):  # the last one is ls's own
        assert (elastic_run.directory / f"fds.{rank}").read_text().split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("given", [0, os.O_NONBLOCK])
@pytest.mark.parametrize("options", [[], ["-t", "3"], ["-r", "3"]])
def test_the_flags_of_inherited_descriptors_are_never_changed(elastic_run, tmp_path, given, options):
    """They belong to the open file, which the shell and others have, too."""
    os.mkfifo(tmp_path / "go")
    ends = [os.pipe() for _ in range(3)]
    inherited = [ends[0][0], ends[1][1], ends[2][1]]
    for fd in inherited:
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK | given)
    before = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in inherited]
    running = elastic_run.start("--log-dir=logs", *options, *SH, "echo out; echo err >&2; : > up; read line < go",
                                env=QUIET, stdin=inherited[0], stdout=inherited[1], stderr=inherited[2])
    harness.wait_until((tmp_path / "up").exists)
    assert [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in inherited] == before
    (tmp_path / "go").write_text("go\n")
    assert running.wait().returncode == 0
    assert [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in inherited] == before
    for fd in (fd for pair in ends for fd in pair):
        os.close(fd)


# --- Order and completeness

# Takes turns between both streams, each line in two pieces.
TURNS = r"""
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  char line[32];
  for (int i = 0; i < 20000; ++i) {
    int length = sprintf(line, "line %d\n", i);
    if (write(1 + i % 2, line, 3) != 3 || write(1 + i % 2, line + 3, (size_t)length - 3) != length - 3) return 9;
  }
  return 0;
}
"""


def test_both_streams_to_one_place_stay_in_the_order_in_which_they_were_written(elastic_run, static_c):
    """2>&1, at the shell."""
    result = elastic_run("--no-python", static_c(TURNS), env=QUIET, stderr=subprocess.STDOUT)
    assert result.returncode == 0
    same = result.stdout_bytes == b"".join(b"line %d\n" % number for number in range(20_000))
    assert same, result.stdout[-2000:]


def test_both_streams_to_one_file_stay_in_order(elastic_run, static_c, tmp_path):
    with open(tmp_path / "file", "wb") as file:
        result = elastic_run("--no-python", static_c(TURNS), env=QUIET, stdout=file, stderr=subprocess.STDOUT)
    assert result.returncode == 0
    same = (tmp_path / "file").read_bytes() == b"".join(b"line %d\n" % number for number in range(20_000))
    assert same


# Fills its stderr and is killed at once: no byte of it may be missing.
DIES = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char line[101];
  for (int i = 0; i < atoi(argv[1]); ++i) {
    snprintf(line, sizeof line, "%98d\n", i);
    if (write(2, line, 99) != 99) return 9;
  }
  raise(SIGKILL);
}
"""


@pytest.mark.parametrize("options, prefix", [([], ""), (["-t", "2", "--log-dir=logs"], "[default0]:")])
@pytest.mark.parametrize("count", [1, 5000])
def test_what_a_worker_wrote_right_before_it_was_killed_is_complete_and_before_the_report(
        elastic_run, static_c, options, prefix, count):
    result = elastic_run(*options, "--no-python", static_c(DIES), str(count), env=QUIET)
    assert result.returncode == 1
    written = result.stderr.splitlines()
    assert written[:count] == [f"{prefix}{number:98d}" for number in range(count)]
    assert written[count] == "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    # Nothing of it after the report, but the last lines that the report itself shows, and the last one as its cause.
    assert sum(f"{' ' * 80}" in line for line in written[count:]) <= min(count, 20) + 1
    if prefix:
        assert not any(line.startswith(prefix) for line in written[count:])


def test_each_round_s_output_is_complete_before_the_next_begins(elastic_run, static_c):
    result = elastic_run("--max-restarts=2", "--no-python", static_c(DIES), "2000", env=QUIET)
    before, headline, _ = result.stderr.partition("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")
    assert headline
    numbers = [int(line) for line in before.splitlines() if not line.startswith("elastic-run: warning: ")]
    assert numbers == list(range(2000)) * 3


@pytest.mark.parametrize("options", [[], ["-t", "3"]])
@pytest.mark.parametrize("status", [0, 7])
def test_a_grandchild_that_holds_the_streams_open_does_not_hold_up_the_end(elastic_run, options, status):
    """A daemon: a session of its own, and it heeds no signal but the last."""
    result = elastic_run("--log-dir=logs", "--shutdown-timeout=1", *options, *SH, f"""
        trap '' TERM HUP; setsid sh -c 'trap "" TERM HUP; echo up >&2; while :; do sleep 1; done' &
        read line < /dev/null; echo written >&2; exit {status}""", env=QUIET, timeout=60)
    assert result.returncode == (1 if status else 0)
    assert "written\n" in result.stderr


def test_a_grandchild_that_holds_the_streams_open_does_not_hold_up_a_restart(elastic_run):
    result = elastic_run("--max-restarts=2", "--shutdown-timeout=1", "--log-dir=logs", "-t", "3", *SH, """
        setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &
        echo "round $TORCHELASTIC_RESTART_COUNT"; [ $TORCHELASTIC_RESTART_COUNT = 2 ]""", env=QUIET, timeout=60)
    assert result.returncode == 0
    assert result.stdout.splitlines() == [f"[default0]:round {number}" for number in range(3)]


@pytest.mark.parametrize("options", [[], ["-t", "3"], ["--stderr-tail=never"]])
def test_a_worker_that_closes_its_streams_goes_on(elastic_run, options):
    result = elastic_run("--log-dir=logs", *options, *SH, """
        echo before >&2; exec >&- 2>&-; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; exit 0""", env=QUIET)
    assert result.returncode == 0
    assert result.stderr.endswith("before\n")


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("options", [[], ["-t", "3"], ["-r", "3"]])
def test_training_goes_on_where_the_launchers_own_streams_are_closed(elastic_run, tmp_path, closed, options):
    def close():
        for fd in closed:
            os.close(fd)

    result = elastic_run("--nproc-per-node=2", "--log-dir=logs", *options, *SH,
                         'echo out; echo err >&2; : > "done.$RANK"', env=QUIET, preexec_fn=close)
    assert result.returncode == 0, result
    assert (tmp_path / "done.0").exists() and (tmp_path / "done.1").exists()
    shown = "[default{}]:" if options[:1] == ["-t"] else ""
    if 1 not in closed and "-r" not in options:
        assert sorted(result.stdout.splitlines()) == [f"{shown.format(rank)}out" for rank in (0, 1)]
    if 2 not in closed and "-r" not in options:
        assert sorted(result.stderr.splitlines()) == [f"{shown.format(rank)}err" for rank in (0, 1)]
    if options:
        files = files_in(tmp_path / "logs")
        assert {files[f"attempt_0/{rank}/stdout.log"] for rank in (0, 1)} == {b"out\n"}


# --- Many ranks

def test_512_ranks_write_at_once(elastic_run, tmp_path):
    result = elastic_run("--nproc-per-node=512", "--log-dir=logs", "-t", "3", *SH,
                         'echo "out $RANK"; echo "err $RANK" >&2', env=QUIET | harness.PATIENT)
    assert result.returncode == 0
    for name in ("out", "err"):
        assert sorted(getattr(result, f"std{name}").splitlines()) == sorted(
            f"[default{rank}]:{name} {rank}" for rank in range(512))
    files = files_in(tmp_path / "logs")
    assert all(files[f"attempt_0/{rank}/std{name}.log"] == f"{name} {rank}\n".encode()
               for rank in range(512) for name in ("out", "err"))


def limit_files(count):
    import resource
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


@pytest.mark.parametrize("options", [[], ["-t", "3"], ["-r", "3"], ["-t", "3", "--duplicate-stdout-filters=a"]])
def test_a_limit_of_open_files_is_either_enough_or_told_before_anything_starts(elastic_run, tmp_path, options):
    """Never in the middle: the number that the message asks for is enough."""
    def try_with(limit):
        return elastic_run("--nproc-per-node=100", "--log-dir=logs", *options, *SH,
                           'echo out; echo err >&2; : > "up.$RANK"', env=QUIET | harness.PATIENT, preexec_fn=limit_files(limit))

    result = try_with(60)
    assert result.returncode == 1
    needed = int(re.search(r"--nproc-per-node=100 needs (\d+), and one more for each connection", result.stderr).group(1))
    assert not list(tmp_path.glob("up.*"))
    result = try_with(needed)
    assert result.returncode == 0, result
    assert len(list(tmp_path.glob("up.*"))) == 100
    if "-t" in options or not options:
        assert result.stderr.count("err\n") == 100


def test_a_launcher_that_was_stopped_loses_nothing(elastic_run, tmp_path):
    """SIGSTOP: workers wait at their full pipes, and go on with it."""
    running = elastic_run.start("--log-dir=logs", "-t", "3", *SH, """
        : > up; i=0
        while [ $i -lt 30000 ]; do
            i=$((i+1)); echo "$i a line of some length, so that the pipe is full soon ................"
        done""", env=QUIET)
    harness.wait_until((tmp_path / "up").exists)
    launcher = running.launcher()
    os.kill(launcher, signal.SIGSTOP)
    (worker,) = [process for process in running.processes() if process.parent == launcher]
    # It only computes and writes.
    harness.wait_until(lambda: harness.read_process(worker.pid).state == "S", what="its pipe is full")
    os.kill(launcher, signal.SIGCONT)
    result = running.wait()
    assert result.returncode == 0
    numbers = [int(line.removeprefix("[default0]:").split()[0]) for line in result.stdout.splitlines()]
    assert numbers == list(range(1, 30001))
