"""Which failed cases are run once more: tests/second_chance.py, with what tests/failed_cases.py has noted of them."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import second_chance  # noqa: E402

MAY_CARRY = 40  # cases with the marker
COPIED = ["pytest.ini", "scripts/pytest", "scripts/lib.sh", "tests/conftest.py", "tests/failed_cases.py",
          "tests/second_chance.py", "tests/system/conftest.py", "tests/system/harness.py", "tests/system/lives.py"]
LATE = "harness.wait_until(lambda: False, timeout=0, what='a node')"
HEAD = "import harness, lives, os, pathlib, pytest, signal, struct\ntiming = pytest.mark.timing\n"


class Tree:
    """A repository with the real harness and test files of the test's own."""

    def __init__(self, directory):
        self.root = directory
        self.notes = directory / "notes"
        self.failed_tests = directory / "failed-tests"
        for name in COPIED:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, directory / name)
        harness = directory / "tests/system/harness.py"
        harness.write_text(harness.read_text().replace("patience=5.0", "patience=0.1"))  # for what is left behind here

    def write(self, name, text):
        (self.root / "tests/system" / name).write_text(HEAD + text)

    def run(self, *program):
        return subprocess.run(program, cwd=self.root, capture_output=True, text=True, check=False, env=os.environ | {
            "ELASTIC_RUN_BINARY": "/bin/true", "ELASTIC_RUN_FAILED": str(self.notes)})

    def session(self, *names, directory="system"):
        """What a session of pytest for these files has noted."""
        self.notes.unlink(missing_ok=True)
        result = self.run("scripts/pytest", *(self.root / "tests" / directory / name for name in names))
        assert self.notes.exists(), result
        return second_chance.read_notes(self.notes)

    def second_chance(self, *failed_tests):
        """As scripts/test calls it after the session."""
        self.failed_tests.write_text("".join(f"{number}:{name}\n" for number, name in enumerate(failed_tests, 7)))
        return self.run("python3", "tests/second_chance.py", self.notes, self.failed_tests)

    def flakes(self):
        file = self.root / "build/flakes.txt"
        return file.read_text() if file.exists() else ""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("tree"))


# --- Failures, as real sessions note them -----------------------------------------------------

FAILURES = """
SH = ["/bin/sh", "-c"]
# Here, since pytest shows the source of a test that fails.
ADDRESS = "==42==ERROR: AddressSanitizer: heap-use-after-free"
LEAK = "==42==ERROR: LeakSanitizer: detected memory leaks"
CHECK = "elastic-run: internal error: a == b does not hold (a.cpp:1); please report this"
CRASH = "elastic-run: error: the launcher (process 7) was killed by SIGSEGV"
def worker(place, number, began, was_alive, rank, fence):
    who = f"host {rank} 2 {fence}\\n".encode()
    (place / f"stamps.{number}").write_bytes(struct.pack("=QQ", began, was_alive) + who)

@timing
def test_late():
    LATE
@timing
def test_breaks_off(elastic_run):
    elastic_run.start("100", program=["/bin/sleep"])
    LATE
@pytest.fixture
def begins_late(elastic_run):
    elastic_run.start("100", program=["/bin/sleep"])
    LATE
@timing
def test_begins_late(begins_late):
    pass
@timing
@pytest.mark.parametrize("rank", ["a/b//c::d [e]"])
def test_named(rank):
    LATE

def test_unmarked():
    LATE
@timing
def test_rank_twice(tmp_path):
    worker(tmp_path, 1, 1, 5, 0, "a")
    worker(tmp_path, 2, 4, 9, 0, "a")
    lives.check(tmp_path)
@timing
def test_two_worlds(tmp_path):
    worker(tmp_path, 1, 1, 5, 0, "a")
    worker(tmp_path, 2, 4, 9, 1, "b")
    lives.check(tmp_path)
@timing
def test_earlier_world(tmp_path):
    worker(tmp_path, 1, 1, 3, 0, "b")
    worker(tmp_path, 2, 4, 9, 1, "a")
    lives.check(tmp_path)
@timing
def test_ranks():
    assert sorted(["1", "0", "0"]) == ["0", "1", "2"]
@timing
def test_lease():
    raise AssertionError("a worker outlives its lease")
@timing
def test_anew():
    raise AssertionError("the job was begun anew")
@timing
def test_leaves(elastic_run):
    elastic_run("sleep 100 </dev/null >/dev/null 2>&1 &", program=SH)
@timing
def test_bytes():
    assert b"abc" == b"abd"
@timing
def test_many_bytes():
    assert {1: b"abc" * 100} == {1: b"abd" * 100}
@timing
def test_sanitizer(elastic_run):
    elastic_run(f"echo '{ADDRESS}' >&2", program=SH)
@timing
def test_sanitizer_of_another_program(elastic_run):
    (elastic_run.directory / "sanitizer.42").write_text(LEAK)
    elastic_run.start("100", program=["/bin/sleep"])
    LATE
@timing
def test_check(elastic_run):
    result = elastic_run(f"echo '{CHECK}' >&2; exit 1", program=SH)
    assert result.returncode == 0, result
@timing
def test_abort(elastic_run):
    result = elastic_run("kill -ABRT $$", program=SH)
    assert result.returncode == 0, result
@timing
def test_crash_of_another_program(elastic_run):
    elastic_run(f"echo '{CRASH}' >&2", program=SH)
    LATE
""".replace("LATE", LATE)

