"""What stands at the end of stderr, and in a container's termination message, when a job has failed."""
# ctest: gate


import pytest

from test_every_node_tells import FAILS

# Far more than a screen: the traceback of a deep recursion, with long lines, and other ranks that have much to say.
LOUD = """
import os, sys
def deep(n):
    if n == 0:
        raise ValueError("the data is " + "spoilt")
    deep(n - 1)
print("x" * 1900, file=sys.stderr, flush=True)
sys.setrecursionlimit(5000)
deep(900)
"""
# Rank 0 is the victim: it is the first to end. Rank 1 has failed before, and is slow to go.
VICTIM = """
import os, sys, time
if os.environ["RANK"] == "1":
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.", file=sys.stderr, flush=True)
    open("said", "w").close()
    time.sleep(600)
while not os.path.exists("said"):
    time.sleep(0.01)
raise RuntimeError("[../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4711")
"""


def last_kilobytes(result):
    return result.stderr.encode()[-2048:].decode(errors="replace")


def test_the_last_two_kilobytes_of_stderr_hold_the_cause(elastic_run, script):
    result = elastic_run("--nproc-per-node=8", script("loud.py", LOUD))
    assert result.returncode == 1
    shown = last_kilobytes(result)
    for part in ("elastic-run: error: the job failed", "first failure: rank ", "ValueError: the data is spoilt",
                 "log directory: "):
        assert part in shown, shown
    assert result.stderr.index("Root Cause") < result.stderr.index("elastic-run: error: the job failed")


@pytest.mark.parametrize("there", [True, False])
def test_the_short_report_is_a_containers_termination_message_where_there_is_one(elastic_run, script, tmp_path, there):
    message = tmp_path / "termination-log"
    if there:
        message.write_text("what an earlier container has left, and more of it " * 100)
    result = elastic_run(script("fails.py", FAILS.replace('== "1"', '== "0"')),
                         env={"ELASTIC_RUN_TERMINATION_LOG": str(message)})
    assert result.returncode == 1
    assert message.exists() == there
    if there:
        assert message.read_text() == result.stderr[result.stderr.index("elastic-run: error: "):]


def test_a_job_that_succeeds_leaves_no_termination_message(elastic_run, tmp_path):
    message = tmp_path / "termination-log"
    message.write_text("")
    assert elastic_run("--no-python", "true", env={"ELASTIC_RUN_TERMINATION_LOG": str(message)}).returncode == 0
    assert message.read_text() == ""


def test_where_it_was_a_victim_that_failed_first_the_rank_that_says_why_is_named(elastic_run, script):
    result = elastic_run("--nproc-per-node=2", script("victim.py", VICTIM))
    assert result.returncode == 1
    last = result.stderr[result.stderr.index("elastic-run: error: "):]
    assert "first failure: rank 0 " in last and "likely cause: rank 1 (local rank 1, pid " in last, last
    assert "    stderr: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n" in last, last
    assert "elastic-run: the likely cause, rank 1 " in result.stderr


def test_a_module_that_is_missing_is_told_with_the_python_that_ran(elastic_run, script):
    result = elastic_run(script("imports.py", "import no_such_module_anywhere"))
    assert result.returncode == 1
    assert "ModuleNotFoundError: No module named 'no_such_module_anywhere'\n    Python executable: /" \
        in last_kilobytes(result), result
