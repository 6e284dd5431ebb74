"""error.json: what workers leave there, whatever it is, and what elastic-run hands on to who started it."""
# ctest: gate

import json
import os
import re
import signal
import sys

import pytest

SH = ["--no-python", "sh", "-c"]
QUIET = {"OMP_NUM_THREADS": "1"}

RAISES = """\
import os, time
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("the data is bad")
    time.sleep(100)

main()
"""


def read(path):
    return json.loads(path.read_text())


# --- What workers leave there

@pytest.mark.parametrize("leave, problem", [
    (': > "$F"', "it is empty"),
    ('echo "{}" > "$F"', 'it has no "message"'),
    ('head -c 5000 /dev/urandom > "$F"; printf "\\377\\0" >> "$F"', "parse error"),
    ('printf "{\\"message\\": {\\"message\\": \\"x\\"" > "$F"', "parse error"),
    ('head -c 2000000 /dev/zero > "$F"', "it is longer than 1048576 bytes"),
    ('printf "[%.0s" $(seq 100000) > "$F"', "it is nested deeper than 64 levels"),
    ('echo "{\\"message\\": 5}" > "$F"', 'its "message" is neither a string nor an object'),
    ('mkdir "$F"', "Is a directory"),
    ('mkfifo "$F"', "it is empty"),
    ('ln -s /dev/zero "$F"', "it is longer than 1048576 bytes"),
    ('ln -s "$F" "$F"', "Too many levels of symbolic links"),
], ids=["empty", "no message", "binary", "cut", "huge", "deep", "wrong type", "directory", "pipe", "endless", "loop"])
def test_an_error_file_of_no_use_never_breaks_the_report(elastic_run, tmp_path, leave, problem):
    result = elastic_run("--log-dir=logs", *SH, f'F=$TORCHELASTIC_ERROR_FILE; {leave}; echo the cause >&2; exit 3',
                         env=QUIET | {"TORCHELASTIC_ERROR_FILE": str(tmp_path / "ours.json")})
    assert (result.returncode, result.stdout) == (1, "")
    (run,) = (tmp_path / "logs").iterdir()
    path = run / "attempt_0/0/error.json"
    assert "\n  first failure: rank 0 (local rank 0, pid " in result.stderr
    assert "    the cause\n" in result.stderr
    lines = result.stderr.splitlines()
    at = lines.index(f"  error file: {path}")
    assert problem in lines[at + 1]
    assert lines[-1] == f"  log directory: {run}"
    (failure,) = read(run / "failure.json")["failures"]
    assert (failure["exit_code"], failure["error"], failure["error_file"]) == (3, None, str(path))
    assert problem in failure["error_file_problem"]
    assert not (tmp_path / "ours.json").exists()
    again = elastic_run("--report", run)
    assert again.returncode == 0 and problem in again.stdout


def test_every_rank_may_leave_something_else(elastic_run, tmp_path):
    """One that cannot be read does not cost the others theirs."""
    result = elastic_run("--nproc-per-node=3", "--log-dir=logs", *SH, """
        F=$TORCHELASTIC_ERROR_FILE
        case $RANK in
            0) head -c 3000000 /dev/urandom > "$F" ;;
            1) printf '{"message": "p\\377lain"}' > "$F" ;;
            2) echo '{"message": {"message": "E: good", "extraInfo": {"py_callstack": "T\\\\nE: good"}}}' > "$F" ;;
        esac
        trap '' TERM  # before any of them can end, for which the others are stopped
        : > up.$RANK; while [ ! -e up.0 ] || [ ! -e up.1 ] || [ ! -e up.2 ]; do :; done
        exit 1""", env=QUIET)
    assert result.returncode == 1
    (run,) = (tmp_path / "logs").iterdir()
    errors = {failure["rank"]: (failure["error"] or {}).get("message")
              for failure in read(run / "failure.json")["failures"]}
    assert errors == {0: None, 1: "p\ufffdlain", 2: "E: good"}


# --- TORCHELASTIC_ERROR_FILE of elastic-run itself

