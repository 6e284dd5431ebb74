"""Real PyTorch over several hosts, of which that of the coordinator is lost: the others train on, from rank 0 to the last."""
# ctest: computes
# ctest: long
# ctest: release-only
# ctest: clock

import pathlib
import re

import pytest

import lives
from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import job  # noqa: F401 (a fixture)
from test_many_nodes_pytorch import ONE_THREAD
from workers import LEAVE

# Trains a small model step by step until rank 0 finds the file. Each step adds a one from every rank.
DDP = """
import os, pathlib
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(1)
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1_000_000):
    model(torch.randn(16, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    found = torch.tensor([1, int(dist.get_rank() == 0 and pathlib.Path("enough").exists())])
    dist.all_reduce(found)
    assert found[0] == dist.get_world_size() == int(os.environ["WORLD_SIZE"])
    if step == 3:
        os.write(1, b"trains %d restart %s\\n" % (found[0], os.environ["TORCHELASTIC_RESTART_COUNT"].encode()))
    if found[1]:
        break
dist.barrier()
""" + LEAVE


def train(nodes):
    """Waits until the worker of each node has trained some steps in a round of so many nodes, and no restart was counted.
    A busy machine may cost a lease, and so begin a round that the test has not caused."""
    for node in nodes:
        size = None
        while size != len(nodes):
            found = node.wait_for_line(r"^trains (\d+) restart (\d+)", timeout=90, stream="stdout")
            size, restarts = map(int, found.groups())
            assert restarts == 0


@pytest.mark.time_limit(500)
def test_ddp_goes_on_without_the_coordinators_node_which_joins_when_it_is_reached_again(network, job, script):
    worker = script("ddp.py", lives.STAMPS_IN_PYTHON + DDP)
    hosts = network(3)
    job.host = hosts[0].address
    nodes = [job.node("--max-restarts=0", nnodes="2:3", script=worker, env=ONE_THREAD, preexec_fn=host.enter,
                      conf="failover=majority,last_call_timeout=30,loss_timeout=10,rejoin_timeout=300") for host in hosts]
    train(nodes)
    hosts[0].silence()
    train(nodes[1:])
    hosts[0].restore()
    train(nodes)
    (job.elastic_run.directory / "enough").touch()
    results = [node.wait() for node in nodes]
    assert {result.returncode for result in results} == {0}, results
    for result in results[-2:]:
        assert re.search("node 0 was lost: it did not reconnect after the coordinator was lost", result.stderr), result
    lives.check(pathlib.Path(job.elastic_run.directory))
