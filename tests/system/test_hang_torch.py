"""Jobs of PyTorch with gloo that hang: docs/hangs.md. The collectives, and the stacks that lead there, are PyTorch's own."""
# ctest: computes, release-only
# ctest: clock

import importlib.util
import json
import pathlib
import signal

import pytest

from harness import alive, wait_until

# All ranks begin together, make three steps, and then do what hangs.
BEGIN = """
import datetime, os, sys, time
import torch
import torch.distributed as dist
directory = sys.argv[1]
rank = int(os.environ["RANK"])
torch.set_num_threads(1)
with open(os.path.join(directory, f"pid_{rank}.new"), "w") as file:
    file.write(str(os.getpid()))
os.rename(os.path.join(directory, f"pid_{rank}.new"), os.path.join(directory, f"pid_{rank}"))


def step(number):
    with open(os.environ["ELASTIC_RUN_PROGRESS"], "w") as word:
        word.write(f"step={number} phase=train\\n")


def train_step():
    dist.all_reduce(torch.ones(4))
"""
STEPS = """
dist.init_process_group("gloo")
for number in range(1, 4):
    train_step()
    step(number)
"""

pytestmark = pytest.mark.time_limit(400)


class Job:
    def __init__(self, elastic_run, script, body, *options, ranks=3):
        self.directory = pathlib.Path(elastic_run.directory)
        self.ranks = ranks
        self.run = elastic_run.start("--standalone", f"--nproc-per-node={ranks}", "--hang-timeout=3s",
                                     f"--log-dir={self.directory}/logs", *options, script("train.py", BEGIN + body), self.directory,
                                     env={"OMP_NUM_THREADS": "1"})

    def report(self):
        """What hang.json has as soon as the verdict was told; nobody was ended for it."""
        self.run.wait_for_line("no progress for", timeout=240)
        file = wait_until(lambda: next(self.directory.glob("logs/*/attempt_0/hang/hang.json"), None), what="hang.json")
        pids = [int((self.directory / f"pid_{rank}").read_text()) for rank in range(self.ranks)]
        assert all(alive(pid) for pid in pids), "a worker was ended"
        report = json.loads(file.read_text())["hang"]
        assert all(culprit["pid"] == pids[culprit["rank"]] for culprit in report["culprits"]), report
        return report

    def end(self):
        self.run.send_signal(signal.SIGTERM)
        self.run.wait()


@pytest.fixture
def train(elastic_run, script):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("there is no PyTorch")
    return lambda body, *options, **settings: Job(elastic_run, script, body, *options, **settings)


def odd_functions(report):
    odd, = [group for group in report["groups"] if group["odd"]]
    return [frame["function"] for frame in odd["stack"]]


HANGS = {
    "sleeps": "time.sleep(10000)",
    "holds the GIL in C": "import ctypes; ctypes.PyDLL(None).sleep(10000)",
}


@pytest.mark.parametrize("how", HANGS)
def test_a_rank_that_does_not_come_to_all_reduce_is_named_with_its_line(train, how):
    job = train(STEPS + f"""
def load_batch():
    {HANGS[how]}


if rank == 1:
    load_batch()
train_step()
""")
    report = job.report()
    assert report["verdict"]["rule"] == 8 and report["fault"] == "soft", report
    assert [culprit["rank"] for culprit in report["culprits"]] == [1], report
    assert "load_batch" in odd_functions(report), report
    assert [group["op"] for group in report["groups"] if not group["odd"]] == ["all_reduce"], report
    job.end()


def test_a_control_server_says_how_far_its_rank_is_though_that_holds_the_gil(train, tmp_path):
    job = train("""
from torch.distributed.elastic.control_plane import worker_main


def load_batch():
    import ctypes
    ctypes.PyDLL(None).sleep(10000)


@worker_main()
def main():
    dist.init_process_group("gloo")
    for number in range(1, 4):
        train_step()
        step(number)
    if rank == 1:
        load_batch()
    train_step()


main()
""", f"--wrap=all:env TORCH_WORKER_SERVER_SOCKET={tmp_path}/control-%r")
    report = job.report()
    assert report["sources"]["fr"] == "ok", report
    assert report["verdict"]["rule"] == 7 and [culprit["rank"] for culprit in report["culprits"]] == [1], report
    assert 'in all_reduce number 4 of group "default_pg (gloo)"; rank 1 has launched 3' in report["others"], report
    job.end()


def test_a_rank_that_hangs_before_init_process_group_is_named(train):
    job = train("""
def load_weights():
    time.sleep(10000)


if rank == 1:
    load_weights()
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
""")
    report = job.report()
    assert report["verdict"]["rule"] == 5 and report["limit_from"] == "fact", report
    assert [culprit["rank"] for culprit in report["culprits"]] == [1], report
    assert report["sources"]["store"] == "ok" and "load_weights" in odd_functions(report), report
    job.end()


def test_ranks_in_different_collectives_are_the_scripts_fault(train):
    job = train(STEPS + """
if rank < 2:
    dist.all_reduce(torch.ones(4))
else:
    dist.broadcast(torch.ones(4), src=0)
""", ranks=4)
    report = job.report()
    assert report["verdict"]["rule"] == 6 and report["fault"] == "script" and report["culprits"] == [], report
    assert {group["op"] for group in report["groups"]} == {"all_reduce", "broadcast"}, report
    job.end()