def hands_on(elastic_run, program, path, script, log_dir):
    """What the launcher leaves in its own error file when rank 1 raises, and what its worker left."""
    result = elastic_run("--nproc-per-node=2", f"--log-dir={log_dir}", script, program=program,
                         env=QUIET | {"TORCHELASTIC_ERROR_FILE": str(path)})
    assert result.returncode == 1, result
    (run,) = (elastic_run.directory / log_dir).iterdir()
    return read(path), read(run / "attempt_0/1/error.json")


def test_the_first_failures_error_is_handed_on_as_torchrun_does(elastic_run, script, tmp_path):
    worker = script("raises.py", RAISES)
    (tmp_path / "theirs.json").write_text("what was there before")
    (tmp_path / "ours.json").write_text("what was there before")
    ours = hands_on(elastic_run, None, tmp_path / "ours.json", worker, "ours")
    theirs = hands_on(elastic_run, [sys.executable, "-m", "torch.distributed.run"], tmp_path / "theirs.json", worker,
                      "theirs")
    for handed_on, left in (ours, theirs):
        left["message"]["errorCode"] = 1
        assert handed_on == left
    for message in (ours[0]["message"], theirs[0]["message"]):
        del message["extraInfo"]["timestamp"]
    assert ours[0] == theirs[0]
    assert ours[0]["message"]["message"] == "ValueError: the data is bad"


def test_an_elastic_run_under_another_one_tells_it_why_it_failed(elastic_run, tmp_path):
    inner = [str(elastic_run.binary), "--nproc-per-node=2", "--log-dir=inner", *SH, """
        [ $RANK = 1 ] || exec sleep 100
        echo '{"message": {"message": "E: deep inside", "extraInfo": {"py_callstack": "T\\nE: deep inside",
               "timestamp": "1795279603"}}}' | tr '\\n' ' ' > "$TORCHELASTIC_ERROR_FILE"; exit 5"""]
    result = elastic_run("--log-dir=outer", "--no-python", *inner, env=QUIET)
    assert result.returncode == 1
    (outer,) = (tmp_path / "outer").iterdir()
    (failure,) = read(outer / "failure.json")["failures"]
    assert (failure["error"]["message"], failure["error"]["error_code"]) == ("E: deep inside", 5)
    assert "\n    E: deep inside\n" in result.stderr[result.stderr.rindex("  first failure: "):]


@pytest.mark.parametrize("options, leave", [
    ([], "exit 3"), (["--log-dir=/dev/null"], "exit 3"), ([], 'kill -9 $$'),
    ([], 'echo "{" > "$TORCHELASTIC_ERROR_FILE"; exit 3'),
])
def test_where_the_first_failure_left_no_error_there_is_none_to_hand_on(elastic_run, tmp_path, options, leave):
    path = tmp_path / "ours.json"
    path.write_text("what was there before")
    result = elastic_run(*options, *SH, leave, env=QUIET | {"TORCHELASTIC_ERROR_FILE": str(path)})
    assert result.returncode == 1
    assert path.read_text() == "what was there before"
    assert sorted(name for name in os.listdir(tmp_path) if name.startswith("ours")) == ["ours.json"]


@pytest.mark.parametrize("program, arguments, status", [
    (None, ["--no-such-option", "train.py"], 2),
    (None, ["--nnodes=x", "train.py"], 2),
    ([sys.executable, "-m", "torch.distributed.run"], ["--nnodes=x", "train.py"], 1),
    (None, ["nowhere.py"], 2),
    (None, ["--log-level=loud", "train.py"], 2),
    (None, ["--log-dir=/dev/null/x", "train.py"], 2),
], ids=["option", "value", "torchrun", "script", "level", "directory"])
def test_a_command_line_that_is_refused_hands_on_why(elastic_run, script, tmp_path, program, arguments, status):
    script("train.py", "")
    path = tmp_path / "ours.json"
    result = elastic_run(*arguments, program=program, env={"TORCHELASTIC_ERROR_FILE": str(path)})
    assert result.returncode == status
    error = read(path)["message"]
    if program is None:
        assert result.stderr == f"elastic-run: error: {error['message']}\n"
    assert arguments[0].split("=")[0] in error["message"] or "nnodes=x" in error["extraInfo"]["py_callstack"] or program
    assert int(error["extraInfo"]["timestamp"]) > 0 and error["extraInfo"]["py_callstack"]


