"""ELASTIC_RUN_FENCE: a text that only grows, over the rounds of a job and over its starts."""
# ctest: long
# ctest: nodes

import os
import pathlib
import signal
import time

import workers
from test_many_nodes import WORKER, environments, job, patient_coordinator  # noqa: F401 (job is a fixture)

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def fence_of(found):
    """The one that all these workers found."""
    [fence] = {each["ELASTIC_RUN_FENCE"] for each in found}
    assert workers.matches(workers.FENCE, fence)
    return fence


def end(nodes):
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    for node in nodes:
        node.wait()


def kill(node):
    for pid in (node.pid, node.launcher()):
        os.kill(pid, signal.SIGKILL)
    node.wait()


def test_the_fence_grows_with_each_restart(elastic_run, script):
    fails = script("fails.py", WORKER.replace("time.sleep(600)", 'sys.exit(os.environ["TORCHELASTIC_RESTART_COUNT"] < "2")'))
    began_ms = time.time_ns() // 1_000_000
    node = elastic_run.start("--max-restarts=2", fails)
    found = [each["ELASTIC_RUN_FENCE"] for each in environments(node, 3)]
    assert node.wait().returncode == 0
    births, terms, rounds = zip(*(fence.split("-") for fence in found))
    assert found == sorted(set(found)) and all(workers.matches(workers.FENCE, fence) for fence in found)
    assert len(set(births)) == 1 and began_ms <= int(births[0]) <= time.time_ns() // 1_000_000
    assert [int(term) for term in terms] == [1, 1, 1] and [int(number) for number in rounds] == [0, 1, 2]


def test_the_fence_is_one_on_all_nodes_and_grows_when_one_is_lost_and_when_one_comes(job):  # noqa: F811
    nodes = job.nodes(3, nnodes="2:3", nproc=2)
    whole = fence_of([each for node in nodes for each in environments(node, 2)])
    kill(nodes.pop(1))
    fewer = fence_of([each for node in nodes for each in environments(node, 2)])
    nodes.append(job.node(nnodes="2:3", nproc=2))
    again = fence_of([each for node in nodes for each in environments(node, 2)])
    assert whole < fewer < again
    assert len({fence.split("-")[0] for fence in (whole, fewer, again)}) == 1
    end(nodes)


def test_a_coordinator_that_takes_over_keeps_the_birth_and_raises_the_term(job):  # noqa: F811
    first = patient_coordinator(job)
    nodes = [job.node("--max-restarts=1", nnodes="2", conf="is_host=0,failover=off") for _ in range(2)]
    found = [environments(node, 1)[0] for node in nodes]
    before = fence_of(found)
    first.popen.kill()
    first.wait()
    second = patient_coordinator(job)
    for node in nodes:
        node.wait_for_line("reconnected to the coordinator at")
    os.kill(found[0]["PID"], signal.SIGKILL)
    after = fence_of([environments(node, 1)[0] for node in nodes])
    (birth, term, number), (new_birth, new_term, new_number) = before.split("-"), after.split("-")
    assert (new_birth, int(new_number)) == (birth, int(number) + 1)
    assert new_term > term and after > before
    end([*nodes, second])


def test_a_job_that_is_started_again_has_a_greater_fence(elastic_run, job):  # noqa: F811
    def alone():
        node = elastic_run.start("--rdzv-id=job", job.worker, "0")
        found = environments(node, 1)
        assert node.wait().returncode == 0
        return fence_of(found)

    def two():
        nodes = job.nodes(2, script_arguments=["0"])
        found = [environments(node, 1)[0] for node in nodes]
        assert [node.wait().returncode for node in nodes] == [0, 0]
        return fence_of(found)

    fences = [run() for run in (alone, alone, two, two)]
    assert fences == sorted(set(fences))


# Saves, and once more when it may.
SAVES = """
import os, sys, time
sys.path.insert(0, os.environ["EXAMPLES"])
from fenced_directory import Fenced, save
save("shared", "weights", b"first")
os.write(1, b"has saved\\n")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
try:
    save("shared", "weights", sys.argv[1].encode())
    os.write(1, b"has saved again\\n")
except Fenced as refusal:
    os.write(1, f"was refused: {refusal}\\n".encode())
"""


def test_a_storage_that_compares_refuses_the_world_of_before(elastic_run, script, tmp_path):
    """The batch system has started the job again, while a node of before still lives."""
    saves = script("saves.py", SAVES)
    shared = pathlib.Path(elastic_run.directory) / "shared"
    shared.mkdir()

    def start(name):
        node = elastic_run.start("--rdzv-id=job", saves, name, env={"EXAMPLES": str(EXAMPLES)})
        node.wait_for_line("has saved", stream="stdout")
        return node

    old = start("old")
    new = start("new")
    for name in ("old", "new"):
        (shared.parent / name).touch()
    old.wait_for_line("was refused: .* belongs to the world of fence", stream="stdout")
    new.wait_for_line("has saved again", stream="stdout")
    assert [node.wait().returncode for node in (old, new)] == [0, 0]
    assert (shared / "weights").read_text() == "new"


def test_the_example_runs(elastic_run):
    result = elastic_run("--nproc-per-node=2", EXAMPLES / "fenced_directory.py", "shared")
    assert result.returncode == 0
    assert sorted(line.split(" has ")[0] for line in result.stdout.splitlines()) == ["rank 0", "rank 1"]
# ctest: gate
