"""Log files and what of them reaches the console: -r, -t, filters, prefixes, the directory's layout."""
# ctest: gate

import os
import re
import socket
import stat
import sys

import pytest

SH = ["--no-python", "sh", "-c"]
QUIET = {"OMP_NUM_THREADS": "1"}
# One line on each stream, which tells the worker and the stream.
BOTH = 'echo "out $RANK"; echo "err $RANK" >&2'


@pytest.fixture
def run(elastic_run, tmp_path):
    """run(ranks, options..., script="..."): (result, {path below the run's directory: bytes})."""

    def start(ranks, *options, script=BOTH, env=None, **more):
        result = elastic_run(f"--nproc-per-node={ranks}", "--log-dir=logs", *options, *SH, script,
                             env=QUIET | (env or {}), **more)
        (directory,) = (tmp_path / "logs").iterdir()
        return result, files_in(directory)

    return start


def files_in(directory):
    return {str(path.relative_to(directory)): path.read_bytes()
            for path in directory.rglob("*") if path.is_file()}


def lines(*texts):
    return sorted(texts)


def shown(result):
    """The console's lines, in no order: ranks come as they come."""
    return sorted(result.stdout.splitlines()), sorted(result.stderr.splitlines())


# --- The layout

def test_the_layout_is_torchruns(elastic_run, tmp_path):
    result = elastic_run("--nproc-per-node=2", "--log-dir=a/b", "--rdzv-id=job", "-r", "3", *SH, BOTH, env=QUIET)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    (directory,) = (tmp_path / "a/b").iterdir()
    assert re.fullmatch("job_[a-z0-9_]{8}", directory.name)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert sorted(str(path.relative_to(directory)) for path in directory.rglob("*")) == [
        "attempt_0", "attempt_0/0", "attempt_0/0/stderr.log", "attempt_0/0/stdout.log",
        "attempt_0/1", "attempt_0/1/stderr.log", "attempt_0/1/stdout.log"]
    assert files_in(directory) == {f"attempt_0/{rank}/std{name}.log": f"{name} {rank}\n".encode()
                                   for rank in (0, 1) for name in ("out", "err")}


def test_two_jobs_of_one_id_do_not_write_to_the_same_place(elastic_run, tmp_path):
    for _ in range(2):
        elastic_run("--log-dir=logs", "--rdzv-id=job", "-t", "1", *SH, BOTH, env=QUIET)
    assert [files_in(path)["attempt_0/0/stdout.log"] for path in (tmp_path / "logs").iterdir()] == [b"out 0\n"] * 2


@pytest.mark.parametrize("option", ["-r", "-t"])
def test_each_restart_has_its_own_files_and_none_is_deleted(run, option):
    result, files = run(2, "--max-restarts=2", option, "3", script="""
        echo "out $RANK of $TORCHELASTIC_RESTART_COUNT"; echo "err $RANK of $TORCHELASTIC_RESTART_COUNT" >&2
        [ $TORCHELASTIC_RESTART_COUNT = 2 ]""")
    assert result.returncode == 0
    # A rank may have been stopped before it wrote; nobody else's lines are in its files.
    for attempt in range(3):
        for rank in range(2):
            for name in ("out", "err"):
                kept = files[f"attempt_{attempt}/{rank}/std{name}.log"].decode()
                assert kept == f"{name} {rank} of {attempt}\n" or (attempt < 2 and kept == "")
        assert attempt == 2 or any(files[f"attempt_{attempt}/{rank}/stdout.log"] for rank in range(2))
    assert set(files) == {f"attempt_{attempt}/{rank}/std{name}.log" for attempt in range(3) for rank in range(2)
                          for name in ("out", "err")}


def test_a_log_directory_that_is_removed_meanwhile_is_made_again_at_a_restart(run):
    result, files = run(1, "--max-restarts=1", "-t", "1", script="""
        echo "$TORCHELASTIC_RESTART_COUNT"
        [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit
        rm -r logs; exit 1""")
    assert (result.returncode, result.stdout) == (0, "[default0]:0\n[default0]:1\n")
    assert files == {"attempt_1/0/stdout.log": b"1\n"}


# --- Which stream goes where

OUT, ERR = 1, 2

MAPS = [  # the value, its meaning by local rank
    ("0", [0, 0]), ("1", [1, 1]), ("2", [2, 2]), ("3", [3, 3]),
    ("0:1", [1, 0]), ("1:2", [0, 2]), ("0:3,1:1", [3, 1]), ("1:3,0:2", [2, 3]),
]


