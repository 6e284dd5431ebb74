"""A failure that every attempt would repeat: the job ends after the second one, unless --crash-loop=restart."""
# ctest: gate

import json
import os
import re

import pytest

from workers import free_port

QUIET = {"OMP_NUM_THREADS": "1"}
# Each worker writes down that it was there, before anything that may fail.
MARK = "import os\nopen('attempts', 'a').write(os.environ['TORCHELASTIC_RESTART_COUNT'] + '\\n')\n"
CRASHES = {
    "import error": MARK + "import no_such_module_of_ours\n",
    "syntax error": MARK + "import broken\n",
    "missing-file error": MARK + "open('no-such-file.bin')\n",
}
DETERMINISTIC = r"the failure is deterministic: attempts {} and {} failed with the same {}, so the job is not restarted " \
                r"\(--crash-loop=restart restarts it anyway\)"


@pytest.fixture
def attempts(tmp_path):
    """The restart counts that the workers have written down."""
    return lambda: (tmp_path / "attempts").read_text().split()


def says(result, *what):
    return re.search(DETERMINISTIC.format(*what), result.stderr)


@pytest.mark.parametrize("kind", CRASHES)
def test_a_failure_that_repeats_ends_the_job_after_two_attempts_with_93(elastic_run, script, attempts, kind):
    script("broken.py", "def f(:\n")
    result = elastic_run("--max-restarts=3", script("train.py", CRASHES[kind]), env=QUIET)
    assert result.returncode == 93, result
    assert says(result, 0, 1, kind), result
    assert attempts() == ["0", "1"]


def test_a_script_that_cannot_be_parsed_ends_the_job_after_two_attempts(elastic_run, script):
    result = elastic_run("--max-restarts=3", script("train.py", "def f(:\n"), env=QUIET)
    assert result.returncode == 93, result
    assert says(result, 0, 1, "syntax error"), result


def test_a_script_that_python_cannot_open_ends_the_job_after_two_attempts(elastic_run, tmp_path, attempts):
    command = f'echo $TORCHELASTIC_RESTART_COUNT >> attempts; exec "${{PYTHON_EXEC:-python3}}" {tmp_path}/nowhere.py'
    result = elastic_run("--max-restarts=3", "--no-python", "sh", "-c", command, env=QUIET)
    assert result.returncode == 93, result
    assert says(result, 0, 1, "missing-file error"), result
    assert attempts() == ["0", "1"]


def test_what_a_worker_says_in_its_error_file_counts_where_its_stderr_is_not_seen(elastic_run, script, attempts):
    body = MARK + """
import json, sys, traceback
try:
    import no_such_module_of_ours
except ImportError as error:
    message = {"message": f"{type(error).__name__}: {error}",
               "extraInfo": {"py_callstack": traceback.format_exc(), "timestamp": "1790000000"}}
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
        json.dump({"message": message}, file)
    sys.exit(1)
"""
    result = elastic_run("--max-restarts=3", "--stderr-tail=never", script("train.py", body), env=QUIET)
    assert result.returncode == 93, result
    assert says(result, 0, 1, "import error"), result
    assert attempts() == ["0", "1"]


def test_the_rank_that_wrote_its_error_first_counts_though_another_ended_sooner(elastic_run, script, tmp_path):
    for attempt in range(3):
        os.mkfifo(tmp_path / f"written-{attempt}")
    body = """
import json, os, sys, time, traceback
attempt, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]

def record(error):
    message = {"message": f"{type(error).__name__}: {error}",
               "extraInfo": {"py_callstack": traceback.format_exc(), "timestamp": "1790000000"}}
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
        json.dump({"message": message}, file)

try:
    if rank == "1":
        import no_such_module_of_ours
    open(f"written-{attempt}").read()
    raise RuntimeError("lost its peer in attempt " + attempt)
except ImportError as error:
    record(error)
    # The file system's clock moves on before the other writes.
    written = os.stat(os.environ["TORCHELASTIC_ERROR_FILE"]).st_mtime_ns
    while True:
        open("clock", "w").write("tick")
        if os.stat("clock").st_mtime_ns > written:
            break
    open(f"written-{attempt}", "w").close()
    time.sleep(600)
except RuntimeError as error:
    record(error)
    sys.exit(1)
"""
    result = elastic_run("--max-restarts=2", "--nproc-per-node=2", script("train.py", body), env=QUIET)
    assert result.returncode == 93, result
    assert says(result, 0, 1, "import error"), result


def test_propagate_exit_code_does_not_hide_that_a_failure_repeats(elastic_run, script):
    result = elastic_run("--max-restarts=3", "--propagate-exit-code", script("train.py", CRASHES["import error"]), env=QUIET)
    assert result.returncode == 93, result


