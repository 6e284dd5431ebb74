"""Nodes of a Slurm step prove themselves to each other by a real munge, whose key, socket and daemon are the test's own.

There is no Slurm here: its environment is replayed. test_slurm.py has a real one.
"""
# ctest: clock
# ctest: nodes

import contextlib
import os
import pathlib
import random
import shutil
import socket
import subprocess
import tempfile

import pytest

from harness import ends_with_the_tests, wait_until

MUNGED = shutil.which("munged", path="/usr/sbin:/usr/bin:/sbin:/bin")
WORKER = "import os\nos.write(1, f\"world {os.environ['WORLD_SIZE']}\\n\".encode())\n"
NOBODY = 65534


def is_served(path):
    with socket.socket(socket.AF_UNIX) as caller:
        return caller.connect_ex(str(path)) == 0  # it is there a moment before somebody listens


@pytest.fixture
def munge():
    """A munged; its socket, which all users of this host reach."""
    if MUNGED is None:
        pytest.skip("no munged here; scripts/test installs it")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="munge-", dir="/tmp"))
    directory.chmod(0o755)
    key = directory / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    path = directory / "socket"
    with open(directory / "out", "wb") as out:
        daemon = subprocess.Popen([MUNGED, "--foreground", "--force", f"--key-file={key}", f"--socket={path}",
                                   f"--pid-file={directory}/pid", f"--log-file={directory}/log",
                                   f"--seed-file={directory}/seed"], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                  preexec_fn=ends_with_the_tests)
    try:
        wait_until(lambda: is_served(path), what="munged's socket")
        yield path
    finally:
        daemon.terminate()
        daemon.wait()
        shutil.rmtree(directory)


@pytest.fixture
def deaf_munge(tmp_path_factory):
    """A socket where munged's would be, which nobody answers at."""
    path = tmp_path_factory.mktemp("deaf") / "socket"
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        listening.listen(8)
        yield path


class Step:
    def __init__(self, elastic_run, script):
        self.elastic_run = elastic_run
        self.worker = script("worker.py", WORKER)
        self.job = random.randrange(1000, 1_000_000)

    def start(self, node, munge_socket, conf="", arguments=(), program=None, preexec_fn=None, **changed):
        environment = {"SLURM_JOB_ID": self.job, "SLURM_STEP_ID": 0, "SLURM_STEP_NUM_NODES": 2,
                       "SLURM_STEP_NODELIST": "localhost,n02", "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
                       "SLURM_NODEID": node, "SLURM_LOCALID": 0, "SLURM_PROCID": node, "OMP_NUM_THREADS": 1} | changed
        return self.elastic_run.start("--log-level=info", f"--rdzv-conf=munge_socket={munge_socket}{conf}", *arguments,
                                      program or self.worker, env={name: str(value) for name, value in environment.items()},
                                      **({"preexec_fn": preexec_fn} if preexec_fn else {}))


@pytest.fixture
def step(elastic_run, script):
    return Step(elastic_run, script)


def succeed(nodes):
    results = [node.wait() for node in nodes]
    for result in results:
        assert result.returncode == 0, result
        assert "world 2" in result.stdout, result
    return results


def test_two_nodes_of_a_user_and_a_step_prove_themselves_by_munge(step, munge):
    results = succeed([step.start(node, munge) for node in range(2)])
    for result in results:
        assert "munge answers: the nodes of the step authenticate each other with it" in result.stderr


def test_who_has_no_munge_is_refused_where_the_coordinator_has_it_and_is_told_what_to_do(step, munge, tmp_path):
    first = step.start(0, munge)
    first.wait_for_line("this node hosts the coordinator")
    result = step.start(1, tmp_path / "none").wait()
    assert result.returncode == 1, result
    assert "the nodes of this step authenticate each other by munge, and munged does not answer on" in result.stderr
    assert "start munged there, or give --rdzv-conf=slurm_auth=off on all nodes" in result.stderr
    first.wait_for_line(r"the node at 127\.0\.0\.1 was refused: munge does not answer there")
    # And one that has it is let in all the same.
    succeed([first, step.start(1, munge)])


def test_who_says_nothing_of_munge_is_not_let_in(step, munge):
    """Without a question the secret cannot be known."""
    first = step.start(0, munge)
    first.wait_for_line("this node hosts the coordinator")
    result = step.start(1, munge, conf=",slurm_auth=off,join_timeout=20").wait()
    assert result.returncode == 1, result
    assert "it was started with a secret, and this node without one" in result.stderr
    succeed([first, step.start(1, munge)])


def test_a_coordinator_without_munge_is_not_believed_by_a_node_that_has_it(step, munge, tmp_path):
    first = step.start(0, tmp_path / "none")
    first.wait_for_line("this node hosts the coordinator")
    result = step.start(1, munge).wait()
    assert result.returncode == 1, result
    assert "but not on the coordinator's host, so that the coordinator cannot be authenticated" in result.stderr
    succeed([first, step.start(1, tmp_path / "none")])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a node as somebody else")
def test_another_user_is_refused(step, munge, tmp_path):
    first = step.start(0, munge)
    first.wait_for_line("this node hosts the coordinator")
    other = step.start(1, munge, conf=",join_timeout=20", arguments=["--log-dir=/dev/null", "--no-python"], program="/bin/true",
                       preexec_fn=lambda: os.setresuid(NOBODY, NOBODY, NOBODY))
    result = other.wait()
    assert result.returncode == 1, result
    assert "it refused us by munge: Unauthorized credential" in result.stderr, result
    first.wait_for_line(r"the node at \S+ was refused by munge: Unauthorized credential")
    succeed([first, step.start(1, munge)])


def test_without_munge_all_is_as_ever_and_one_line_says_so(step, tmp_path):
    for result in succeed([step.start(node, tmp_path / "none") for node in range(2)]):
        assert result.stderr.count("munge does not answer here") == 1, result


def test_a_munged_that_hangs_is_none_and_does_not_keep_the_job(step, deaf_munge):
    for result in succeed([step.start(node, deaf_munge) for node in range(2)]):
        assert "munge does not answer here (it has not answered in 2 s)" in result.stderr


def test_slurm_auth_munge_ends_where_none_answers(step, tmp_path):
    result = step.start(0, tmp_path / "none", conf=",slurm_auth=munge").wait()
    assert result.returncode == 1, result
    assert "slurm_auth=munge, and munged does not answer on" in result.stderr


def test_slurm_auth_off_asks_nobody(step, tmp_path):
    """What listens at munged's socket is not come to."""
    path = tmp_path / "watched"
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        listening.listen(8)
        listening.setblocking(False)
        for result in succeed([step.start(node, path, conf=",slurm_auth=off") for node in range(2)]):
            assert "munge" not in result.stderr, result
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_a_node_of_another_job_of_slurm_is_refused(step, munge):
    """Of one whose nodes look at the same ports: ports are by job id modulo 8192."""
    first = step.start(0, munge)
    first.wait_for_line("this node hosts the coordinator")
    result = step.start(1, munge, conf=",join_timeout=20", SLURM_JOB_ID=step.job + 8192).wait()
    assert result.returncode == 1, result
    assert f"it is of slurm-{step.job + 8192}.0, and the coordinator is of slurm-{step.job}.0" in result.stderr
    succeed([first, step.start(1, munge)])
