"""Eight mistakes in the product, one by one: the gate finds each of them, by a case that says what is wrong."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEM = ROOT / "tests/system"
PATIENCE = 300  # seconds for the cases of a mistake, which take a minute at most
sys.path.insert(0, str(ROOT / "tests"))

import mistakes  # noqa: E402

PROGRAM = "elastic-run-planted"


class Finding(NamedTuple):
    case: str  # of tests/system, that fails
    text: str  # what pytest shows of the assertion that failed


# By the mistake's name in tests/mistakes.py.
FINDINGS = {
    "exit_not_told": Finding("test_many_nodes.py::test_a_restart_is_of_all_nodes_and_counts_once",
                             r"no line like '\^env \(\.\*\)' on stdout"),
    "lease_not_kept": Finding(
        "test_node_lease.py::test_a_paused_agents_worker_is_dead_before_the_others_begin_and_it_comes_back",
        r"assert old\.was_alive < min\(each\.began for each in new\)"),
    "store_used_again": Finding(
        "test_static_store.py::"
        "test_a_worker_that_is_being_stopped_still_has_its_store_and_writes_nothing_into_the_next[standalone]",
        r"assert 'cleaned up\\nkeys 1\\nkeys 1\\n' == "),
    "orphan": Finding("test_nothing_left.py::test_nothing_is_alive_after_two_seconds[no cgroup-worker-double]",
                      "did not come true within 10 s: all to end"),
    "restart_not_counted": Finding("test_many_nodes.py::test_a_restart_is_of_all_nodes_and_counts_once",
                                   r"assert \('0', '0'\) == \('0', '1'\)"),
    "cause_not_printed": Finding("test_cause_last.py::test_the_last_two_kilobytes_of_stderr_hold_the_cause",
                                 "assert 'first failure: rank ' in "),
    "unfit_node_let_in": Finding(
        "test_network_check.py::test_a_faulty_node_is_left_out_and_says_so_and_the_others_train",
        r"assert \[0, 0, 0, 0\] == \[0, 0, 0, 1\]"),
    "status_0": Finding("test_launch.py::test_the_exit_code_of_a_worker_is_not_that_of_the_launcher",
                        "assert 0 == 1"),
}
CASES = sorted({finding.case for finding in FINDINGS.values()})


def run_pytest(directory, *arguments, binary=None):
    """pytest on tests/system, with directories of its own. What fails there is no failure of this test's own run."""
    (directory / "beside").mkdir()
    ours = ("ELASTIC_RUN_", "PYTEST_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"TMPDIR": str(directory / "beside"), "ELASTIC_RUN_BINARY": str(binary or "")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", ROOT / "pytest.ini", "--rootdir", ROOT, "--basetemp", directory / "tmp",
         *arguments], env=environment, cwd=SYSTEM, capture_output=True, text=True, check=False, timeout=PATIENCE)


@pytest.fixture
def run_cases(tmp_path):
    """run_cases(name, cases): pytest's result on those cases, with the mistake of that name on."""

    def run(name, cases):
        planted = pathlib.Path(os.environ.get("ELASTIC_RUN_PLANTED", ROOT / "build/release/tests/planted" / PROGRAM))
        assert os.access(planted, os.X_OK), f"no {planted}: scripts/test full builds it"
        binary = tmp_path / name / "elastic-run"
        binary.parent.mkdir()
        shutil.copy(planted, binary)
        return run_pytest(tmp_path, *cases, binary=binary)

    return run


def test_every_mistake_has_a_case_that_is_to_find_it():
    assert list(FINDINGS) == list(dict.fromkeys(mistake.letter for mistake in mistakes.MISTAKES[PROGRAM]))


@pytest.mark.parametrize("case", CASES)
def test_the_case_is_in_the_gate(tmp_path, case):
    file, name = case.split("::")
    wishes = re.findall(r"^# ctest: (.*)$", (SYSTEM / file).read_text(), re.MULTILINE)
    if "gate" in wishes:
        return
    assert {"gate-cases", "gate-pytorch"} & set(wishes), f"{file} has no case in the gate"
    collected = run_pytest(tmp_path, "--collect-only", "-m", "gate", file).stdout
    assert re.search(rf"^\S*{re.escape(file)}::{re.escape(name)}$", collected, re.MULTILINE), collected


@pytest.mark.parametrize("name", FINDINGS)
def test_the_mistake_is_found(run_cases, name):
    case, text = FINDINGS[name]
    result = run_cases(name, [case])
    assert result.returncode == 1 and re.search(r"\b1 failed\b", result.stdout), result.stdout + result.stderr
    assert re.search(rf"^[E>] .*{text}", result.stdout, re.MULTILINE), result.stdout


def test_without_a_mistake_all_these_cases_pass(run_cases):
    result = run_cases("no mistake", CASES)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(rf"\b{len(CASES)} passed\b", result.stdout), result.stdout