def test_what_starts_no_job_leaves_the_error_file_alone(elastic_run, tmp_path):
    path = tmp_path / "ours.json"
    for arguments, status in (["--help"], 0), (["--version"], 0), (["--report=nowhere"], 2), (["--store-only", "--port=-1"], 2):
        assert elastic_run(*arguments, env={"TORCHELASTIC_ERROR_FILE": str(path)}).returncode == status
    assert not path.exists()


# --- Who failed first

# Rank 1 fails first, and is slow to end; rank 0 fails of it, and ends first. The files' times are far apart.
FAILS_OF_IT = """
    leave() {
        printf '{"message": {"message": "%s", "extraInfo": {"py_callstack": "T", "timestamp": "%s"}}}' "$1" "$2" \
            > "$TORCHELASTIC_ERROR_FILE"
        touch -d "@$2.5" "$TORCHELASTIC_ERROR_FILE"
    }
    if [ $RANK = 1 ]; then
        leave "E: the cause" 1795279603
        [ "$1" = killed ] || trap 'exit 4' TERM
        [ "$1" = killed ] && { echo > ready; exec sleep 100; }
        sh -c 'echo > ready; exec sleep 100' & wait  # who says so has no trap of its parent's any more
    fi
    read line < ready
    leave "E: the connection was closed" 1795279605
    exit 3"""


@pytest.mark.parametrize("program", [None, ["torchrun"]], ids=["elastic-run", "torchrun"])
@pytest.mark.parametrize("way, ends, code", [
    ("killed", "was killed by SIGTERM, after it had written its error file", 3), ("ends", "exited with code 4", 4)])
def test_who_wrote_its_error_first_failed_first_also_if_another_ended_first(elastic_run, tmp_path, program, way, ends, code):
    os.mkfifo(tmp_path / "ready")
    path = tmp_path / "ours.json"
    propagate = [] if program else ["--propagate-exit-code"]
    result = elastic_run("--nproc-per-node=2", "--log-dir=logs", *propagate, *SH, FAILS_OF_IT, "sh", way, program=program,
                         env=QUIET | {"TORCHELASTIC_ERROR_FILE": str(path)})
    root = result.stderr[result.stderr.rindex("Root Cause (first observed failure):"):]
    assert "  rank      : 1 (local_rank: 1)\n" in root
    assert read(path)["message"]["message"] == "E: the cause"
    if program:
        return
    assert result.returncode == code
    assert re.search(rf"^  first failure: rank 1 \(local rank 1, pid \d+\) {ends}$", result.stderr, re.MULTILINE)
    assert re.search(r"^  also failed: +rank 0 \(local rank 0, pid \d+\) exited with code 3, 2.000 s later$", result.stderr,
                     re.MULTILINE)
    (run,) = (tmp_path / "logs").iterdir()
    failures = read(run / "failure.json")["failures"]
    assert [failure["rank"] for failure in failures] == [1, 0]
    assert [failure["error_came_first"] for failure in failures] == [True, False]
    assert elastic_run("--report", run).stdout == result.stderr


def test_a_job_that_was_stopped_hands_on_that_it_was(elastic_run, tmp_path):
    path = tmp_path / "ours.json"
    running = elastic_run.start(*SH, "echo up; exec sleep 100", env=QUIET | {"TORCHELASTIC_ERROR_FILE": str(path)})
    running.wait_for_line("^up$", stream="stdout")
    running.send_signal(signal.SIGTERM)
    result = running.wait()
    assert result.returncode == 1
    error = read(path)["message"]
    assert "SIGTERM" in error["message"] and error["message"] in result.stderr
    assert int(error["extraInfo"]["timestamp"]) > 0


@pytest.mark.parametrize("path", ["nowhere/ours.json", "/dev/null/x", ""])
def test_an_error_file_that_cannot_be_written_is_told_and_changes_nothing(elastic_run, path):
    result = elastic_run("--log-dir=logs", *SH, 'echo \'{"message": "plain"}\' > "$TORCHELASTIC_ERROR_FILE"; exit 3',
                         env=QUIET | {"TORCHELASTIC_ERROR_FILE": path})
    assert result.returncode == 1
    warning = f"elastic-run: warning: cannot write TORCHELASTIC_ERROR_FILE={path}: "
    assert (warning in result.stderr) == bool(path)
    assert result.stderr.splitlines()[-1].startswith("  log directory: ")