MAY_BE_RUN_AGAIN = ["test_late", "test_breaks_off", "test_begins_late", "test_named[a/b//c::d [e]]"]
NEVER = {
    "test_unmarked": "it does not have the marker `timing`",
    "test_rank_twice": "a rank twice, or two worlds at once",
    "test_two_worlds": "a rank twice, or two worlds at once",
    "test_earlier_world": "a rank twice, or two worlds at once",
    "test_ranks": "a rank twice",
    "test_lease": "a worker that outlived its lease",
    "test_anew": "two jobs of one name",
    "test_leaves": "something left behind",
    "test_bytes": "wrong bytes",
    "test_many_bytes": "wrong bytes",
    "test_sanitizer": "a sanitizer's report",
    "test_sanitizer_of_another_program": "a sanitizer's report",
    "test_check": "an invariant that does not hold",
    "test_abort": "a crash",
    "test_crash_of_another_program": "a crash",
}


# Where only the function tells.
NODE_LEASE = """
def assert_gone_before(old, new):
    assert old < new
@timing
def test_it():
    assert_gone_before(2, 1)
"""

NONE = """
@pytest.mark.xfail
def test_expected():
    assert False
def test_the_variable_is_not_for_sessions_that_a_test_starts():
    assert "ELASTIC_RUN_FAILED" not in os.environ
"""


@pytest.fixture(scope="module")
def noted(tree):
    """What a session with all of these has noted."""
    tree.write("test_failures.py", FAILURES)
    tree.write("test_node_lease.py", NODE_LEASE)
    tree.write("test_none.py", NONE)
    return tree.session("test_failures.py", "test_node_lease.py", "test_none.py")


@pytest.fixture(scope="module")
def failures(noted):
    """{case: its notes}"""
    return second_chance.failures(noted)


def test_a_session_notes_its_files_and_how_it_ended(noted):
    assert noted[0]["begins"] == [f"tests/system/test_{name}.py" for name in ("failures", "node_lease", "none")]
    # The test that leaves a process has passed before, and that about the variable.
    assert (noted[-1]["ends"], noted[-1]["passed"]) == (1, 2)
    assert len({note["session"] for note in noted}) == 1


def test_every_failure_is_noted_of_setup_call_and_teardown_and_no_expected_one(failures):
    found = {case.partition("::")[2]: [note["when"] for note in notes] for case, notes in failures.items()}
    assert set(found) == {*MAY_BE_RUN_AGAIN, *NEVER, "test_it"}
    assert (found["test_late"], found["test_leaves"]) == (["call"], ["teardown"])
    assert (found["test_breaks_off"], found["test_begins_late"]) == (["call", "teardown"], ["setup", "teardown"])


def test_the_first_line_of_the_error_is_noted(failures):
    [late] = failures["tests/system/test_failures.py::test_late"]
    assert late["error"] == "harness.HarnessError: did not come true within 0 s: a node"