@pytest.mark.parametrize("value, masks", MAPS)
def test_redirects_names_the_streams_that_go_to_files_only(run, value, masks):
    result, files = run(2, "-r", value)
    check(result, files, redirects=masks, tee=[0, 0])


@pytest.mark.parametrize("value, masks", MAPS)
def test_tee_names_the_streams_that_go_to_files_and_the_console(run, value, masks):
    result, files = run(2, f"--tee={value}")
    check(result, files, redirects=[0, 0], tee=masks)


@pytest.mark.parametrize("redirects, redirected, tee, teed", [
    ("3", [3, 3], "1", [1, 1]), ("0:1", [1, 0], "0:2,1:1", [2, 1]), ("1:3", [0, 3], "0:3", [3, 0]),
    ("2", [2, 2], "2", [2, 2]),
])
def test_what_tee_names_is_on_the_console_although_redirects_names_it_too(run, redirects, redirected, tee, teed):
    result, files = run(2, "-r", redirects, "-t", tee)
    check(result, files, redirected, teed)


def check(result, files, redirects, tee):
    """`redirects`, `tee`: the masks by rank."""
    assert result.returncode == 0, result
    wanted_files, consoles = {}, {OUT: [], ERR: []}
    for rank, (redirected, teed) in enumerate(zip(redirects, tee)):
        for bit, name in ((OUT, "out"), (ERR, "err")):
            text = f"{name} {rank}"
            if (redirected | teed) & bit:
                wanted_files[f"attempt_0/{rank}/std{name}.log"] = f"{text}\n".encode()
            if teed & bit:
                consoles[bit].append(f"[default{rank}]:{text}")
            elif not redirected & bit:
                consoles[bit].append(text)
    assert files == wanted_files
    assert shown(result) == (sorted(consoles[OUT]), sorted(consoles[ERR]))


def test_local_ranks_of_two_digits_can_be_named(run):
    """torchrun knows one digit only."""
    result, files = run(13, "-t", "11:1,2:1", "-r", "12:1,10:2")
    assert files == {"attempt_0/11/stdout.log": b"out 11\n", "attempt_0/2/stdout.log": b"out 2\n",
                     "attempt_0/12/stdout.log": b"out 12\n", "attempt_0/10/stderr.log": b"err 10\n"}
    assert shown(result) == (
        sorted(["[default2]:out 2", "[default11]:out 11",
                *(f"out {rank}" for rank in range(13) if rank not in (2, 11, 12))]),
        sorted(f"err {rank}" for rank in range(13) if rank != 10))


def test_a_redirect_is_the_workers_own_descriptor(run):
    """It writes at the speed of the disk, and what it wrote is there whatever becomes of the launcher."""
    result, files = run(1, "-r", "3", script="readlink /proc/self/fd/1 /proc/self/fd/2")
    kept = files["attempt_0/0/stdout.log"].decode()
    assert re.fullmatch(r"/\S+/attempt_0/0/stdout\.log\n/\S+/attempt_0/0/stderr\.log\n", kept)
    assert result.returncode == 0


def test_without_a_log_directory_everything_is_on_the_console(elastic_run, tmp_path):
    result = elastic_run("--nproc-per-node=2", "--log-dir=/dev/null", "-t", "3", "-r", "3", "--local-ranks-filter=1",
                         *SH, BOTH + '; echo "file $TORCHELASTIC_ERROR_FILE"', env=QUIET)
    assert result.returncode == 0
    assert shown(result) == (lines("out 0", "out 1", "file ", "file "), lines("err 0", "err 1"))
    assert os.listdir(tmp_path / "tmp") == []


# --- Whose lines are shown

@pytest.mark.parametrize("options, out, err", [
    ([], ["out 1"], ["err 1"]),
    (["-t", "1"], ["[default1]:out 1"], ["err 1"]),
    (["-t", "3"], ["[default1]:out 1"], ["[default1]:err 1"]),
    (["-r", "2"], ["out 1"], []),
    (["-r", "3", "-t", "0:1,1:1"], ["[default1]:out 1"], []),
])
def test_a_rank_that_the_filter_does_not_name_is_not_on_the_console_but_in_its_files(run, options, out, err):
    filtered, filtered_files = run(3, "--local-ranks-filter=1,7", *options)
    assert filtered.returncode == 0
    assert shown(filtered) == (out, err)
    masks = {"-t 1": 1, "-t 3": 3, "-r 2": 2, "-r 3 -t 0:1,1:1": 3, "": 0}[" ".join(options)]
    assert filtered_files == {f"attempt_0/{rank}/std{name}.log": f"{name} {rank}\n".encode() for rank in range(3)
                              for bit, name in ((OUT, "out"), (ERR, "err")) if masks & bit}


