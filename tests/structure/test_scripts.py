"""The shell scripts: read by shellcheck, and what scripts/lib.sh holds about itself."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def shell_scripts():
    found = [ROOT / ".ci/run"]
    for path in sorted(path for path in (ROOT / "scripts").rglob("*") if path.is_file()):
        if path.suffix == ".sh" or path.read_bytes().startswith((b"#!/usr/bin/env bash", b"#!/bin/bash", b"#!/bin/sh")):
            found.append(path)
    return found


def shellcheck(*files):
    return subprocess.run(["shellcheck", "--external-sources", *files], cwd=ROOT, text=True,
                          capture_output=True, check=False)


def test_shellcheck_finds_nothing():
    assert len(shell_scripts()) >= 4
    result = shellcheck(*shell_scripts())
    assert result.returncode == 0, result.stdout + result.stderr


def test_shellcheck_finds_a_mistake_in_a_script_like_ours(tmp_path):
    bad = tmp_path / "bad"
    bad.write_text('#!/usr/bin/env bash\nrm -rf $1/$2\n')
    assert "SC2086" in shellcheck(bad).stdout


def test_every_package_is_listed_once_with_its_reason():
    text = (ROOT / "scripts/lib.sh").read_text()
    packages = []
    for block in re.findall(r"^packages_for_\w+=\(\n(.*?)^\)", text, flags=re.S | re.M):
        for line in block.splitlines():
            names, _, reason = line.partition("#")
            assert reason.strip(), f"no reason: {line}"
            packages += names.split()
    assert "libuv1-dev" in packages
    assert sorted(packages) == sorted(set(packages))


# --- scripts/lib.sh at work, with wheels of ours instead of gigabytes from PyPI ---------------------


def make_wheel(directory, name, requires=()):
    """A Python package with nothing in it, as pip wants it."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" +
                            "".join(f"Requires-Dist: {needed}\n" for needed in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    directory.mkdir(exist_ok=True)
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))


class Shell:
    """Runs lines of bash after a copy of lib.sh, in a place and with an environment of its own."""

    def __init__(self, directory):
        self.directory = directory
        self.wheels = directory / "wheels"
        self.venv = directory / "cache/elastic-run/venv"
        make_wheel(self.wheels, "needed")
        make_wheel(self.wheels, "torch", requires=["needed"])
        (directory / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/lib.sh", directory / "scripts")

    def start(self, lines, **environment):
        values = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "PIP_NO_INDEX": "1",
                  "PIP_FIND_LINKS": str(self.wheels), "LANG": "C.UTF-8",
                  "XDG_CACHE_HOME": str(self.directory / "cache")} | environment
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c",
             f"source scripts/lib.sh; venv_needs_mib=10 steps_total=1; step here\n{lines}", "script"],
            env={name: value for name, value in values.items() if value is not None},
            text=True, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, lines, **environment):
        return finish(self.start(lines, **environment))


def finish(process):
    stdout, stderr = process.communicate(timeout=240)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


def can_import(venv, *names):
    code = "import " + ", ".join(names)
    return subprocess.run([venv / "bin/python", "-c", code], check=False).returncode == 0


def test_an_environment_is_made_once(shell):
    first = shell.run("ensure_venv torch; activate_venv; which python; echo $VIRTUAL_ENV")
    assert first.returncode == 0, first.stderr
    assert first.stdout == f"{shell.venv}/bin/python\n{shell.venv}\n"  # and nothing of pip's
    assert "installing torch from PyPI" in first.stderr and "done in" in first.stderr
    assert can_import(shell.venv, "torch", "needed")
    shutil.rmtree(shell.wheels)
    second = shell.run("ensure_venv torch")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "[1/1] here: nothing to do\n")
    assert shell.run("quiet_steps=yes; ensure_venv torch").stderr == ""


def test_a_package_that_is_asked_for_later_is_added(shell):
    assert shell.run("ensure_venv torch").returncode == 0
    make_wheel(shell.wheels, "pytest")
    result = shell.run("ensure_venv torch pytest")
    assert "installing pytest from PyPI" in result.stderr
    assert can_import(shell.venv, "torch", "pytest")


def test_an_installation_that_failed_is_told_and_finished_next_time(shell):
    (shell.wheels / "needed-1.0-py3-none-any.whl").unlink()
    first = shell.run("ensure_venv torch")
    assert first.returncode == 1
    assert "No matching distribution found for needed" in first.stderr
    assert "could not install: torch. Mend the cause and start again" in first.stderr
    assert shell.run(f"venv_ready {shell.venv}").returncode == 1
    make_wheel(shell.wheels, "needed")
    assert shell.run("ensure_venv torch").returncode == 0
    assert can_import(shell.venv, "torch", "needed")


def test_an_installation_that_was_killed_is_made_afresh(shell):
    # pip is replaced by something that leaves half a package behind and dies with the script.
    killed = shell.run("install_with_pip() {\n"
                       "  mkdir -p $1/lib/python3/site-packages/torch; touch $1/half\n"
                       "  kill -KILL $$ $BASHPID\n}\nensure_venv torch")
    assert killed.returncode == -signal.SIGKILL
    assert (shell.venv / "half").exists()
    assert shell.run("ensure_venv torch").returncode == 0
    assert not (shell.venv / "half").exists() and can_import(shell.venv, "torch", "needed")


