"""Runs failed cases once more, each alone, if a busy machine may be all that was wrong.

  second_chance.py [--left=N] FAILED_CASES LAST_TESTS_FAILED    after a run of ctest in which tests have failed
  second_chance.py --count                                      how many cases may have a second chance

FAILED_CASES is the file of failed_cases.py, LAST_TESTS_FAILED that of ctest. Only cases of tests/system with the marker
`timing` may be run again, and only if they explain every test that has failed: at most three (--left) in all, of which
none has failed in a way that is an error whatever the time (NEVER_*). Else nothing is run again.

Beside the marker stands why time may fail the case, and how much of it there is:

  kind A   a node that stands still for some seconds is a lost one (T is loss_timeout, a lease 3T/5)
  kind E   the test has to do two things within a short time
  kind F   elastic-run waits for something for a short time
  kind G   durations or rates are measured
  kind H   a program of somebody else keeps the time

The last lines of stdout are `FAILED: CASE: ERROR` and `FLAKED (passed alone): CASE: ERROR`, then how many. Cases that
flaked are appended to build/flakes.txt. The exit status is 0 if all failed cases have passed. ELASTIC_RUN_BINARY names
the elastic-run under test, as for scripts/pytest, whose output goes to stderr.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SYSTEM = "tests/system"
VARIABLE = "ELASTIC_RUN_FAILED"
AT_MOST = 3  # cases in one run of scripts/test
PATIENCE_S = 1500  # for one case, as for a file of them in ctest

# What has gone wrong, if a file's test fails: nothing of it is a matter of time.
NEVER_FILES = {
    "test_lives.py": "two workers of a rank, or two worlds, at once",
    "test_static_store.py": "keys of another round in a store",
    "test_pid_reuse.py": "a signal to a stranger",
    "test_nothing_left.py": "a process left behind",
    "test_restricted.py": "a process left behind",
    "test_store_bytes.py": "wrong bytes",
    "test_store_operations.py": "wrong bytes",
    "test_store_transcripts.py": "wrong bytes",
    "test_store_waits.py": "wrong answers",
    "test_secret.py": "a stranger let in",
}
# The same, if the error was raised in that function or in one that it has called.
NEVER_FUNCTIONS = {
    "lives.py:check": "a rank twice, or two worlds at once",
    "test_node_lease.py:assert_gone_before": "a worker that outlived its lease",
    "harness.py:check_sanitizers": "a sanitizer's report",
}
# The same, if the text says so: the error, pytest's account of it, or what any program of the case has written.
NEVER_TEXTS = {
    r"rank \d+ was there twice|two worlds were there at once|an earlier world began after a later one|"
    r"rank \d+ of round \w+ \(process \d+\) began while": "a rank twice, or two worlds at once",
    # Two nodes were told one rank.
    r"(?m)^E +(AssertionError: )?assert \[[^]]*'(\d+)', '\2'[^]]*\] == \['0', '1'": "a rank twice",
    r"the job was begun anew": "two jobs of one name",
    r"outlives its lease": "a worker that outlived its lease",
    r"directories of workers were made outside TMPDIR|processes \[.*\] were left": "something left behind",
    r"(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer: |:\d+:\d+: runtime error: ": "a sanitizer's report",
    r"internal error: .* does not hold \(": "an invariant that does not hold",
    r"\bSIG(ABRT|BUS|FPE|ILL|SEGV)\b|ended with -(4|6|7|8|11)\b": "a crash",
    # As pytest shows a comparison of bytes that failed.
    r"(?m)^E +(AssertionError: )?assert .*\bb['\"].* (==|!=|in) |^E +At index \d+ diff: b['\"]": "wrong bytes",
}
LEFT_BEHIND = "left behind by this test"


def read_notes(path):
    """The lines of failed_cases.py, of which one that is not whole is {"broken": True}."""
    notes = []
    for line in pathlib.Path(path).read_text().splitlines() if os.path.exists(path) else []:
        try:
            notes.append(json.loads(line))
        except ValueError:
            notes.append({"broken": True})
    return notes


def read_failed_tests(path):
    """The names of ctest's file: NUMBER:NAME in each line."""
    text = pathlib.Path(path).read_text() if os.path.exists(path) else ""
    return [line.partition(":")[2] for line in text.splitlines() if line]


def failures(notes):
    """{case: its notes}, in the order in which they failed."""
    found = collections.defaultdict(list)
    for note in notes:
        if "case" in note:
            found[note["case"]].append(note)
    return dict(found)


