"""Started by the name of torchrun or dlrover-run, elastic-run speaks by that name."""
# ctest: gate

import shutil
import signal

import pytest


@pytest.fixture(params=["torchrun", "dlrover-run"])
def name(request):
    return request.param


@pytest.fixture(params=["link", "copy"])
def launcher(request, name, elastic_run, tmp_path):
    """elastic-run under that name, in a directory of its own."""
    path = tmp_path / "bin" / name
    path.parent.mkdir()
    if request.param == "link":
        path.symlink_to(elastic_run.binary)
    else:
        shutil.copy(elastic_run.binary, path)
    return [path]


def test_help_version_and_completions_are_by_the_name(elastic_run, launcher, name):
    ours = elastic_run("--version").stdout.strip()
    assert elastic_run("--version", program=launcher).stdout == f"{name} ({ours})\n"
    help_text = elastic_run("--help", program=launcher).stdout
    assert help_text.startswith(f"Usage: {name} [OPTION]... SCRIPT [ARGUMENT]...\n")
    lines = [line for line in help_text.splitlines() if "elastic-run" in line]
    assert lines == [f"Started as {name}, this is {ours}.",
                     "More: man elastic-run, and docs/command-line.md in the source."]
    completion = elastic_run("--print-completion", "bash", program=launcher).stdout
    assert f"complete -F _{name.replace('-', '_')} {name}\n" in completion and "elastic" not in completion


def test_errors_warnings_and_the_failure_report_are_by_the_name(elastic_run, launcher, name, script):
    def stderr(*arguments, **env):
        return elastic_run(*arguments, program=launcher, env=env).stderr

    assert stderr() == (f"{name}: error: SCRIPT: the command line names no script; write {name} [OPTION]... SCRIPT "
                        f"[ARGUMENT]...; {name} --help explains it\n")
    assert stderr("--bogus", "train.py").startswith(f"{name}: error: --bogus: ")
    assert stderr("--nproc-per-node=2", "--no-python", "true").startswith(f"{name}: warning: Setting OMP_NUM_THREADS")
    report = stderr("--max-restarts=1", "--log-dir=/dev/null", "--no-python", "false", LOGLEVEL="debug")
    assert f"\n{name}: error: the job failed; 1 of 1 restarts were used\n" in report
    assert "elastic-run" not in report


def test_a_stop_is_told_by_the_name(elastic_run, launcher, name):
    running = elastic_run.start("--no-python", "sh", "-c", "echo up; exec sleep 1000", program=launcher)
    running.wait_for_line("^up$", stream="stdout")
    running.send_signal(signal.SIGTERM)
    assert running.wait().stderr == f"{name}: stopped by SIGTERM; all workers have ended\n"


def test_any_other_name_is_no_reason_to_change_its_own(elastic_run, tmp_path):
    other = tmp_path / "torchrun-2"
    other.symlink_to(elastic_run.binary)
    assert elastic_run("--bogus", program=[other]).stderr.startswith("elastic-run: error: ")
