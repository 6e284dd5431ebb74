"""The scheduler's word on a node, in a segment file by NVRx's name: the node is out before the next round."""
# ctest: nodes

import os
import re
import signal

import pytest

from test_many_nodes import ALL_COME, environments, job, until_size  # noqa: F401 (a fixture)


class Segments:
    """The tasks of an array job, each with a node of one elastic-run job, and the files that say which are out."""

    def __init__(self, job, directory):
        self.job = job
        self.directory = directory

    def path(self, task):
        return self.directory / f"segment_health_check.77.{task}"

    def drain(self, task, why="node3: drained: bad GPU\n"):
        whole = self.directory / f"new.{task}"
        whole.write_text(why)
        whole.rename(self.path(task))

    def node(self, task, *arguments, **options):
        environment = {**os.environ, "SLURM_ARRAY_JOB_ID": "77", "SLURM_ARRAY_TASK_ID": str(task)}
        return self.job.node(f"--segment-health-dir={self.directory}", *arguments, env=environment, **options)

    def nodes(self, count, *arguments, **options):
        first = self.node(0, *arguments, **options)
        first.wait_for_line("this node hosts the coordinator")
        return [first, *(self.node(task, *arguments, **options) for task in range(1, count))]


@pytest.fixture
def segments(job, tmp_path):
    directory = tmp_path / "segments"
    directory.mkdir()
    return Segments(job, directory)


def stop(*nodes):
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    for node in nodes:
        node.wait()


def is_out(segments, task, node):
    result = node.wait()
    assert result.returncode == 1, result
    why = rf"the scheduler has drained this node, as {re.escape(str(segments.path(task)))} \(node3: drained: bad GPU\) says"
    assert re.search(why, result.stderr), result
    assert "the scheduler has drained this node" in result.stderr.splitlines()[-1], result


@pytest.mark.parametrize("task", [1, 0], ids=["a node", "the coordinator's node"])
def test_a_node_whose_segment_file_is_written_leaves_before_the_next_round_and_the_others_go_on(segments, task):
    nodes = segments.nodes(3, "--max-restarts=1", nnodes="2:3", conf=ALL_COME)
    pids = [until_size(node, 3)["PID"] for node in nodes]
    segments.drain(task)
    os.kill(pids[2], signal.SIGKILL)
    others = [node for node in nodes if node is not nodes[task]]
    for node in others:
        assert until_size(node, 2)["TORCHELASTIC_RESTART_COUNT"] == "1"
    is_out(segments, task, nodes[task])
    assert len(re.findall("^env ", nodes[task].stdout.text, re.MULTILINE)) == 1
    stop(*others)


# Rank 1 fails as soon as it may, and rank 2 does not end by SIGTERM.
FAILS = """
import os, signal, sys, time
rank = os.environ["RANK"]
if rank == "2":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"up\\n")
while rank != "1" or not os.path.exists("fail"):
    time.sleep(0.01)
sys.exit(3)
"""


@pytest.mark.parametrize("task", [1, 0], ids=["the node that fails", "the coordinator's node"])
def test_a_failure_is_the_jobs_end_though_a_node_is_drained_while_others_are_still_being_stopped(segments, script, tmp_path, task):
    """The nodes wait for rank 2 for longer than the 10 s after which a node that waits looks at its file."""
    nodes = segments.nodes(3, "--shutdown-timeout=12", "--log-dir=logs", nnodes="2:3", conf=ALL_COME, script=script("fails.py", FAILS))
    for node in nodes:
        node.wait_for_line("^up$", stream="stdout")
    segments.drain(task)
    (tmp_path / "fail").touch()
    for node in nodes:
        result = node.wait()
        assert result.returncode == 1, result
        assert "exited with code 3" in result.stderr and "drained" not in result.stderr, result


def test_a_node_whose_segment_file_is_there_at_its_start_joins_nobody(segments):
    segments.drain(1)
    node = segments.node(1)
    is_out(segments, 1, node)
    assert "coordinator" not in node.stderr.text


def test_a_node_alone_whose_segment_file_is_there_starts_no_worker(elastic_run, segments, tmp_path):
    segments.drain(0)
    node = elastic_run.start(f"--segment-health-dir={segments.directory}", "--no-python", "touch", "started",
                             env={**os.environ, "SLURM_ARRAY_JOB_ID": "77", "SLURM_ARRAY_TASK_ID": "0"})
    is_out(segments, 0, node)
    assert not (tmp_path / "started").exists()


def test_a_node_that_stands_by_leaves_when_its_segment_file_is_written(segments):
    nodes = segments.nodes(2)
    for node in nodes:
        environments(node, 1)
    spare = segments.node(2)
    spare.wait_for_line("standing by", timeout=60)
    segments.drain(2)
    is_out(segments, 2, spare)
    stop(*nodes)


def test_a_segment_file_that_is_empty_or_no_file_changes_nothing(segments):
    segments.path(0).touch()
    segments.path(1).mkdir()
    nodes = segments.nodes(2, script_arguments=["0"])
    assert [node.wait().returncode for node in nodes] == [0, 0]
    assert "it is no regular file; this node goes on" in nodes[1].stderr.text


def test_a_segment_file_on_a_file_system_that_hangs_changes_nothing(elastic_run, deaf_server):
    """Nor do the log files suffer from it, which are elsewhere."""
    running = elastic_run.start(f"--segment-health-dir={deaf_server.directory}", "--log-dir=logs", "-t", "3", "--max-restarts=1",
                                "--no-python", "sh", "-c", "echo trains; exit $((1 - TORCHELASTIC_RESTART_COUNT))",
                                env={**os.environ, "SLURM_JOB_ID": "77"}, preexec_fn=deaf_server.mount_here)
    result = running.wait()
    assert result.returncode == 0, result
    assert result.stdout.splitlines() == ["[default0]:trains"] * 2
    assert result.stderr.count("segment_health_check.77.77: it did not answer within 2 s; this node goes on") == 1
    assert "does not answer" not in result.stderr