@pytest.mark.parametrize("name", MAY_BE_RUN_AGAIN)
def test_a_marked_case_that_was_late_may_be_run_again_also_if_the_harness_had_to_end_its_programs(failures, name):
    case = f"tests/system/test_failures.py::{name}"
    assert second_chance.never(case, failures[case]) is None


@pytest.mark.parametrize("name", NEVER)
def test_what_is_an_error_whatever_the_time_is_never_run_again(failures, name):
    case = f"tests/system/test_failures.py::{name}"
    assert second_chance.never(case, failures[case]) == NEVER[name]


@pytest.mark.parametrize("name", ["test_rank_twice", "test_two_worlds", "test_earlier_world", "test_sanitizer"])
@pytest.mark.parametrize("lacking", [{"functions": []}, {"text": ""}], ids=["by its text", "by its function"])
def test_such_an_error_is_known(failures, name, lacking):
    case = f"tests/system/test_failures.py::{name}"
    assert second_chance.never(case, [note | lacking for note in failures[case]]) == NEVER[name]


@pytest.mark.parametrize("text, why", [
    ("rank 0 of round 0000000a (process 7) began while process 8 of", "a rank twice, or two worlds at once"),
    ("processes [7, 8] were left", "something left behind"),
    ("AssertionError: directories of workers were made outside TMPDIR, or stayed: []", "something left behind"),
    ("src/a.cpp:1:2: runtime error: signed integer overflow", "a sanitizer's report"),
    ("==7==ERROR: ThreadSanitizer: data race", "a sanitizer's report"),
    ("<['elastic-run'] ended with -11 after 0.10 s", "a crash"),
    ("process 7 was killed by SIGABRT", "a crash"),
    ("E         At index 2 diff: b'c' != b'd'", "wrong bytes"),
])
def test_such_words_of_a_program_are_known(failures, text, why):
    case = "tests/system/test_failures.py::test_late"
    [note] = failures[case]
    assert second_chance.never(case, [note | {"text": f"{note['text']}\nand beside it\n{text}\n"}]) == why


def test_an_error_of_a_function_that_judges_safety_is_never_run_again(failures):
    case = "tests/system/test_node_lease.py::test_it"
    assert second_chance.never(case, failures[case]) == "a worker that outlived its lease"


@pytest.mark.parametrize("file, why", [
    *((f"tests/system/{name}", why) for name, why in second_chance.NEVER_FILES.items()),
    ("tests/structure/test_late.py", "it is none of tests/system"),
    ("tests/gpu/test_late.py", "it is none of tests/system"),
])
def test_files_that_are_about_safety_have_no_second_chance_nor_has_any_other_directory(failures, file, why):
    assert second_chance.never(f"{file}::test_late", failures["tests/system/test_failures.py::test_late"]) == why


def test_a_file_that_cannot_be_collected_is_noted_as_a_case_without_the_marker(tree):
    (tree.root / "tests/structure").mkdir()
    (tree.root / "tests/structure/test_broken.py").write_text("import nothing_of_that_name\n")
    notes = tree.session("test_broken.py", directory="structure")
    assert [(note["case"], note["timing"]) for note in notes[1:-1]] == [("tests/structure/test_broken.py", False)]
    assert notes[0]["begins"] == ["tests/structure/test_broken.py"] and notes[-1]["ends"] == 2


# --- Which runs of ctest are excused ----------------------------------------------------------


# runs(name) counts its calls in a file of that name.
RUNS = """
def runs(name):
    with open(pathlib.Path(__file__).with_name(name), "a") as file:
        file.write("run ")
        return file.tell() // 4
"""


@pytest.fixture(scope="module")
def sessions(tree):
    """The notes of sessions: one case that is late, three of them, and one that is killed after such a case."""
    tree.write("test_one.py", RUNS + f"@timing\ndef test_a():\n    runs('one')\n    {LATE}\n")
    tree.write("test_killed.py", f"@timing\ndef test_a():\n    {LATE}\n"
                                 "def test_b():\n    os.kill(os.getpid(), signal.SIGKILL)\n")
    one, killed = tree.session("test_one.py"), tree.session("test_killed.py")
    first, case, last = [json.loads(json.dumps(note).replace("test_one", "test_three")) for note in one]
    cases = [case | {"case": case["case"].replace("test_a", f"test_{name}")} for name in "abc"]
    three = [note | {"session": "three"} for note in [first, *cases, last]]
    return {"one": one, "three": three, "killed": killed}