@pytest.mark.parametrize("value, texts", [
    ("loss", ["loss 1", "the loss, 2"]),
    ("Loss", []),
    ("loss,accuracy", ["loss 1", "the loss, 2", "accuracy"]),
    ("loss,, 2", ["the loss, 2"]),
    ("1,,2", []),
    (",, 2", ["the loss, 2"]),
    ("loss 1,,,accuracy", ["accuracy"]),
    ("", ["loss 1", "the loss, 2", "accuracy", "Other", ""]),
    (",", ["loss 1", "the loss, 2", "accuracy", "Other", ""]),
    ("default", []),
])
@pytest.mark.parametrize("stream", ["out", "err"])
def test_lines_with_one_of_the_texts_are_copied_to_one_file(run, value, texts, stream):
    """`,,` is a comma, taken from left to right; the prefix is not searched."""
    result, files = run(2, "-t", "3", f"--duplicate-std{stream}-filters={value}", script="""
        text='loss 1\\nthe loss, 2\\naccuracy\\nOther\\n\\n'
        printf "$text"; printf "$text" >&2""")
    assert result.returncode == 0
    filtered = files.pop(f"attempt_0/filtered_std{stream}.log").decode().splitlines()
    assert sorted(filtered) == sorted(f"[default{rank}]:{text}" for rank in (0, 1) for text in texts)
    for rank in (0, 1):  # in their order
        prefix = f"[default{rank}]:"
        assert [line.removeprefix(prefix) for line in filtered if line.startswith(prefix)] == texts
    assert not [name for name in files if "filtered" in name]


def test_only_what_is_teed_to_the_console_is_filtered(run):
    result, files = run(3, "-t", "0:1,1:1", "-r", "2:1", "--local-ranks-filter=1,2", "--duplicate-stdout-filters=out")
    assert result.returncode == 0
    assert files["attempt_0/filtered_stdout.log"] == b"[default1]:out 1\n"


def test_the_file_of_a_filter_is_there_without_a_line_too(run):
    _, files = run(1, "--duplicate-stdout-filters=a", "--duplicate-stderr-filters=b")
    assert files == {"attempt_0/filtered_stdout.log": b"", "attempt_0/filtered_stderr.log": b""}


def test_a_line_is_filtered_whole_although_its_beginning_was_shown_before(elastic_run, tmp_path):
    """A pause in the middle shows it on the console, as that of a prompt."""
    os.mkfifo(tmp_path / "go")
    running = elastic_run.start("-t", "1", "--log-dir=logs", "--duplicate-stdout-filters=needle", *SH,
                                "printf nee; read line < go; printf 'dle here'; echo; echo hay", env=QUIET)
    running.wait_for_line(r"^\[default0\]:nee$", stream="stdout")
    (tmp_path / "go").write_text("go\n")
    assert running.wait().returncode == 0
    (directory,) = (tmp_path / "logs").iterdir()
    assert files_in(directory)["attempt_0/filtered_stdout.log"] == b"[default0]:needle here\n"


# --- Prefixes

@pytest.mark.parametrize("template, prefix", [
    ("${role_name}/${rank}/${local_rank}/${hostname}> ", "trainer/{rank}/{rank}/{host}> "),
    ("$role_name-$rank", "trainer-{rank}"),
    ("$$ ${unknown} $1 100% ", "$ ${{unknown}} $1 100% "),
    ("", ""),
])
@pytest.mark.parametrize("by", ["option", "PET_ variable", "variable"])
def test_a_template_makes_the_prefix(run, template, prefix, by):
    """An empty one makes none, but the variable of torchrun's that is empty is none."""
    named = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"
    given = [f"--log-line-prefix-template={template}"] if by == "option" else []
    own = {"PET_LOG_LINE_PREFIX_TEMPLATE": template} if by == "PET_ variable" else {}
    if by == "variable" and not template:
        prefix = "[trainer{rank}]:"
    result, files = run(2, "-t", "1", "--role=trainer", *given, script="echo hello",
                        env=own | {named: template if by == "variable" else "not this one"})
    assert sorted(result.stdout.splitlines()) == [
        prefix.format(rank=rank, host=socket.gethostname()) + "hello" for rank in (0, 1)]
    assert files["attempt_0/0/stdout.log"] == b"hello\n"


