"""A coordinator's host that comes back empty, while a node of before is cut off and its workers live."""
# ctest: clock
# ctest: nodes

import os
import pathlib
import signal

from lives import STAMPS, Worker
from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import ALL_COME, job  # noqa: F401 (a fixture)
from test_node_lease import assert_gone_before


def test_an_empty_host_and_a_new_node_begin_when_the_workers_of_a_node_that_is_cut_off_are_dead(network, job, static_c):
    first, cut_off, third = network(3)
    job.host = first.address
    program = static_c(STAMPS)
    directory = pathlib.Path(job.elastic_run.directory)

    def start(host, conf=""):
        return job.node("--no-python", nnodes="2:3", script=program, conf=conf, preexec_fn=host.enter)

    before = [start(host, ALL_COME) for host in (first, cut_off, third)]
    old = {host: Worker(node, directory) for host, node in zip((first, cut_off, third), before)}
    cut_off.silence()
    for node in (before[0], before[2]):
        for pid in (node.pid, node.launcher()):
            os.kill(pid, signal.SIGKILL)
        node.wait()
    after = [start(first), start(third)]
    new = [Worker(node, directory) for node in after]
    assert {each.world for each in new} == {2}
    assert_gone_before(old[cut_off], new)
    gone = before[1].wait_for_line(r"all its processes have ended, (\d+) ms after the stop")
    assert int(gone.group(1)) < 10_000  # not after a wait of elastic-run's own
    for node in (after[1], after[0]):
        node.send_signal(signal.SIGTERM)
    for node in after:
        node.wait()
    cut_off.restore()
    before[1].send_signal(signal.SIGTERM)
    before[1].wait()
