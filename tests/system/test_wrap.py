"""--wrap: a command before the workers of chosen ranks."""
# ctest: gate

import re

import pytest

SHOW = """
import os, sys
line = f"rank {os.environ['RANK']} under {os.environ.get('WRAPPED', 'nothing')} with {sys.argv[1:]}\\n"
os.write(1, line.encode())  # at once: all ranks write to one pipe
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "show.py"
    path.write_text(SHOW)
    return path


def lines_of(done):
    return sorted(line.split("]:", 1)[-1] for line in done.stdout.splitlines() if "rank " in line)


def test_a_command_stands_before_the_workers_of_the_ranks_that_it_names(elastic_run, script):
    done = elastic_run("--nproc-per-node=3", "--wrap=0:env WRAPPED=%r.%l.%n.%a", "--wrap", "all:env 'WRAPPED=the rest'", str(script), "%r")
    assert done.returncode == 0, done.stderr
    assert lines_of(done) == ["rank 0 under 0.0.0.0 with ['%r']", "rank 1 under the rest with ['%r']",
                              "rank 2 under the rest with ['%r']"]


def test_without_it_nothing_stands_before_them(elastic_run, script):
    assert lines_of(elastic_run("--nproc-per-node=1", str(script))) == ["rank 0 under nothing with []"]


def test_the_exit_status_is_that_of_the_command(elastic_run, script):
    done = elastic_run("--nproc-per-node=1", "--wrap=0:sh -c '\"$@\"; exit 7' sh", str(script))
    assert done.returncode == 1
    assert "rank 0 (local rank 0, pid " in done.stderr and ") exited with code 7" in done.stderr, done.stderr


def test_a_command_goes_with_programs_that_are_no_python(elastic_run):
    done = elastic_run("--nproc-per-node=1", "--no-python", "--wrap=0:env WRAPPED=yes", "/bin/sh", "-c", "echo rank $RANK $WRAPPED")
    assert lines_of(done) == ["rank 0 yes"], done.stderr


def test_a_rank_that_the_world_does_not_have_is_warned_of_once(elastic_run, script):
    done = elastic_run("--nproc-per-node=2", "--wrap=0,7:env WRAPPED=yes", str(script))
    assert done.returncode == 0
    assert done.stderr.count("--wrap names rank 7, but the job has 2 ranks") == 1, done.stderr


def test_the_plan_shows_it(elastic_run, script):
    done = elastic_run("--dry-run", "--nproc-per-node=2", "--wrap=0:env WRAPPED=%r", str(script))
    assert done.returncode == 0
    assert "0:env WRAPPED=%r" in done.stdout
    assert re.search(r"^local rank 0: env WRAPPED=0 /\S+ -u ", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^local rank 1: /?\S*python\S* -u ", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize("rule,reason", [("env", "no colon"), ("0:", "no command"), ("zero:env", "names no ranks"),
                                         ("0:no-such-program-here", "not found on PATH")])
def test_what_is_no_rule_is_refused(elastic_run, script, rule, reason):
    done = elastic_run("--nproc-per-node=1", f"--wrap={rule}", str(script))
    assert done.returncode == 2
    assert reason in done.stderr and "--wrap=" in done.stderr
