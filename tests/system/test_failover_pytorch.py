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
from test_many_nodes_pytorch import DDP, ONE_THREAD, kill_node, train


@pytest.mark.time_limit(500)
@pytest.mark.parametrize("how", ["killed", "silenced"])
def test_ddp_goes_on_without_the_coordinators_node_which_joins_when_it_is_reached_again(network, job, script, how):
    worker = script("ddp.py", lives.STAMPS_IN_PYTHON + DDP)
    hosts = network(3)
    job.host = hosts[0].address
    nodes = [job.node("--max-restarts=0", nnodes="2:3", script=worker, env=ONE_THREAD, preexec_fn=host.enter,
                      conf="failover=majority,last_call_timeout=30,loss_timeout=10,rejoin_timeout=300") for host in hosts]
    train(nodes)
    if how == "killed":
        kill_node(nodes[0])
    else:
        hosts[0].silence()
    left = nodes[1:]
    train(left)
    if how == "silenced":
        hosts[0].restore()
        train(nodes)
        left = nodes
    (job.elastic_run.directory / "enough").touch()
    results = [node.wait() for node in left]
    assert {result.returncode for result in results} == {0}, results
    for result in results[-2:]:
        assert re.search("node 0 was lost: it did not reconnect after the coordinator was lost", result.stderr), result
    lives.check(pathlib.Path(job.elastic_run.directory))
