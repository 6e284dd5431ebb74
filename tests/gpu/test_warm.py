"""Warm workers on real GPUs (docs/warm-workers.md): CUDA, NCCL, torch.compile and DataLoader workers work in them, and give what
fresh ones give. Needs a PyTorch with CUDA in the Python that runs these tests."""

import json
import os
import subprocess
import sys
import time

import pytest
from warm_jobs import WORKER, Job

# A first step of training, before the worker tells what it is.
STEP = """
import json
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
local = int(os.environ["LOCAL_RANK"])
told = {"bad fork": torch.cuda._is_in_bad_fork(), "visible": torch.cuda.device_count(), "local": local}
torch.manual_seed(0)
torch.cuda.set_device(local)
dist.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8).cuda(), device_ids=[local])
step = torch.compile(lambda batch: model(batch).square().mean())
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.randn(64, 8))
for batch, in DataLoader(data, 16, num_workers=2):
    optimizer.zero_grad()
    loss = step(batch.cuda())
    loss.backward()
    optimizer.step()
dist.all_reduce(loss)
told["loss"] = loss.item().hex()
dist.destroy_process_group()
os.write(1, f"told {os.environ['TORCHELASTIC_RESTART_COUNT']} {json.dumps(told)}\\n".encode())
"""
ASKS = "import torch; print(torch.cuda.is_available() and torch.distributed.is_nccl_available(), torch.cuda.device_count())"


@pytest.fixture
def devices(gpu, rehearsed):
    """How many GPUs this Python's PyTorch can use with NCCL."""
    done = subprocess.run([sys.executable, "-c", ASKS], env=os.environ | gpu.variables, capture_output=True, text=True,
                          timeout=120, check=False)
    if done.returncode != 0:
        pytest.skip("no PyTorch in the Python that runs the tests")
    works, count = done.stdout.split()
    if works != "True":
        pytest.skip("the PyTorch of this Python has no CUDA with NCCL that works")
    return int(count)


def told(job, count):
    """What the ranks of that round have told, by rank's local number; each has said what it is, too."""
    lines = [line.split(" ", 2) for line in job.run.stdout.text.splitlines() if line.startswith(f"told {count} ")]
    return sorted((json.loads(text) for _, _, text in lines), key=lambda each: each["local"])


def opened(pid):
    """The device files that a process has open."""
    found = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            to = os.readlink(f"/proc/{pid}/fd/{number}")
        except FileNotFoundError:
            continue
        if to.startswith("/dev/") and to != "/dev/null":
            found.append(to)
    return found


@pytest.mark.time_limit(540)
@pytest.mark.parametrize("arguments", [(), ("--virtual-local-rank",)], ids=["local ranks", "virtual local ranks"])
def test_a_step_of_training_on_gpus_is_the_same_fresh_and_warm(gpu, devices, elastic_run, script, arguments):
    job = Job(elastic_run, script, sys.executable)
    job.patience = 240  # torch.compile takes its time
    job.worker.write_text(WORKER.replace("import torch\n", STEP))
    took_s = {}
    for warm in ("on", "off"):
        job.start(*arguments, nproc=min(devices, 8), warm=warm, fails=1, env=gpu.variables)
        job.are(0, "fresh")
        if warm == "on":
            job.wait_until_parked()
            server, waiting = job.server()
            assert [opened(each.pid) for each in (server, *waiting)] == [[]] * (1 + len(waiting))
        began = time.monotonic()
        job.ends(0)
        start, _ = job.workers(1)
        took_s[start] = time.monotonic() - began
        first, second = told(job, 0), told(job, 1)
        assert len(first) == job.nproc and first == second
        assert not any(each["bad fork"] for each in second)
        assert not arguments or all((each["visible"], each["local"]) == (1, 0) for each in second)
        result = job.ends_all()
        assert result.returncode == 0, result
        for count in range(10):
            (job.go.parent / f"go.{count}").unlink()
    print(f"{gpu.name}, {job.nproc} ranks: from the failure to the end of the first epoch, s: {took_s}")
    assert set(took_s) == {"warm", "fresh"}
