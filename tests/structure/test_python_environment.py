"""The Python environments that scripts/lib.sh makes. Each case makes some, which costs seconds; test_scripts.py makes one
in the gate."""
# ctest: full-only

import shutil
import signal
import subprocess

import pytest
from shells import ROOT, Shell, can_import, finish, make_wheel


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


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


def test_two_clones_at_once_make_one_environment(shell):
    both = [shell.start("ensure_venv torch") for _ in range(2)]
    results = [finish(process) for process in both]
    assert [result.returncode for result in results] == [0, 0]
    assert sum("installing torch" in result.stderr for result in results) == 1
    assert can_import(shell.venv, "torch", "needed")


def test_the_frameworks_have_an_environment_of_their_own_that_uses_the_pytorch_of_the_tests(shell):
    make_wheel(shell.wheels, "framework", requires=["torch", "needed"])
    frameworks = "python_packages_for_peers=(framework)\nensure_peers"
    result = shell.run(f"ensure_venv torch\n{frameworks}")
    assert result.returncode == 0, result.stderr
    peers = shell.directory / "cache/elastic-run/venv-peers"
    assert can_import(peers, "framework", "torch", "needed") and not can_import(shell.venv, "framework")
    assert not list(peers.glob("lib/python*/site-packages/torch*"))
    assert shell.run(frameworks).stderr == "[1/1] here: nothing to do\n"


def versions(venv, name):
    return sorted(path.name for path in venv.glob(f"lib/python*/site-packages/{name}-*.dist-info"))


def test_packages_have_the_versions_that_are_written_down(shell):
    make_wheel(shell.wheels, "torch", requires=["needed"], version="2.0")
    make_wheel(shell.wheels, "needed", version="2.0")
    pins = shell.directory / "scripts/python-packages.txt"
    pins.write_text("# constraints\nneeded==1.0\nTorch==1.0\n")
    assert shell.run("ensure_venv torch").returncode == 0
    assert versions(shell.venv, "torch") + versions(shell.venv, "needed") == ["torch-1.0.dist-info", "needed-1.0.dist-info"]
    assert shell.run("ensure_venv torch").stderr == "[1/1] here: nothing to do\n"
    pins.write_text("needed==1.0\nTorch==2.0\n")
    raised = shell.run("ensure_venv torch")
    assert "installing torch==2.0 from PyPI" in raised.stderr
    assert versions(shell.venv, "torch") + versions(shell.venv, "needed") == ["torch-2.0.dist-info", "needed-1.0.dist-info"]


def test_in_an_environment_of_the_users_every_version_will_do(shell):
    theirs = shell.directory / "theirs"
    subprocess.run(["/usr/bin/python3", "-m", "venv", theirs], check=True)
    (shell.directory / "scripts/python-packages.txt").write_text("torch==0.9\n")
    assert shell.run("ensure_venv torch", ELASTIC_RUN_VENV=str(theirs)).returncode == 0
    assert versions(theirs, "torch") == ["torch-1.0.dist-info"]


def test_a_package_that_was_installed_without_a_record_is_installed_once_more(shell):
    assert shell.run("ensure_venv torch needed").returncode == 0
    record, = shell.venv.glob("lib/python*/site-packages/needed-1.0.dist-info/RECORD")
    record.unlink()
    assert "installing needed once more" in shell.run("ensure_venv torch needed").stderr
    assert record.exists() and shell.run("ensure_venv torch needed").stderr == "[1/1] here: nothing to do\n"


def test_update_pins_writes_the_newest_versions_and_runs_all_tests_with_them(shell):
    scripts = shell.directory / "scripts"
    shutil.copy(ROOT / "scripts/update-pins", scripts)
    (scripts / "test").write_text('#!/bin/sh\necho "tests: $*, venv ${ELASTIC_RUN_VENV:-its own}"\nexit 3\n')
    (scripts / "test").chmod(0o755)
    (scripts / "python-packages.txt").write_text("# all of them\ntorch==1.0\n")
    make_wheel(shell.wheels, "torch", requires=["needed"], version="2.0")
    names = shell.run('echo "${python_packages_for_tests[@]} ${python_packages_for_peers[@]}"').stdout.split()
    for name in {name.replace("-", "_") for name in names} - {"torch"}:
        make_wheel(shell.wheels, name)
    result = shell.run("sed -i s/^venv_needs_mib=.*/venv_needs_mib=10/ scripts/lib.sh; scripts/update-pins")
    assert (result.returncode, result.stdout.splitlines()[-1]) == (3, "tests: full, venv its own"), result.stderr
    written = (scripts / "python-packages.txt").read_text().splitlines()
    assert written[0] == "# all of them" and "torch==2.0" in written and "needed==1.0" in written
    assert {name.replace("_", "-") for name in names} <= {line.split("==")[0].replace("_", "-") for line in written[1:]}
    assert not (shell.directory / "build/newest").exists() and not shell.venv.exists()