CASE = "tests/system/test_one.py::test_a"


@pytest.mark.parametrize("test", ["system.one", "gate.one"])
def test_one_case_may_be_run_again(sessions, test):
    assert second_chance.refusals(sessions["one"], [test]) == {}


def test_three_cases_may_be_run_again_and_four_may_not(sessions):
    assert second_chance.refusals(sessions["three"], ["system.three"]) == {}
    both = second_chance.refusals(sessions["one"] + sessions["three"], ["system.one", "system.three"])
    assert len(both) == 4 and set(both.values()) == {"4 failed, and 3 may be run again"}


def test_three_cases_are_all_for_the_steps_of_one_run(sessions):
    assert second_chance.refusals(sessions["one"], ["gate.one"], left=1) == {}
    assert second_chance.refusals(sessions["one"], ["gate.one"], left=0) == {CASE: "1 failed, and 0 may be run again"}


def test_with_a_case_that_may_not_no_other_is_run_again(sessions):
    notes = [note | {"timing": note["case"].endswith("_a")} if "case" in note else note for note in sessions["three"]]
    assert second_chance.refusals(notes, ["system.three"]) == {
        f"tests/system/test_three.py::test_{name}": "it does not have the marker `timing`" for name in "bc"}


@pytest.mark.parametrize("test", ["unit.elastic_base", "simulation.faults", "fuzz.store", "structure.one", "peers.one",
                                  "gpu.one"])
def test_a_test_that_has_no_such_cases_is_not_excused_by_those_of_others(sessions, test):
    assert second_chance.refusals(sessions["one"], [test]) == {test: "it has no cases that are run again"}
    assert test in second_chance.refusals(sessions["one"], ["system.one", test])


def test_a_test_that_failed_without_a_case_is_not_excused(sessions):
    one, why = sessions["one"], "pytest has not told how it ended"
    assert second_chance.refusals(one, ["system.one", "system.other"]) == {"system.other": why}
    assert second_chance.refusals(one, ["system.one", "gate.one"]) == {"system.one": why, "gate.one": why}
    passed = [note | {"ends": 0} if "ends" in note else note for note in one]
    assert second_chance.refusals(passed, ["system.one"]) == {"system.one": why}
    without = [note for note in one if "case" not in note]
    assert second_chance.refusals(without, ["system.one"]) == {"system.one": "pytest has not told which case failed"}


def test_of_two_tests_of_one_file_each_that_failed_has_to_tell(sessions):
    first, case, last = [note | {"session": "another"} for note in sessions["one"]]
    assert second_chance.refusals([*sessions["one"], first, case, last], ["system.one", "gate.one"]) == {}
    assert second_chance.refusals([*sessions["one"], first, last | {"ends": 0}], ["system.one"]) == {}


def test_a_session_that_did_not_come_to_its_end_is_not_excused(sessions):
    killed = sessions["killed"]
    assert [sorted(note)[0] for note in killed] == ["begins", "case"]
    assert second_chance.refusals(killed, ["system.killed"]) == {"system.killed": "pytest did not come to its end"}
    interrupted = [note | {"ends": 2} if "ends" in note else note for note in sessions["one"]]
    assert second_chance.refusals(interrupted, ["system.one"]) == {"system.one": "pytest did not come to its end"}


def test_where_ctest_names_no_test_or_a_line_is_not_whole_nothing_is_excused(tmp_path, sessions):
    assert second_chance.refusals(sessions["one"], []) == {"ctest": "it does not tell which test failed"}
    lines = [json.dumps(note) for note in sessions["one"]]
    (tmp_path / "notes").write_text("\n".join([*lines, lines[1][:-9]]) + "\n")
    notes = second_chance.read_notes(tmp_path / "notes")
    assert second_chance.refusals(notes, ["system.one"]) == {"pytest": "a line about failed cases is not whole"}


# --- The second run ---------------------------------------------------------------------------

@pytest.fixture
def place(tmp_path):
    return Tree(tmp_path / "place")


