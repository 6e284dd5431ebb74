"""Real PyTorch, unmodified, as elastic-run's workers. Each start of torch costs seconds: one job tries
many things."""
# ctest: computes
# ctest: gate-pytorch

import json
import os
import re
import signal

import harness
import pytest
import workers

pytestmark = pytest.mark.time_limit(300)  # four imports of PyTorch, twice

ONE_THREAD = {"OMP_NUM_THREADS": "1"}

# Collectives of all kinds over the environment's rendezvous; each result is right only if every rank of
# this round, and none of another, has taken part. What a rank finds goes to $OUT.
COLLECTIVES = """\
import datetime, json, os, signal, sys, time
import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
count = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
frame, files = sys._getframe(), set()
while frame:
    files.add(frame.f_code.co_filename)
    frame = frame.f_back
found = {"launched": dist.is_torchelastic_launched(), "arguments": sys.argv[1:], "name": __name__,
         "start": "warm" if "<elastic-run>" in files else "fresh"}
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=200))
assert (dist.get_rank(), dist.get_world_size()) == (rank, world)

def total(value, group=None):
    tensor = torch.tensor([float(value)])
    dist.all_reduce(tensor, group=group)
    return tensor.item()

found["sum"] = total(rank + 1)
found["restart counts"] = total(count)
same = [ranks for ranks in (range(0, world, 2), range(1, world, 2)) if rank in ranks][0]
groups = {parity: dist.new_group(range(parity, world, 2)) for parity in (0, 1)}
found["group sum"] = total(rank + 1, groups[rank % 2]) - sum(other + 1 for other in same)
objects = [{"from": 0, "round": count}, b"bytes"] if rank == 0 else [None, None]
dist.broadcast_object_list(objects, src=0)
found["objects"] = objects == [{"from": 0, "round": count}, b"bytes"]
dist.monitored_barrier(timeout=datetime.timedelta(seconds=200))
if count == 0 and "CRASH" in os.environ:
    # In the midst of a collective: the others wait for this rank when it dies.
    if rank == 1:
        while not os.path.exists(os.environ["CRASH"]):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    total(1)
    found["survived"] = True
with open(f"{os.environ['OUT']}/{count}.{rank}", "x") as file:
    json.dump(found, file)
dist.destroy_process_group()
""" + workers.LEAVE


@pytest.fixture
def train(elastic_run, tmp_path):
    """train(ranks, options...): runs a job of COLLECTIVES, which must succeed; returns its Result, and what
    every rank found: {(restart count, rank): dict}. Rank 1 dies in the first round when a file exists that CRASH names.
    meanwhile(running) is called while it runs."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package/train.py").write_text(COLLECTIVES)
    out = tmp_path / "out"
    out.mkdir()

    def run(ranks, *options, env=None, script="package/train.py", meanwhile=lambda running: None):
        running = elastic_run.start(f"--nproc-per-node={ranks}", *options, script, "--lr", "0.1",
                                    env=ONE_THREAD | {"OUT": str(out)} | (env or {}))
        meanwhile(running)
        result = running.wait(timeout=280)
        assert result.returncode == 0, result
        return result, workers.read_reports(out)

    return run


def expected(ranks, restarts=0, start="fresh"):
    return {"launched": True, "arguments": ["--lr", "0.1"], "name": "__main__", "start": start,
            "sum": ranks * (ranks + 1) / 2, "restart counts": float(ranks * restarts), "group sum": 0.0,
            "objects": True}


@pytest.mark.gate
def test_four_ranks_train_again_after_one_was_killed_in_a_collective(train):
    result, found = train(4, "--standalone", "--max-restarts=2", env={"CRASH": os.devnull})
    assert found == {(1, rank): expected(4, restarts=1) for rank in range(4)}
    assert result.stderr.count("rank 1 (local rank 1, pid ") == 1
    assert "was killed by SIGKILL; restarting all workers (restart 1 of 2)" in result.stderr


@pytest.mark.gate
def test_warm_ranks_train_after_one_was_killed_in_a_collective(train, tmp_path):
    crash = tmp_path / "crash"

    def when_warm_workers_wait(running):
        running.wait_for_line("2 warm workers wait for the next round", timeout=200)
        crash.touch()

    _, found = train(2, "--max-restarts=1", "--warm-workers=on", "--warm-after=0", "--log-level=info",
                     env={"CRASH": str(crash), **harness.PATIENT}, meanwhile=when_warm_workers_wait)
    assert found == {(1, rank): expected(2, restarts=1, start="warm") for rank in range(2)}


def test_a_static_job_of_a_module_trains_again_over_the_same_port(train):
    port = workers.free_port()
    result, found = train(2, f"--master-port={port}", "--max-restarts=1", "-m", script="package.train",
                          env={"CRASH": os.devnull})
    assert found == {(1, rank): expected(2, restarts=1) for rank in range(2)}
    assert "restart 1 of 1" in result.stderr


def test_rank_0_hosts_the_store_where_sharing_is_disabled_and_run_path_ends_well_by_sys_exit_0(train):
    result, found = train(2, "--run-path", env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})
    assert found == {(0, rank): expected(2) for rank in range(2)}
    assert result.stderr == ""


# --- Errors that PyTorch records

def error_file(result):
    """The file that the summary names, read."""
    path = re.search("^  error file: (.*)$", result.stderr, re.MULTILINE).group(1)
    assert path.endswith("/attempt_0/0/error.json")
    with open(path) as file:
        return json.load(file)


@pytest.mark.parametrize("options, text", [
    ([], "from torch.distributed.elastic.multiprocessing.errors import record\n"
         "@record\ndef main():\n    raise ValueError('the data is bad')\nmain()\n"),
    (["--run-path"], "raise ValueError('the data is bad')\n"),
], ids=["record", "run-path"])
def test_the_error_that_a_worker_recorded_is_in_the_file_that_the_summary_names(
        elastic_run, script, options, text):
    result = elastic_run(*options, script("train.py", text))
    assert (result.returncode, result.stdout) == (1, "")
    message = error_file(result)["message"]
    assert message["message"] == "ValueError: the data is bad"
    assert "ValueError: the data is bad" in message["extraInfo"]["py_callstack"]
    assert "first failure: rank 0" in result.stderr


def test_without_record_no_error_file_is_named(elastic_run, script):
    result = elastic_run(script("train.py", "raise ValueError('the data is bad')\n"))
    assert result.returncode == 1
    assert "error file: none (decorate" in result.stderr


# Trains until it is told to end, then saves after some more batches, for which it needs its data loaders.
SAVES = """\
import os, signal, sys
import torch
from torch.utils.data import DataLoader, IterableDataset

class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(4)

told = []
batches = iter(DataLoader(Endless(), batch_size=2, num_workers=2))
next(batches)
signal.signal(signal.SIGTERM, lambda *_: told.append(True))
os.write(1, b"trains\\n")
while not told:
    next(batches)
for _ in range(200):
    next(batches)
open(f"checkpoint.{os.environ['RANK']}", "x").close()
os._exit(0)
"""


def test_data_loaders_live_while_a_rank_saves(elastic_run, script, tmp_path):
    running = elastic_run.start("--nproc-per-node=2", "--log-dir=/dev/null", script("saves.py", SAVES), env=ONE_THREAD)
    for _ in range(2):
        running.wait_for_line("^trains", stream="stdout", timeout=200)
    running.send_signal(signal.SIGTERM)
    result = running.wait(timeout=60)
    assert result.returncode == 1
    assert sorted(path.name for path in tmp_path.glob("checkpoint.*")) == ["checkpoint.0", "checkpoint.1"], result
