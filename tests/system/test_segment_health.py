"""Nodes that Slurm drains leave before the next round: --segment-health-dir, and examples/slurm, under a real Slurm."""
# ctest: long
# ctest: timeout=1200
# ctest: release-only
# ctest: clock

import json
import os
import pathlib
import signal

import pytest

from harness import alive, wait_until
from slurm_cluster import Job, cluster, slurm  # noqa: F401 (fixtures)
from test_slurm import WORKER, environments

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm"
POLLER = EXAMPLES / "drain_poller.sh"
REASON = "bad cable, row 3"
WARNING = "has drained this node, as "


@pytest.fixture
def worker(script):
    return script("worker.py", WORKER)


@pytest.fixture
def segments(tmp_path):
    made = tmp_path / "segments"
    made.mkdir()
    return made


def drain(slurm, node):
    slurm.ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={REASON}")


def resume(slurm, node):
    slurm.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")


def warnings(text):
    return [line for line in text.splitlines() if WARNING in line]


# --- The poller -------------------------------------------------------------------------------


class Sinfo:
    """A stand-in for sinfo, which prints what it is given, and fails while that is nothing."""

    def __init__(self, directory, script):
        self._answer = directory / "answer"
        self._asked = directory / "asked"
        path = script("sinfo", f'#!/bin/bash\necho "$@" >>{self._asked}\nexec cat {self._answer}\n').parent
        self.env = {"PATH": f"{path}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[1-4]"}

    def put(self, *lines):
        whole = self._answer.with_suffix(".new")
        whole.write_text("".join(f"{line}\n" for line in lines))
        whole.rename(self._answer)

    def wait_until_asked(self, count):
        wait_until(lambda: self._asked.exists() and len(self._asked.read_text().splitlines()) >= count, what=f"{count} calls of sinfo")


@pytest.fixture
def sinfo(tmp_path, script):
    return Sinfo(tmp_path, script)


def test_the_poller_follows_what_slurm_says_of_the_jobs_own_nodes(slurm, segments):
    job = slurm.sbatch("-N2", "--wrap", f"{POLLER} {segments} 1 & wait")
    wait_until(lambda: any(process.name == POLLER.name for process in slurm.processes_on(1)), what="the poller")
    assert job.field("NodeList") == "node[1-2]"
    file = segments / f"segment_health_check.{job.number}.{job.number}"
    drain(slurm, "node4")
    drain(slurm, "node2")
    wait_until(file.exists, what=file)
    assert file.read_text() == f"node2: draining: {REASON}\n"
    resume(slurm, "node2")
    wait_until(lambda: not file.exists(), what=f"no {file}")
    slurm.ask("scancel", job.number)
    assert job.wait() == "CANCELLED", job.text
    assert os.listdir(segments) == []


def test_the_poller_names_each_lost_node_once_and_no_other(elastic_run, segments, sinfo):
    file = segments / "segment_health_check.7.7"
    sinfo.put("node1|drained*|a | b", "node2|mixed|none", "node3|down|Not responding", "node3|down|Not responding", "node4|failing|c")
    running = elastic_run.start(program=[POLLER, segments, "1"], env=sinfo.env)
    wait_until(file.exists, what=file)
    assert file.read_text() == "node1: drained*: a | b\nnode3: down: Not responding\nnode4: failing: c\n"
    sinfo.put("node1|idle|none", "node2|mixed|none", "node3|idle*|none", "node4|allocated|none")
    wait_until(lambda: not file.exists(), what=f"no {file}")
    running.send_signal(signal.SIGTERM)
    result = running.wait()
    assert (result.returncode, result.stderr) == (-signal.SIGTERM, "")


def test_the_poller_says_once_that_sinfo_fails_and_asks_again(elastic_run, segments, sinfo):
    running = elastic_run.start(program=[POLLER, segments, "1"], env=sinfo.env)
    sinfo.wait_until_asked(3)
    sinfo.put("node1|down|none")
    wait_until(lambda: os.listdir(segments) == ["segment_health_check.7.7"], what="the file")
    running.send_signal(signal.SIGTERM)
    assert running.wait().stderr.count("warning: sinfo fails") == 1


def test_the_poller_ends_with_the_script_that_started_it_and_begins_without_an_old_file(elastic_run, segments, sinfo):
    (segments / "segment_health_check.5.2").write_text("node9: drained: of a run before the requeue\n")
    sinfo.put("node1|idle|none")
    batch = f"{POLLER} {segments} 1 & until [[ -e asked ]]; do sleep 0.1; done"
    array = {"SLURM_ARRAY_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": "2"}
    result = elastic_run.start(program=["bash", "-c", batch], env=sinfo.env | array).wait()  # for the poller's output, too
    assert (result.returncode, result.stderr) == (0, "")
    assert os.listdir(segments) == []


