"""scripts/run and scripts/test themselves. Installing and compiling are replaced: test_scripts.py and
the suite's own run try those."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# In the place of elastic-run: says how it was called, then does what the test wants.
PROGRAM = r"""#!/usr/bin/env bash
echo "called by $PPID as $$ in $PWD"
printf 'argument <%s>\n' "$@"
echo "python ${VIRTUAL_ENV:-none} ${PYTHON_EXEC:-none} ${PATH%%:*}"
echo "scratch $TMPDIR"
touch "$TMPDIR/left-by-a-worker"
trap 'echo got TERM; exit 15' TERM
trap 'echo got INT; exit 2' INT
eval "${THEN:-}"
"""
CTEST = r"""#!/usr/bin/env bash
echo "ctest $*" | sed "s|$PWD|.|g"
mkdir -p "$2/Testing/Temporary"
echo "SKIPPED [1] ../../tests/system/test_x.py:7: needs a GPU" >"$2/Testing/Temporary/LastTest.log"
case $* in *"$FAILING"*) echo "90% tests passed, 1 tests failed out of 10"; exit 8 ;; esac
echo "100% tests passed, 0 tests failed out of 10"
"""

# In the place of tests/second_chance.py, which has tests of its own.
SECOND_CHANCE = r"""
import os, sys
print(f"second chance {sys.argv[1:]} of {os.environ.get('ELASTIC_RUN_BINARY')}", file=sys.stderr)
if sys.argv[1:] == ["--count"]:
    print("7 cases may have a second chance")
elif os.environ.get("FLAKES"):
    print("FLAKED (passed alone): tests/system/test_x.py::test_y: too late\n"
          "0 failed, 1 flaked, 7 cases may have a second chance")
else:
    print("FAILED: unit.x: it has no cases that are run again\n1 failed, 0 flaked, 7 cases may have a second chance")
    sys.exit(1)
