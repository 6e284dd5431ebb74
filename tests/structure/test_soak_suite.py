"""scripts/soak suite, in a repository of its own whose tests are a script: what it runs, counts and goes on with."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ["tests/soak/suite.py", "tests/bench/hogs.py", "tests/bench/common.py"]
# Fails the third time that it runs test_b.py, and says whether there are as many that compute as there should be.
PYTEST = """#!/bin/sh
echo "$1" >>../asked
[ "$1 $(grep -c "$1" ../asked)" != "tests/test_b.py 3" ] || { echo "the error"; echo "1 failed"; exit 1; }
echo "$(pgrep -c -P $PPID -f 'while kill -0') compute"
"""


@pytest.fixture
def soak(tmp_path):
    """soak(argument ...): the finished process, in a repository with one commit."""
    top = tmp_path / "repository"
    for part in PARTS:
        (top / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, top / part)
    (top / "scripts").mkdir()
    (top / "scripts/pytest").write_text(PYTEST)
    (top / "scripts/pytest").chmod(0o755)
    for name in "ab":
        (top / f"tests/test_{name}.py").touch()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(top / "tests/bench"),
                   "PYTHONDONTWRITEBYTECODE": "1"}

    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=top, env=environment, check=True,
                       capture_output=True)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "first")

    command = [sys.executable, "tests/soak/suite.py", "--table", tmp_path / "table"]

    def run(*arguments, **more):
        return subprocess.run([*command, *arguments], cwd=top, env=environment, capture_output=True, text=True, timeout=100,
                              **more)
    run.begin = lambda *arguments: subprocess.Popen([*command, *arguments], cwd=top, env=environment,
                                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run.top, run.table, run.asked = top, tmp_path / "table", tmp_path / "asked"
    return run


BOTH = ["tests/test_a.py", "tests/test_b.py"]


def test_tests_take_turns_and_each_run_is_a_line(soak):
    result = soak("--times=2", "--load=3", *BOTH)
    assert result.returncode == 0, result
    assert soak.asked.read_text().splitlines() == BOTH * 2
    head, *lines = [line.split("\t") for line in soak.table.read_text().splitlines()]
    assert head == ["began", "commit", "load", "test", "status", "seconds", "said"]
    assert [(line[2], line[3], line[4], line[6]) for line in lines] == [("3", test, "0", "3 compute") for test in BOTH * 2]
    assert result.stdout.endswith("3 processes that compute\nverdict: none failed\n")


def test_a_soak_goes_on_where_it_stopped_unless_something_has_changed(soak):
    assert soak("--times=1", *BOTH).returncode == 0
    with open(soak.table, "a") as file:
        file.write("2026-11-28T10:00:00\tcut o")  # by a full disk
    assert soak("--times=2", *BOTH).returncode == 0
    assert soak.asked.read_text().splitlines() == BOTH * 2
    assert soak("--times=1", "--load=1", "tests/test_a.py").returncode == 0  # another load
    assert len(soak.asked.read_text().splitlines()) == 5
    (soak.top / "tests/test_a.py").write_text("changed")
    assert soak("--times=1", "tests/test_a.py").returncode == 0
    assert len(soak.asked.read_text().splitlines()) == 6


def test_a_soak_in_the_background_of_a_shell_does_not_pass_on_that_sigint_is_ignored(soak):
    (soak.top / "scripts/pytest").write_text("#!/bin/sh\ngrep SigIgn /proc/self/status\n")
    result = soak("--times=1", "tests/test_a.py", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert result.returncode == 0, result
    ignored = int(soak.table.read_text().split()[-1], 16)
    assert not ignored >> signal.SIGINT - 1 & 1


def test_a_failure_is_told_and_its_output_kept(soak):
    result = soak("--times=3", *BOTH)
    assert result.returncode == 1
    assert [line.split()[1:3] for line in result.stdout.splitlines()[1:3]] == [["3", "0"], ["3", "1"]]
    assert result.stdout.endswith("verdict: 1 failed\n")
    assert "the error\n1 failed\n" in pathlib.Path(f"{soak.table}.output").read_text()


def test_so_many_tests_run_at_once(soak):
    (soak.top / "scripts/pytest").write_text("""#!/bin/sh
touch ../began.$$
for try in $(seq 1000); do
  [ "$(ls ../began.* | wc -l)" != 3 ] || exit 0
  sleep 0.01
done
exit 1
""")
    result = soak("--times=3", "--jobs=3", "tests/test_a.py")
    assert result.returncode == 0, result


def test_a_soak_that_is_ended_interrupts_its_tests(soak):
    (soak.top / "scripts/pytest").write_text("""#!/bin/sh
trap 'echo interrupted >>../asked; exit 1' INT
mkfifo ../begun.$$ && echo $$ >../begun
read line <../begun.$$
""")
    os.mkfifo(soak.table.parent / "begun")
    with soak.begin("tests/test_a.py") as process:
        (soak.table.parent / "begun").read_text()
        process.terminate()
        assert process.wait(timeout=100) == 143
    assert soak.asked.read_text() == "interrupted\n"


def test_what_is_no_test_is_refused_before_anything_runs(soak):
    result = soak("tests/test_a.py", "tests/test_z.py::test_x")
    assert result.returncode == 1 and not soak.asked.exists()
    assert "no test tests/test_z.py::test_x: name a file below" in result.stderr