@pytest.mark.parametrize("arguments, changes, what", [
    ([], {}, "usage: drain_poller.sh DIR"),
    (["missing"], {}, "there is no directory missing"),
    (["."], {"SLURM_JOB_ID": None}, "SLURM_JOB_ID"),
    ([".", "0"], {}, "not 0"),
])
def test_the_poller_says_what_it_lacks(elastic_run, sinfo, arguments, changes, what):
    result = elastic_run.start(program=[POLLER, *arguments], env=sinfo.env | changes).wait()
    assert result.returncode == 2
    assert what in result.stderr


# --- The flag ---------------------------------------------------------------------------------


def last_world(job):
    """The world size of the last worker that the task has started; None if it has started none."""
    found = environments(job.text)
    return found[-1]["WORLD_SIZE"] if found else None


def wait_for_world(tasks, size):
    wait_until(lambda: {last_world(task) for task in tasks} == {size}, what=f"a world of {size}")


def coordinators_address(segments, job):
    """When whoever leads has written so."""
    def led():
        entry = json.loads((segments / "rendezvous").read_text())["jobs"][job.number]
        return entry["leader"]["address"] if entry["round"] is not None else None
    return wait_until(led, what="the coordinator's address")


@pytest.mark.parametrize("drained_hosts_the_coordinator", [False, True])
@pytest.mark.time_limit(300)
def test_a_drained_task_of_an_array_trains_to_the_end_of_the_round_then_leaves_and_comes_back_elsewhere(
        slurm, worker, segments, drained_hosts_the_coordinator):
    job = slurm.sbatch(
        "--array=1-3", "--time=5", f"--output={slurm.directory}/job.%A_%a", EXAMPLES / "segments.sbatch", worker,
        "leave-on-usr1", "7",
        env={"SEGMENTS": str(segments), "DRAIN_POLLER": str(POLLER), "DRAIN_SECONDS": "1", "MIN_NODES": "2"})
    tasks = [Job(slurm, f"{job.number}_{task}") for task in (1, 2, 3)]
    wait_for_world(tasks, "3")
    first = {task.number: environments(task.text)[-1] for task in tasks}
    begun = {task.number: len(environments(task.text)) for task in tasks}

    address = coordinators_address(segments, job)
    [host] = [each.name for each in slurm.cluster.hosts if each.address == address]
    tasks.sort(key=lambda task: (first[task.number]["SLURMD_NODENAME"] == host) == drained_hosts_the_coordinator)
    *others, drained = tasks
    node = first[drained.number]["SLURMD_NODENAME"]
    assert (node == host) == drained_hosts_the_coordinator

    file = segments / f"segment_health_check.{drained.number.replace('_', '.')}"
    drain(slurm, node)
    wait_until(file.exists, what=file)
    assert file.read_text() == f"{node}: draining: {REASON}\n"
    assert all(alive(worker["PID"]) for worker in first.values())
    assert {task.number: len(environments(task.text)) for task in tasks} == begun

    os.kill(first[others[0].number]["PID"], signal.SIGUSR1)
    wait_for_world(others, "2")
    assert drained.wait() == "FAILED"
    assert drained.field("ExitCode") == "1:0"
    [warning] = warnings(drained.text)
    assert str(file) in warning
    assert len(environments(drained.text)) == begun[drained.number]  # it was in no other round

    slurm.ask("scontrol", "requeue", drained.number)
    wait_until(lambda: environments(drained.text)[-1]["SLURMD_NODENAME"] == "node4", what="the task on node4")
    wait_for_world(tasks, "3")
    resume(slurm, node)
    pollers = {index for index in range(1, 5) for process in slurm.processes_on(index) if process.name == POLLER.name}
    assert {f"node{index}" for index in pollers} == {environments(task.text)[-1]["SLURMD_NODENAME"] for task in tasks}
    assert [task.field("JobState") for task in tasks] == ["RUNNING"] * 3
    assert [warnings(task.text) for task in others] == [[], []]


def test_every_node_of_a_regular_job_whose_file_says_so_starts_no_worker_and_an_empty_file_says_nothing(
        slurm, worker, segments, script):
    batch = script("batch", f"""#!/bin/bash
train() {{ srun --kill-on-bad-exit=0 elastic-run --segment-health-dir={segments} {worker} leave; }}
file={segments}/segment_health_check.$SLURM_JOB_ID.$SLURM_JOB_ID
echo 'node1: drained: {REASON}' >"$file"
train
echo "with a reason: $?"
: >"$file"
train
echo "empty: $?"
""")
    job = slurm.sbatch("-N2", batch)
    assert job.wait() == "COMPLETED", job.text
    refused, _, trained = job.text.partition("with a reason: 1\n")
    assert environments(refused) == []
    assert len(warnings(refused)) == 2, job.text
    assert all(f"{segments}/segment_health_check.{job.number}.{job.number}" in line for line in warnings(refused))
    assert [each["WORLD_SIZE"] for each in environments(trained)] == ["2", "2"], job.text
    assert trained.endswith("empty: 0\n")