"""


class Clone:
    """A clone whose packages are there and whose build is up to date."""

    def __init__(self, directory):
        self.directory = directory
        self.cache = directory / "cache"
        (directory / "tmp").mkdir()
        shutil.copytree(ROOT / "scripts", directory / "scripts")
        self.write("scripts/python-packages.txt", "torch==1\nnumpy==1\n")
        with (directory / "scripts/lib.sh").open("a") as lib:
            lib.write('ensure_packages() { echo "packages $*" >>asked; nothing_to_do; }\n'
                      'ensure_build() { echo "build $*" >>asked; mkdir -p "$root/build/$1"; nothing_to_do; }\n'
                      'ensure_venv() { echo "venv $*" >>asked; nothing_to_do; }\n'
                      'ensure_peers() { echo peers >>asked; nothing_to_do; }\n'
                      'cache_counts() { echo 0 0; }\n')
        self.write("build/release/elastic-run", PROGRAM)
        self.write("tools/ctest", CTEST)
        self.write("tests/second_chance.py", SECOND_CHANCE)

    def write(self, path, text):
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def make_venv(self):
        """As pip leaves it, for all that lib.sh looks at."""
        self.write("cache/elastic-run/venv/bin/python", "#!/bin/sh\necho 3.11\n")
        for name in ("torch", "numpy", "pytest", "kubernetes_validate", "py_spy"):
            self.write(f"cache/elastic-run/venv/lib/python3.11/site-packages/{name}-1.dist-info/RECORD", "x")
        return self.cache / "elastic-run/venv"

    @property
    def asked(self):
        return (self.directory / "asked").read_text().splitlines()

    def start(self, *command, **environment):
        values = {"PATH": f"{self.directory}/tools:{os.environ['PATH']}", "HOME": str(self.directory),
                  "XDG_CACHE_HOME": str(self.cache), "TMPDIR": str(self.directory / "tmp"),
                  "FAILING": "nothing"} | environment
        return subprocess.Popen(command, env=values, cwd=self.directory, text=True, bufsize=1,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, start_new_session=True)

    def run(self, *command, **environment):
        process = self.start(*command, **environment)
        stdout, stderr = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.fixture
def clone(tmp_path):
    return Clone(tmp_path)


def test_arguments_reach_elastic_run_as_they_are(clone):
    arguments = ["--nproc-per-node=2", "a b", "", "*", "-h", "--", "é\n"]
    process = clone.start("scripts/run", *arguments, THEN="exit 7")
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (7, "")
    # Run in the place of the script (exec), where the user stands, with nothing else on stdout.
    assert stdout.startswith(f"called by {os.getpid()} as {process.pid} in {clone.directory}\n" +
                             "".join(f"argument <{text}>\n" for text in arguments) + "python ")


def test_with_arguments_only_the_build_is_set_up(clone):
    assert clone.run("scripts/run", "--version").returncode == 0
    assert [line.split()[0] for line in clone.asked] == ["packages", "build"]
    assert "python3" not in clone.asked[0] and clone.asked[1] == "build release elastic-run"


def test_the_python_that_is_run_is_the_users_own_if_they_have_one_active(clone):
    def python(**environment):
        lines = clone.run("scripts/run", "x", **environment).stdout.splitlines()
        return next(line for line in lines if line.startswith("python "))

    tools = clone.directory / "tools"
    assert python() == f"python none none {tools}"
    venv = clone.make_venv()
    assert python() == f"python {venv} none {venv}/bin"
    assert python(VIRTUAL_ENV="/mine") == f"python /mine none {tools}"
    assert python(PYTHON_EXEC="/my/python") == f"python none /my/python {tools}"
    assert python(CONDA_PREFIX="/conda") == f"python none none {tools}"
    (venv / ".elastic-run-unfinished").write_text("created")
    assert python() == f"python none none {tools}"


def test_the_main_job_is_set_up_run_and_cleaned_up_after(clone):
    result = clone.run("scripts/run", VIRTUAL_ENV="/mine", PYTHON_EXEC="/my/python", THEN="exit 3")
    assert result.returncode == 3
    assert [line.split()[0] for line in clone.asked] == ["packages", "build", "venv"]
    venv = clone.cache / "elastic-run/venv"
    assert f"\npython {venv} none {venv}/bin\n" in result.stdout
    assert "argument <--max-restarts=3>" in result.stdout
    assert f"argument <{clone.directory}/examples/fashion_mnist.py>" in result.stdout
    assert [line[:5] for line in result.stderr.splitlines()] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert list((clone.directory / "tmp").iterdir()) == []


@pytest.mark.parametrize("number,status", [(signal.SIGTERM, 15), (signal.SIGINT, 2)])
def test_a_signal_to_the_script_reaches_the_main_job_and_its_end_is_waited_for(clone, number, status):
    process = clone.start("scripts/run", THEN="echo ready; while :; do sleep 0.05; done")
    for line in process.stdout:
        if line == "ready\n":
            break
    process.send_signal(number)
    stdout, _ = process.communicate(timeout=120)
    assert f"got {number.name.removeprefix('SIG')}\n" in stdout and process.returncode == status
    assert list((clone.directory / "tmp").iterdir()) == []


CLOSING = "100% tests passed, 0 tests failed out of 10"
GATE = ["structure, unit tests, simulations", "system tests that hold no clock", "one case of each kind of failure",
        "PyTorch, fresh and warm"]


def calls_of_ctest(result):
    return [line for line in result.stdout.splitlines() if line.startswith("ctest ")]


def steps(result):
    """What the closing table lists."""
    lines = result.stdout.splitlines()
    table = lines[next(at for at, line in enumerate(lines) if line.startswith("step ")) + 1:]
    return [line.rsplit(maxsplit=1)[0] for line in table[:table.index("")]]


def test_scripts_test_is_the_gate_step_by_step_and_ends_with_what_failed(clone):
    clone.make_venv()
    result = clone.run("scripts/test")
    assert result.returncode == 0, result.stderr
    assert [line for line in clone.asked if line.startswith("build")] == ["build release gate"]
    assert "peers" not in clone.asked and not any("slurmctld" in line or "clang-19" in line for line in clone.asked)
    assert [call.rpartition(" -L ")[2] for call in calls_of_ctest(result)] == [
        "^gate-fast$", "^gate-files$", "^gate-cases$", "^gate-pytorch$"]
    assert steps(result) == ["Debian packages", "Python environment", "build", *GATE, "in all"]
    assert result.stdout.splitlines()[-1] == "0 failed, 0 flaked; 7 cases may have a second chance"


BESIDE = "Python environment, when the build was there"
MEETING = 'mkfifo "$root/pipe" 2>/dev/null || true; '  # where the one waits for the other to have begun


def in_place_of(clone, name, body):
    """A function of lib.sh, for the scripts of this clone."""
    with (clone.directory / "scripts/lib.sh").open("a") as lib:
        lib.write(f"{name}() {{ {body}; }}\n")


def test_the_gate_makes_a_missing_python_environment_beside_the_build(clone):
    in_place_of(clone, "ensure_venv", MEETING + 'echo begun >"$root/pipe"; echo "venv $*" >>asked; say "$step_name: made"')
    in_place_of(clone, "ensure_build", MEETING + 'read -r met <"$root/pipe"; mkdir -p "$root/build/$1"; say "met: $met"')
    result = clone.run("scripts/test")
    assert result.returncode == 0, result.stderr
    assert clone.asked[1:] == ["venv torch numpy pytest kubernetes_validate py_spy"]
    assert "[2/7] Python environment: made\n" in result.stderr and "met: begun\n" in result.stderr
    assert steps(result) == ["Debian packages", "Python environment", "build", BESIDE, *GATE, "in all"]


def test_an_environment_that_cannot_be_made_beside_the_build_fails_the_gate(clone):
    in_place_of(clone, "ensure_venv", 'die "no such torch"')
    result = clone.run("scripts/test")
    assert result.returncode == 1 and "no such torch\n" in result.stderr
    assert calls_of_ctest(result) == []
    assert steps(result) == ["Debian packages", "Python environment", "build", BESIDE, "in all"]


def test_a_build_that_fails_ends_what_makes_the_environment_beside_it(clone):
    in_place_of(clone, "ensure_venv", MEETING + 'echo begun >"$root/pipe"; sleep 1000')
    in_place_of(clone, "ensure_build", MEETING + 'read -r met <"$root/pipe"; die "it does not compile"')
    result = clone.run("scripts/test")  # which returns when nobody holds its output any more
    assert result.returncode == 1 and "it does not compile\n" in result.stderr
    assert steps(result) == ["Debian packages", "Python environment", "in all"]


def test_the_first_step_of_the_gate_that_fails_ends_it(clone):
    clone.make_venv()
    result = clone.run("scripts/test", FAILING="^gate-files$")
    assert result.returncode == 1
    assert len(calls_of_ctest(result)) == 2
    assert steps(result) == ["Debian packages", "Python environment", "build", *GATE[:2], "in all"]
    assert result.stdout.splitlines()[-3:] == [
        "release: 90% tests passed, 1 tests failed out of 10", "FAILED: unit.x: it has no cases that are run again",
        "1 failed, 0 flaked; 7 cases may have a second chance"]


def test_the_gate_goes_on_after_a_case_that_passed_alone_and_says_so_at_the_end(clone):
    result = clone.run("scripts/test", FAILING="^gate-", FLAKES="1")
    assert result.returncode == 0 and len(calls_of_ctest(result)) == 4
    assert result.stdout.splitlines()[-5:-1] == ["FLAKED (passed alone): tests/system/test_x.py::test_y: too late"] * 4
    assert result.stdout.splitlines()[-1] == "0 failed, 4 flaked; 7 cases may have a second chance"
    told = [line.split(" of ")[0] for line in result.stderr.splitlines() if "--left=" in line]
    assert [line.partition("--left=")[2][0] for line in told] == ["3", "2", "1", "0"]


def test_what_ctest_failed_before_is_not_taken_for_what_it_fails_now(clone):
    clone.write("build/release/failed-cases", "old")
    clone.write("build/release/Testing/Temporary/LastTestsFailed.log", "1:old")
    assert clone.run("scripts/test").returncode == 0
    assert not (clone.directory / "build/release/failed-cases").exists()
    assert not (clone.directory / "build/release/Testing/Temporary/LastTestsFailed.log").exists()


def full_steps():
    """The steps of scripts/test full: [[preset, what, at once, ctest's choice]]."""
    block = re.search(r"^full_steps=\(\n(.*?)^\)", (ROOT / "scripts/test").read_text(), flags=re.S | re.M)[1]
    return [line.strip().strip("'").split("|", 3) for line in block.splitlines()]


def test_full_runs_everything_step_by_step_and_ends_with_what_ctest_says(clone):
    result = clone.run("scripts/test", "full")
    assert result.returncode == 0, result.stderr
    assert [line.split()[:2] for line in clone.asked if line.startswith("build")] == [
        ["build", "release"], ["build", "asan"]]
    assert result.stdout.splitlines()[-6:] == [
        *[f"release: {CLOSING}"] * 3, *[f"asan: {CLOSING}"] * 2, "0 failed, 0 flaked; 7 cases may have a second chance"]
    assert "release: skipped tests/system/test_x.py:7: needs a GPU\n" in result.stdout
    names = [f"{what} ({preset})" for preset, what, _, _ in full_steps()]
    assert steps(result) == ["Debian packages", "Python environment", "frameworks", "build (release)", *names[:3],
                             "build (asan)", *names[3:], "in all"]
    for call, (preset, _, _, choice) in zip(calls_of_ctest(result), full_steps(), strict=True):
        assert f"--test-dir ./build/{preset} " in call and call.endswith(f" {choice}")
    said = result.stderr.splitlines()
    assert next(line for line in said if line.startswith("[1/")).startswith("[1/10] ")
    assert any(line.startswith("[10/10] ") for line in said)


def test_every_test_is_in_one_step_of_full():
    build = pathlib.Path(os.environ["ELASTIC_RUN_BINARY"]).parent
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    tests = {test["name"]: next((each["value"] for each in test["properties"] if each["name"] == "LABELS"), [])
             for test in json.loads(listed.stdout)["tests"]}
    assert len(tests) > 200
    chosen = []
    for _, _, _, choice in [step for step in full_steps() if step[0] == "release"]:
        words = choice.split()
        wanted = dict(zip(words[::2], words[1::2], strict=True))
        chosen += [name for name, labels in tests.items()
                   if any(re.search(wanted["-L"], label) for label in labels)
                   and not any(re.search(wanted.get("-LE", "^$"), label) for label in labels)]
    # Those of the gate under a name of their own are there whole, or with more seeds.
    assert sorted(chosen) == sorted(name for name in tests if not name.startswith("gate."))


@pytest.mark.parametrize("failing", ["build/release", "build/asan"])
def test_full_fails_if_any_step_fails_and_still_runs_the_others(clone, failing):
    result = clone.run("scripts/test", "full", FAILING=failing)
    assert result.returncode == 1
    assert len(calls_of_ctest(result)) == 5
    assert f"{failing.removeprefix('build/')}: 90% tests passed, 1 tests failed" in result.stdout


@pytest.mark.parametrize("arguments,ctest", [
    (["unit"], [r"--test-dir ./build/release", r"-R ^(unit|simulation|election|hangs)\."]),
    (["system"], [r"--test-dir ./build/release", r"-R ^system\."]),
    (["structure"], [r"--test-dir ./build/release", r"-R ^(structure|build)\."]),
    (["asan"], ["--test-dir ./build/asan"]),
    (["asan", "store"], ["--test-dir ./build/asan", "-R store"]),
    (["system.harness"], ["--test-dir ./build/release", "-R system.harness"]),
])
def test_a_part_of_the_tests_can_be_named(clone, arguments, ctest):
    result = clone.run("scripts/test", *arguments)
    calls = [line for line in result.stdout.splitlines() if line.startswith("ctest ")]
    assert result.returncode == 0 and len(calls) == 1
    assert [part for part in ctest if part not in calls[0]] == []
    assert ("venv torch numpy pytest kubernetes_validate py_spy" in clone.asked) == (arguments != ["unit"])


def test_ci_runs_scripts_test(clone):
    shutil.copytree(ROOT / ".ci", clone.directory / ".ci")
    clone.make_venv()
    assert steps(clone.run(".ci/run"))[3:-1] == GATE