def test_a_case_that_passes_alone_is_told_remembered_and_fails_nothing(place):
    place.write("test_it.py", RUNS + f"@timing\ndef test_flakes():\n    if runs('flakes') == 1:\n        {LATE}\n"
                                     "@timing\ndef test_passes():\n    runs('passes')\n")
    place.session("test_it.py")
    result = place.second_chance("gate.it")
    case, error = "tests/system/test_it.py::test_flakes", "harness.HarnessError: did not come true within 0 s: a node"
    assert result.returncode == 0, result
    assert result.stdout.splitlines() == [f"FLAKED (passed alone): {case}: {error}",
                                          "0 failed, 1 flaked, 2 cases may have a second chance"]
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert re.fullmatch(rf"{time} unknown {re.escape(f'{case}: {error}')}\n", place.flakes())
    assert (place.root / "tests/system/passes").read_text() == "run "  # alone


def test_a_case_that_fails_again_or_is_skipped_then_has_failed_and_the_others_are_told_beside_it(place):
    place.write("test_it.py", RUNS + f"""
@pytest.fixture
def ends_badly():
    yield
    assert runs("ends_badly") == 1, "it has passed, and is not well"
@timing
def test_fails(ends_badly):
    if runs("fails") == 1:
        {LATE}
@timing
def test_flakes():
    if runs("flakes") == 1:
        {LATE}
@timing
def test_skips():
    if runs("skips") == 1:
        {LATE}
    pytest.skip("not now")
""")
    place.session("test_it.py")
    result = place.second_chance("system.it")
    assert result.returncode == 1, result
    assert re.sub(": harness.*", "", result.stdout).splitlines() == [
        "FAILED: tests/system/test_it.py::test_fails", "FAILED: tests/system/test_it.py::test_skips",
        "FLAKED (passed alone): tests/system/test_it.py::test_flakes",
        "2 failed, 1 flaked, 3 cases may have a second chance"]
    assert (place.root / "tests/system/fails").read_text() == "run run "
    assert place.flakes().count("\n") == 1


def test_nothing_is_run_again_where_a_test_is_not_excused(tree, sessions):
    tree.notes.write_text("".join(json.dumps(note) + "\n" for note in sessions["one"]))
    result = tree.second_chance("system.one", "unit.elastic_base")
    assert result.returncode == 1, result
    [*failed, counted] = result.stdout.splitlines()
    assert failed == [f"FAILED: {CASE}: harness.HarnessError: did not come true within 0 s: a node",
                      "FAILED: unit.elastic_base: it has no cases that are run again"]
    assert re.fullmatch(r"2 failed, 0 flaked, \d+ cases may have a second chance", counted)
    assert "no second chance: unit.elastic_base: it has no cases that are run again\n" in result.stderr
    assert (tree.root / "tests/system/one").read_text() == "run " and tree.flakes() == ""


# --- The tests that there are -----------------------------------------------------------------


def test_few_cases_may_have_a_second_chance_and_none_of_a_file_that_is_about_safety():
    assert 0 < second_chance.count() <= MAY_CARRY
    for name in second_chance.NEVER_FILES:
        assert "pytest.mark.timing" not in (ROOT / "tests/system" / name).read_text(), name


@pytest.mark.parametrize("path, text", [
    *(("tests/system/" + name.split(":")[0], f"def {name.split(':')[1]}(") for name in second_chance.NEVER_FUNCTIONS),
    ("tests/system/test_guardian_lease.py", '"a worker outlives its lease"'),
    ("tests/system/test_failover_back_empty.py", '"the job was begun anew"'),
    ("tests/system/conftest.py", "directories of workers were made outside TMPDIR"),
    ("tests/system/harness.py", f'"{second_chance.LEFT_BEHIND} '),
    ("tests/soak/churn.py", 'f"rank {one.rank} of round {one.round:08x} (process {one.pid}) began while'),
    ("tests/soak/churn.py", 'f"processes {left} were left"'),
    ("src/base/check.cpp", "internal error: %s does not hold ("),
])
def test_the_errors_that_are_never_a_matter_of_time_still_have_these_words(path, text):
    assert text in (ROOT / path).read_text()
