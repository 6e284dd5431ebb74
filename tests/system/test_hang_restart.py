"""Hangs that end by themselves, with --hang=restart: docs/hangs.md."""
# ctest: long
# ctest: clock
# ctest: nodes

import json
import os
import pathlib
import re
import signal

import pytest

from hanging import WORKER
from harness import wait_until
from http_client import status
from test_check_probe import PROBE
from test_network_check import FAULTY
from workers import free_port

# In which round of the job this worker is.
ROUND = """
number = int(os.environ["ELASTIC_RUN_FENCE"].rsplit("-", 1)[1])
"""


class Job:
    """A job whose ranks run `body` after what hanging.WORKER gives them."""

    def __init__(self, elastic_run, script):
        self._start = elastic_run.start
        self._script = script
        self.directory = pathlib.Path(elastic_run.directory)
        self.logs = self.directory / "logs"
        self.port = free_port()

    def alone(self, body, *options, ranks=3, program=None, **popen):
        program = program or self._script("train.py", WORKER + ROUND + body)
        self.run = self._start("--standalone", f"--nproc-per-node={ranks}", f"--log-dir={self.logs}", "--hang=restart",
                               "--hang-timeout=3s", *options, program, self.directory, **popen)
        return self.run

    def node(self, name, nnodes, body, *options, conf="", env=None, **popen):
        """Node 127.0.0.1 hosts the coordinator. Its workers find their node's name in NODE."""
        program = self._script("train.py", WORKER + ROUND + body)
        return self._start(f"--nnodes={nnodes}", "--nproc-per-node=2", "--rdzv-backend=c10d",
                           f"--rdzv-endpoint=127.0.0.1:{self.port}", "--rdzv-id=job", "--hang=restart",
                           "--hang-timeout=3s",
                           f"--rdzv-conf=last_call_timeout=60,failover=off,is_host={int(name == '127.0.0.1')}{conf}",
                           f"--local-addr={name}", f"--log-dir={self.logs}-{name}", *options, program, self.directory,
                           env={"NODE": name} | (env or {}), **popen)

    def note(self, name):
        (self.directory / name).write_text("")

    def report(self, attempt=0):
        file, = self.logs.glob(f"*/attempt_{attempt}/hang/hang.json")
        return json.loads(file.read_text())["hang"]


@pytest.fixture
def job(elastic_run, script):
    return Job(elastic_run, script)


LOADS = """
def load_batch():
    wait_for("never")


"""

SIGNALLED = """
import signal


def signalled(number, _):
    note(f"signalled_{rank}", repr(time.time()))
    os._exit(1)


signal.signal(signal.SIGTERM, signalled)
"""


def test_a_hang_ends_its_round_and_training_goes_on(job):
    result = job.alone(LOADS + SIGNALLED + """
steps(3)
if number == 0 and rank == 1:
    load_batch()
all_reduce()
""").wait(timeout=120)
    assert result.returncode == 0, result
    assert "cause: rank 1 (node " in result.stderr, result
    assert "action: restart (hang 1 of 3)" in result.stderr, result
    # Nobody was signalled before the evidence was there.
    evidence = [file.stat().st_mtime for file in job.logs.glob("*/attempt_0/hang/*_stacks.txt")]
    signals = [float(file.read_text()) for file in job.directory.glob("signalled_?")]
    assert evidence and signals and max(evidence) <= min(signals), (evidence, signals)
    report = job.report()
    assert (report["state"], report["action"]) == ("ended", "restart (hang 1 of 3)"), report


def test_a_hang_costs_no_restart_and_more_of_them_than_are_allowed_end_the_job(job):
    result = job.alone(LOADS + """
note(f"count_{number}_{rank}", os.environ["TORCHELASTIC_RESTART_COUNT"])
steps(3)
if rank == 1:
    load_batch()
all_reduce()
""", "--rdzv-conf=hang_restarts=1", "--max-restarts=5").wait(timeout=120)
    assert result.returncode == 1, result
    assert "the job has hung 2 times, and hang_restarts=1 allows 1; rank 1 (node " in result.stderr, result
    counts = {file.name: file.read_text() for file in job.directory.glob("count_*")}
    assert len(counts) == 6 and set(counts.values()) == {"0"}, counts


# Rank 2 is stopped in the first round, by itself, so that nobody has to come in time.
STOPS = """
import signal

steps(3)
if number == 0 and rank == 2:
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_worker_that_is_stopped_is_continued_and_if_that_helps_the_round_goes_on(job):
    result = job.alone(STOPS + "steps(3, first=4)").wait(timeout=120)
    assert result.returncode == 0, result
    assert "stopped (state T)" in result.stderr and "sending SIGCONT, once" in result.stderr, result
    assert "the job does not hang" in result.stderr and "action:" not in result.stderr, result
    assert not list(job.logs.glob("*/attempt_1")), result


def test_a_worker_that_is_stopped_again_is_continued_for_its_end_only(job):
    result = job.alone("""
import signal


def again(number, _):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSTOP)


if rank == 2:
    signal.signal(signal.SIGCONT, again)