# --- Beside torchrun

def of_torchrun(elastic_run, directory, arguments, env):
    program = [sys.executable, "-m", "torch.distributed.run"] if arguments[0] == "torchrun" else None
    result = elastic_run("--nproc-per-node=3", f"--log-dir={directory}", "--role=r", *arguments[1:], *SH, """
        echo "loss $RANK"; echo "a, b $RANK"; echo "warn $RANK" >&2; echo "bad, $RANK" >&2""",
                         program=program, env=QUIET | env)
    assert result.returncode == 0, result
    (made,) = (elastic_run.directory / directory).iterdir()
    files = {name: sorted(data.splitlines()) if "filtered" in name else data for name, data in files_in(made).items()}
    # An empty log file: torchrun makes one for each stream that is redirected, as we do.
    return shown(result), files, sorted(str(path.relative_to(made)) for path in made.rglob("*"))


@pytest.mark.parametrize("options, env", [
    (["-r", "0:1,1:2", "-t", "1:1,2:3", "--local-ranks-filter=0,2", "--duplicate-stdout-filters=loss",
      "--duplicate-stderr-filters=bad,, "], {}),
    (["-t", "3", "--log-line-prefix-template=<$role_name $$ ${rank}${x}>", "--duplicate-stdout-filters="], {}),
    (["-r", "2", "-t", "1"], {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "${local_rank}|${hostname}|"}),
], ids=["masks and filters", "template", "template in a variable"])
def test_files_and_console_are_those_of_torchrun(elastic_run, options, env):
    ours = of_torchrun(elastic_run, "ours", ["elastic-run", *options], env)
    theirs = of_torchrun(elastic_run, "theirs", ["torchrun", *options], env)
    assert ours == theirs


# --- Content

# Writes so many lines of 100 bytes to both streams in pieces of odd sizes: fast, and never at a line's end.
FAST = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  long count = atol(argv[argc - 1]);
  size_t size = (size_t)count * 100, piece = 1;
  char* text = malloc(size + 1);
  for (long i = 0; i < count; ++i) sprintf(text + i * 100, "rank %3s line %10ld %*s\n", getenv("RANK"), i, 74, "");
  for (size_t at = 0; at < size; at += piece) {
    piece = (piece * 7919 + 13) % 200003 + 1;
    if (piece > size - at) piece = size - at;
    for (int fd = 1; fd <= 2; ++fd) {
      for (size_t done = 0; done < piece;) {
        ssize_t wrote = write(fd, text + at + done, piece - done);
        if (wrote < 0) return 9;
        done += (size_t)wrote;
      }
    }
  }
  return 0;
}
"""


def fast_text(rank, count):
    return b"".join(b"rank %3d line %10d %74s\n" % (rank, line, b"") for line in range(count))


@pytest.mark.parametrize("option", ["-r", "-t"])
def test_files_have_every_byte_of_workers_that_write_faster_than_everything(elastic_run, static_c, tmp_path, option):
    """Also the last ones, written right before the end."""
    result = elastic_run("--nproc-per-node=4", "--log-dir=logs", option, "3", "--no-python", static_c(FAST), "100000",
                         env=QUIET, stdout=open(os.devnull, "w"), stderr=open(os.devnull, "w"))
    assert result.returncode == 0
    (directory,) = (tmp_path / "logs").iterdir()
    found = files_in(directory)
    assert len(found) == 8
    for rank in range(4):
        wanted = fast_text(rank, 100_000)
        for name in ("out", "err"):
            # Not in the assert itself: pytest would compare 10 MB line by line.
            same = found[f"attempt_0/{rank}/std{name}.log"] == wanted
            assert same, (rank, name, len(found[f"attempt_0/{rank}/std{name}.log"]), len(wanted))


def test_bytes_of_any_kind_are_in_the_file_as_they_were_written(run):
    text = bytes(range(256)) + b"\r\n\xff\xfe\x00no end"
    octal = "".join(f"\\{byte:03o}" for byte in text)
    result, files = run(1, "-t", "3", script=f"printf '{octal}'; printf '{octal}' >&2")
    assert result.returncode == 0
    assert files == {"attempt_0/0/stdout.log": text, "attempt_0/0/stderr.log": text}
