"""ELASTIC_RUN_DELEGATE=torchrun: the way back, by the same command line."""
# ctest: gate

import sys

import pytest

WANTED = {"ELASTIC_RUN_DELEGATE": "torchrun"}

# The shell reads for itself: while it starts another program it blocks signals of its own accord.
TELLS = """echo $$ "$@"
while read -r line; do case $line in SigBlk*) echo "$line";; esac; done < /proc/$$/status
exit 7
"""


@pytest.fixture
def stand_in(tmp_path):
    """A Python that only tells its pid, how it was called and what it found blocked; first on PATH, before a torchrun
    that must not run."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, body in [("python3", TELLS), ("torchrun", "echo WRONG\n")]:
        (folder / name).write_text(f"#!/bin/sh\n{body}")
        (folder / name).chmod(0o755)
    return str(folder / "python3"), WANTED | {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.parametrize("name", ["elastic-run", "torchrun", "dlrover-run"])
def test_it_becomes_torchrun_by_every_name_and_leaves_out_what_torchrun_does_not_have(
        elastic_run, tmp_path, stand_in, name):
    python, env = stand_in
    link = tmp_path / name
    link.symlink_to(elastic_run.binary)
    running = elastic_run.start("--nnodes", "1", "--events=e", "--network-check", "train.py", "--events=mine",
                                program=[str(link)], env=env)
    result = running.wait()
    line = f"{python} -m torch.distributed.run --nnodes 1 train.py --events=mine"
    assert result.stderr == (f"{name}: warning: --events=e: torchrun has no such option; it is left out\n"
                             f"{name}: warning: --network-check: torchrun has no such option; it is left out\n"
                             f"{name}: delegating to torchrun: {line}\n")
    # The same process, with nothing of ours left in it, and its own status.
    assert result.stdout.splitlines() == [f"{running.pid} {line.partition(' ')[2]}", "SigBlk:\t" + "0" * 16]
    assert result.returncode == 7
    assert not (tmp_path / "e").exists()


def test_the_real_torchrun_trains_as_the_same_command_line_did(elastic_run, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import os, sys\nos.write(1, f\"{os.environ['RANK']} {sys.argv[1:]}\\n\".encode())\n")
    line = ["--nproc-per-node=2", "--events=e", str(script), "--events=mine"]
    ours, theirs = elastic_run(*line), elastic_run(*line, env=WANTED)
    assert ours.returncode == theirs.returncode == 0, theirs
    assert sorted(theirs.stdout.splitlines()) == sorted(ours.stdout.splitlines())
    assert sorted(ours.stdout.splitlines()) == ["0 ['--events=mine']", "1 ['--events=mine']"]
    assert f"elastic-run: delegating to torchrun: {sys.prefix}/bin/python3 -m torch.distributed.run " in theirs.stderr


def test_a_python_without_torch_says_so_itself(elastic_run, tmp_path):
    (tmp_path / "train.py").write_text("")
    result = elastic_run("train.py", env=WANTED | {"PYTHON_EXEC": "/usr/bin/python3 -S -I"})
    assert result.returncode == 1
    assert "No module named" in result.stderr or "ModuleNotFoundError" in result.stderr


def test_a_dry_run_prints_the_command_and_executes_nothing(elastic_run, stand_in):
    python, env = stand_in
    result = elastic_run("--dry-run", "--tee=3", "a b.py", env=env)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{python} -m torch.distributed.run --tee=3 'a b.py'\n"


def test_another_value_is_refused_and_an_empty_one_is_not_set(elastic_run):
    refused = elastic_run("--no-python", "true", env={"ELASTIC_RUN_DELEGATE": "dlrover"})
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == ("elastic-run: error: ELASTIC_RUN_DELEGATE=dlrover: not a launcher to delegate to; "
                              "set it to torchrun, or unset it\n")
    assert elastic_run("--no-python", "true", env={"ELASTIC_RUN_DELEGATE": ""}).returncode == 0