""" + STOPS + "all_reduce()").wait(timeout=120)
    assert result.returncode == 0, result
    assert result.stderr.count("sending SIGCONT, once") == 1 and "SIGKILL" not in result.stderr, result
    assert "cause: rank 2 (node " in result.stderr and "action: restart (hang 1 of 3)" in result.stderr, result
    assert job.report()["verdict"]["rule"] == 4, result


# No Python, so that nobody can read its stack: SIGABRT comes first.
SHELL = """#!/bin/bash
trap 'echo aborted > "$1/aborted_$RANK"; exit 1' ABRT
for step in 1 2 3; do echo "step=$step phase=train" > "$ELASTIC_RUN_PROGRESS"; done
[ "${ELASTIC_RUN_FENCE##*-}" = 0000000000 ] || exit 0
while :; do sleep 0.05; done
"""


def test_workers_whose_stacks_cannot_be_read_get_sigabrt_first(job, script):
    result = job.alone("", "--no-python", ranks=2, program=script("train.sh", SHELL)).wait(timeout=120)
    assert result.returncode == 0, result
    assert sorted(file.name for file in job.directory.glob("aborted_*")) == ["aborted_0", "aborted_1"], result


TWICE = LOADS + """
steps(3)
if world == 4 and os.environ["GROUP_RANK"] == "1" and os.environ["LOCAL_RANK"] == "0":
    load_batch()
all_reduce()
"""


def test_a_node_that_hangs_the_job_twice_is_out(job):
    first = job.node("127.0.0.1", "1:2", TWICE)
    second = job.node("127.0.0.2", "1:2", TWICE)
    other = second.wait(timeout=120)
    assert other.returncode == 1 and "the job hung, and this node is at fault" in other.stderr, other
    result = first.wait(timeout=120)
    assert result.returncode == 0, result
    assert "action: restart (hang 1 of 3)" in result.stderr, result
    assert "action: restart, without node 1 (127.0.0.2) (hang 2 of 3)" in result.stderr, result


REPLACED = LOADS + """
note(f"node_{number}_{rank}", os.environ["NODE"])
if number == 0:
    wait_for("go")
steps(3)
if os.environ["NODE"] == "127.0.0.2" and os.environ["LOCAL_RANK"] == "0":
    load_batch()
all_reduce()
"""


def test_a_node_that_hangs_the_job_is_replaced_at_once_by_one_that_stands_by(job):
    first = job.node("127.0.0.1", "2", REPLACED)
    second = job.node("127.0.0.2", "2", REPLACED)
    wait_until(lambda: len(list(job.directory.glob("node_0_?"))) == 4, what="the first round")
    third = job.node("127.0.0.3", "2", REPLACED)
    wait_until(lambda: status(job.port)["coordinator"]["jobs"][0]["nodes"]["standby"] == 1, what="a standby")
    job.note("go")
    out = second.wait(timeout=120)
    assert out.returncode == 1 and "the job hung, and this node is at fault" in out.stderr, out
    result, replacement = first.wait(timeout=120), third.wait(timeout=120)
    assert (result.returncode, replacement.returncode) == (0, 0), (result, replacement)
    assert "action: restart, without node 1 (127.0.0.2) (hang 1 of 3)" in result.stderr, result
    nodes = sorted(file.read_text() for file in job.directory.glob("node_1_?"))
    assert nodes == ["127.0.0.1"] * 2 + ["127.0.0.3"] * 2, nodes


ELSEWHERE = LOADS + """
steps(3)
if os.environ["GROUP_RANK"] == str(1 - number) and os.environ["LOCAL_RANK"] == "0":
    load_batch()
all_reduce()
"""


def test_the_same_line_on_another_node_is_the_scripts_fault(job):
    nodes = [job.node(name, "2", ELSEWHERE) for name in ("127.0.0.1", "127.0.0.2")]
    for node in nodes:
        result = node.wait(timeout=120)
        assert result.returncode == 1, result
        assert "the script is at fault, and no node" in result.stderr, result
        assert "have hung at the same line, wait_for train.py:" in result.stderr, result


# All ranks stand at the same place of the same collective, where nothing says who is at fault.
TOGETHER = """
def all_gather():
    time.sleep(10000)


steps(3)
if number == 0:
    all_gather()
all_reduce()
"""


def test_where_the_links_are_suspected_all_nodes_are_checked_before_the_next_round(job):
    nodes = [job.node(name, "2", TOGETHER, "--log-level=info") for name in ("127.0.0.1", "127.0.0.2")]
    first, second = (node.wait(timeout=150) for node in nodes)
    assert (first.returncode, second.returncode) == (0, 0), (first, second)
    before, told, after = first.stderr.partition("action: restart (hang 1 of 3)")
    assert told and "nodes checked" not in before and "2 nodes checked in" in after, first


def test_a_node_whose_own_check_fails_after_a_hang_is_out_though_no_check_was_asked_for(job, script, tmp_path):
    probe = script("probe.py", PROBE)
    nodes = []
    for number in (1, 2, 3):
        results = {"ELASTIC_RUN_PROBE_DIR": str(tmp_path / f"results{number}")}
        command = "exit 3" if number == 3 else f"exec python3 {probe}"
        nodes.append(job.node(f"127.0.0.{number}", "2:3", TOGETHER, f"--check-probe={command}", "--log-level=info",
                              env=results))
    first, second, third = (node.wait(timeout=150) for node in nodes)
    assert (first.returncode, second.returncode, third.returncode) == (0, 0, 1), (first, second, third)
    before, told, after = first.stderr.partition("action: restart (hang 1 of 3)")
    assert told and "nodes checked" not in before and "3 nodes checked in" in after, first
    assert FAULTY in third.stderr, third
    # Whichever of its two ranks has ended first; the other one is stopped then.
    assert re.search(r"left no result: .*local rank [01] exited with code 3", third.stderr), third