def never(case, notes):
    """Why a case that has failed like that is not run again; None if it may be."""
    directory, _, file = case.partition("::")[0].rpartition("/")
    if directory != SYSTEM:
        return f"it is none of {SYSTEM}"
    if file in NEVER_FILES:
        return NEVER_FILES[file]
    if not all(note["timing"] for note in notes):
        return "it does not have the marker `timing`"
    broke_off = any(note["when"] in ("setup", "call") for note in notes)
    for note in notes:
        for function in note["functions"]:
            if function in NEVER_FUNCTIONS:
                return NEVER_FUNCTIONS[function]
        for pattern, what in NEVER_TEXTS.items():
            if re.search(pattern, note["text"]):
                return what
        # A test that breaks off leaves its programs to the harness. One that has passed must have ended them.
        if LEFT_BEHIND in note["text"] and not (broke_off and note["when"] == "teardown"):
            return "something left behind"
    return None


def unexplained(notes, failed_tests):
    """{test: why} of the tests of ctest that failed, and not by the failed cases of a session that came to its end."""
    ends = {note["session"]: note["ends"] for note in notes if "ends" in note}
    with_cases = {note["session"] for note in notes if "case" in note}
    sessions = collections.defaultdict(list)  # of a file: those that have failed
    for note in notes:
        for file in note.get("begins", []):
            if ends.get(note["session"]) != 0:
                sessions[file].append(note["session"])
    found = {}
    for test in failed_tests:
        match = re.fullmatch(r"(?:system|gate)\.(\w+)", test)
        if not match:
            found[test] = "it has no cases that are run again"
            continue
        failed = sessions[f"{SYSTEM}/test_{match[1]}.py"]
        if len(failed) != sum(other.partition(".")[2] == match[1] for other in failed_tests):
            found[test] = "pytest has not told how it ended"
        elif any(ends.get(session) != 1 for session in failed):
            found[test] = "pytest did not come to its end"
        elif not with_cases.issuperset(failed):
            found[test] = "pytest has not told which case failed"
    if not failed_tests:
        found["ctest"] = "it does not tell which test failed"
    if any("broken" in note for note in notes):
        found["pytest"] = "a line about failed cases is not whole"
    return found


def refusals(notes, failed_tests, left=AT_MOST):
    """{case or test: why} nothing is run again; empty if all failed cases may be."""
    cases = failures(notes)
    found = unexplained(notes, failed_tests)
    found |= {case: why for case, of_case in cases.items() if (why := never(case, of_case))}
    if len(cases) > left:
        found |= {case: f"{len(cases)} failed, and {left} may be run again" for case in cases if case not in found}
    return found


def passes_alone(case):
    with tempfile.TemporaryDirectory() as place:
        told = os.path.join(place, "told")
        process = subprocess.Popen([ROOT / "scripts/pytest", f"{ROOT}/{case}"], env=os.environ | {VARIABLE: told},
                                   stdout=sys.stderr, start_new_session=True)
        try:
            status = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            return False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        # One that is skipped now has not passed.
        return status == 0 and read_notes(told)[-1]["passed"] == 1


def count():
    """How many cases carry the marker, as pytest collects them."""
    files = [path for path in sorted((ROOT / SYSTEM).glob("test_*.py")) if "pytest.mark.timing" in path.read_text()]
    if not files:
        return 0
    result = subprocess.run([ROOT / "scripts/pytest", "--collect-only", "-m", "timing", *files], stdout=subprocess.PIPE,
                            text=True, check=True)
    return sum(line.startswith(f"{SYSTEM}/") and "::" in line for line in result.stdout.splitlines())


def commit():
    result = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=False)
    return result.stdout.strip() or "unknown"


def remember(flaked):
    """A line for each in build/flakes.txt: when, at which commit, case and error."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build/flakes.txt", "a") as file:
        file.writelines(f"{now} {commit()} {case}: {error}\n" for case, error in flaked.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true", help="print how many cases may have a second chance")
    parser.add_argument("--left", type=int, default=AT_MOST, metavar="N",
                        help="how many cases may still be run again in this run of scripts/test (3)")
    parser.add_argument("files", nargs="*", metavar="FAILED_CASES LAST_TESTS_FAILED")
    options = parser.parse_args()
    if options.count and not options.files:
        print(f"{count()} cases may have a second chance")
        return 0
    if options.count or len(options.files) != 2:
        parser.error("two files are needed, or --count alone")

    notes, failed_tests = read_notes(options.files[0]), read_failed_tests(options.files[1])
    errors = {case: of_case[0]["error"] for case, of_case in failures(notes).items()}
    refused = refusals(notes, failed_tests, options.left)
    for what, why in refused.items():
        print(f"no second chance: {what}: {why}", file=sys.stderr)
    flaked = {case: error for case, error in errors.items() if not refused and passes_alone(case)}
    failed = {case: error for case, error in errors.items() if case not in flaked}
    failed |= {test: why for test, why in refused.items() if test not in errors}
    if flaked:
        remember(flaked)
    for case, error in failed.items():
        print(f"FAILED: {case}: {error}")
    for case, error in flaked.items():
        print(f"FLAKED (passed alone): {case}: {error}")
    print(f"{len(failed)} failed, {len(flaked)} flaked, {count()} cases may have a second chance")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
