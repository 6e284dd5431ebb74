"""The shell scripts: read by shellcheck, and what scripts/lib.sh holds about itself."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from shells import Shell, can_import, finish

ROOT = pathlib.Path(__file__).resolve().parents[2]


def shell_scripts():
    found = [ROOT / ".ci/run"]
    for path in sorted(path for folder in ("examples", "scripts") for path in (ROOT / folder).rglob("*") if path.is_file()):
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


def test_every_package_of_python_has_its_version_written_down():
    text = (ROOT / "scripts/lib.sh").read_text()
    names = []
    for block in re.findall(r"^python_packages_for_\w+=\((.*?)\)$", text, flags=re.S | re.M):
        names += re.sub(r"#.*", "", block).split()
    pins = [line.split("==")[0].lower() for line in (ROOT / "scripts/python-packages.txt").read_text().splitlines()
            if not line.startswith("#")]
    assert "torch" in names and "deepspeed" in names
    assert {name.replace("_", "-") for name in names} <= {name.replace("_", "-") for name in pins}
    assert len(pins) == len(set(pins))


# --- scripts/lib.sh at work ------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


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


def test_a_directory_that_is_no_environment_is_left_alone(shell):
    other = shell.directory / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    result = shell.run("ensure_venv torch", ELASTIC_RUN_VENV=str(other))
    assert result.returncode == 1 and f"{other} is no Python environment" in result.stderr
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


def test_too_little_room_is_said_before_anything_is_loaded(shell):
    result = shell.run("venv_needs_mib=999999999; ensure_venv torch")
    assert result.returncode == 1 and "needs 999999999 MiB" in result.stderr
    assert not shell.venv.exists()


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


def test_a_lock_is_not_waited_for_without_end(shell):
    result = shell.run("""
        lock "$PWD/held.lock"
        (step_name=second lock_patience=1; exec 9>&-; lock "$PWD/held.lock"; echo never)
        """)
    assert result.returncode == 1 and result.stdout == ""
    assert f"another run has held {shell.directory}/held.lock for 1 s and seems to hang: end it (`fuser -v" in result.stderr