def test_an_environment_of_the_users_is_added_to_and_nothing_else(shell):
    theirs = shell.directory / "theirs"
    subprocess.run(["/usr/bin/python3", "-m", "venv", theirs], check=True)
    (theirs / "keep").write_text("mine")
    # Also when the first try fails half-way.
    (shell.wheels / "needed-1.0-py3-none-any.whl").rename(shell.wheels / "away")
    assert shell.run("ensure_venv torch", ELASTIC_RUN_VENV=str(theirs)).returncode == 1
    (shell.wheels / "away").rename(shell.wheels / "needed-1.0-py3-none-any.whl")
    assert shell.run("ensure_venv torch", ELASTIC_RUN_VENV=str(theirs)).returncode == 0
    assert (theirs / "keep").read_text() == "mine" and can_import(theirs, "torch", "needed")
    assert not shell.venv.exists()


def test_a_directory_that_is_no_environment_is_left_alone(shell):
    other = shell.directory / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    result = shell.run("ensure_venv torch", ELASTIC_RUN_VENV=str(other))
    assert result.returncode == 1 and f"{other} is no Python environment" in result.stderr
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


def test_two_clones_at_once_make_one_environment(shell):
    both = [shell.start("ensure_venv torch") for _ in range(2)]
    results = [finish(process) for process in both]
    assert [result.returncode for result in results] == [0, 0]
    assert sum("installing torch" in result.stderr for result in results) == 1
    assert can_import(shell.venv, "torch", "needed")


def test_too_little_room_is_said_before_anything_is_loaded(shell):
    result = shell.run("venv_needs_mib=999999999; ensure_venv torch")
    assert result.returncode == 1 and "needs 999999999 MiB" in result.stderr
    assert not shell.venv.exists()


def test_the_frameworks_have_an_environment_of_their_own_that_uses_the_pytorch_of_the_tests(shell):
    make_wheel(shell.wheels, "framework", requires=["torch", "needed"])
    frameworks = "python_packages_for_peers=(framework)\nensure_peers"
    result = shell.run(f"ensure_venv torch\n{frameworks}")
    assert result.returncode == 0, result.stderr
    peers = shell.directory / "cache/elastic-run/venv-peers"
    assert can_import(peers, "framework", "torch", "needed") and not can_import(shell.venv, "framework")
    assert not list(peers.glob("lib/python*/site-packages/torch*"))
    assert shell.run(frameworks).stderr == "[1/1] here: nothing to do\n"


def test_without_home_the_password_database_says_where_the_cache_is(shell):
    result = shell.run("venv_directory", HOME=None, XDG_CACHE_HOME=None)
    home = subprocess.run(["getent", "passwd", str(os.getuid())], capture_output=True, text=True,
                          check=True).stdout.split(":")[5]
    assert result.stdout == f"{home}/.cache/elastic-run/venv\n"


def test_nothing_is_installed_where_no_package_is_missing(shell):
    result = shell.run("sudo() { echo never; }; ensure_packages bash coreutils", PATH="/usr/bin:/bin")
    assert (result.returncode, result.stderr) == (0, "[1/1] here: nothing to do\n")


def test_missing_packages_without_root_or_sudo_are_an_error_that_says_what_to_run():
    # Another user may not look into our directories, so the file comes open; and sudo is hidden.
    lines = ('command() { [[ $2 != sudo ]] && builtin command "$@"; }; '
             "ensure_packages bash no-such-package")
    other_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with open(ROOT / "scripts/lib.sh", encoding="utf-8") as lib:
        result = subprocess.run(
            [*(other_user if os.geteuid() == 0 else []),
             "bash", "-c", f"source /dev/fd/{lib.fileno()}; {lines}", "script"],
            pass_fds=[lib.fileno()], cwd="/", capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "apt-get install --no-install-recommends no-such-package" in result.stderr


@pytest.mark.parametrize("theirs", [None, "theirs"])
def test_daemons_of_packages_are_not_started_and_what_forbids_it_does_not_stay(shell, theirs):
    policy = shell.directory / "policy-rc.d"
    if theirs:
        policy.write_text(theirs)
    result = shell.run(f'sh -c "$without_daemons" sh {policy} sh -c "cat {policy}; exit 7"')
    assert result.returncode == 7
    assert result.stdout == (theirs or "#!/bin/sh\nexit 101\n")
    assert (policy.read_text() if policy.exists() else None) == theirs


def test_a_command_that_fails_shows_the_end_of_its_output(shell):
    result = shell.run("with_progress trying bash -c 'seq 1000; echo broken >&2; exit 7' || echo $?")
    assert result.stdout == "7\n"
    assert "broken" in result.stderr and "\n961\n" not in result.stderr and "\n962\n" in result.stderr
    assert len((shell.directory / "build/log/script-1.log").read_text().splitlines()) == 1001


def test_a_command_that_takes_long_shows_that_it_lives(shell):
    result = shell.run("seconds_between_lines=1; with_progress trying bash -c 'echo working; sleep 6'")
    assert re.search(r"^ +[1-6] s  working$", result.stderr, flags=re.M), result.stderr