def test_the_last_attempt_may_be_the_second(elastic_run, script, attempts):
    result = elastic_run("--max-restarts=1", script("train.py", CRASHES["import error"]), env=QUIET)
    assert result.returncode == 93, result
    assert attempts() == ["0", "1"]


def test_without_restarts_nothing_is_different(elastic_run, script, attempts):
    result = elastic_run(script("train.py", CRASHES["import error"]), env=QUIET)
    assert result.returncode == 1 and "deterministic" not in result.stderr, result
    assert attempts() == ["0"]


@pytest.mark.parametrize("body", [
    # Another line in each attempt, another text, and an exception that may pass.
    "exec(compile('\\n' * int(os.environ['TORCHELASTIC_RESTART_COUNT']) + 'import no_such_module_of_ours', 'gen.py', 'exec'))",
    "open('no-such-file-' + os.environ['TORCHELASTIC_RESTART_COUNT'])",
    "raise RuntimeError('boom')",
], ids=["line", "text", "kind"])
def test_failures_that_differ_or_may_pass_are_restarted(elastic_run, script, attempts, body):
    result = elastic_run("--max-restarts=2", script("train.py", MARK + body + "\n"), env=QUIET)
    assert result.returncode == 1 and "deterministic" not in result.stderr, result
    assert attempts() == ["0", "1", "2"]


def test_another_failure_in_between_begins_anew(elastic_run, script, attempts):
    body = MARK + ("if os.environ['TORCHELASTIC_RESTART_COUNT'] == '1': raise SystemExit(5)\n"
                   "import no_such_module_of_ours\n")
    result = elastic_run("--max-restarts=9", script("train.py", body), env=QUIET)
    assert result.returncode == 93 and says(result, 2, 3, "import error"), result
    assert attempts() == ["0", "1", "2", "3"]


def test_a_file_that_is_there_for_the_second_attempt_lets_the_job_succeed(elastic_run, script, attempts):
    body = MARK + ("if os.environ['TORCHELASTIC_RESTART_COUNT'] == '1': open('late', 'w')\n"
                   "open('late')\n")
    result = elastic_run("--max-restarts=3", script("train.py", body), env=QUIET)
    assert result.returncode == 0, result
    assert attempts() == ["0", "1"]


def test_crash_loop_restart_spends_every_restart(elastic_run, script, attempts):
    result = elastic_run("--max-restarts=2", "--crash-loop=restart", script("train.py", CRASHES["import error"]), env=QUIET)
    assert result.returncode == 1 and "deterministic" not in result.stderr, result
    assert attempts() == ["0", "1", "2"]


def test_the_reason_stands_in_failure_json(elastic_run, script, tmp_path):
    elastic_run("--max-restarts=3", f"--log-dir={tmp_path / 'logs'}", script("train.py", CRASHES["import error"]), env=QUIET)
    report = json.loads(next((tmp_path / "logs").glob("*/failure.json")).read_text())
    assert "the failure is deterministic" in report["reason"], report
    assert report["restarts_used"] == 1, report


def test_of_two_nodes_the_one_that_fails_twice_ends_the_job_on_both_with_93(elastic_run, script):
    train = script("train.py", "import os, time\n"
                               "if os.environ['GROUP_RANK'] == '0': import no_such_module_of_ours\n"
                               "time.sleep(600)\n")
    port = free_port()
    arguments = ["--nnodes=2", "--max-restarts=3", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}",
                 "--rdzv-id=job", "--rdzv-conf=last_call_timeout=1", "--log-level=info"]
    first = elastic_run.start(*arguments, train)
    first.wait_for_line("this node hosts the coordinator")
    # The second node has its own word, which does not hold.
    second = elastic_run.start(*arguments, "--crash-loop=restart", train)
    results = [first.wait(), second.wait()]
    assert [result.returncode for result in results] == [93, 93], results
    assert all(says(result, 0, 1, "import error") for result in results), results


def test_the_same_failure_on_another_node_is_the_same(elastic_run, script):
    train = script("train.py", "import os, time\n"
                               "if os.environ['GROUP_RANK'] == os.environ['TORCHELASTIC_RESTART_COUNT']:\n"
                               "    import no_such_module_of_ours\n"
                               "time.sleep(600)\n")
    port = free_port()
    arguments = ["--nnodes=2", "--max-restarts=3", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}",
                 "--rdzv-id=job", "--rdzv-conf=last_call_timeout=1", "--log-level=info"]
    first = elastic_run.start(*arguments, train)
    first.wait_for_line("this node hosts the coordinator")
    results = [node.wait() for node in (first, elastic_run.start(*arguments, train))]
    assert [result.returncode for result in results] == [93, 93], results
    assert all(says(result, 0, 1, "import error") for result in results), results
