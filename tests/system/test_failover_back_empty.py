"""The coordinator's host vanishes and is back with a new, empty elastic-run at its address: that is a node of the job,
which has gone on without it, and never begins another one beside it."""
# ctest: long
# ctest: gate-cases
# ctest: clock
# ctest: nodes

import time

import pytest

from cluster import cluster  # noqa: F401 (a fixture)
from harness import wait_until
from networks import network  # noqa: F401 (a fixture)
from test_failover_deaths import CONF, LOSS_TIMEOUT, lose_host


@pytest.mark.parametrize("when, fresh", [
    pytest.param("at once", False, id="at once-alone", marks=pytest.mark.gate),
    pytest.param("at once", True, id="at once-with a fresh node"),
    pytest.param("when the others run again", False, id="when the others run again-alone"),
    pytest.param("when the others run again", True, id="when the others run again-with a fresh node"),
    pytest.param("much later", False, id="much later-alone"),
    pytest.param("much later", True, id="much later-with a fresh node"),
])
def test_a_coordinators_host_that_is_back_empty_becomes_a_node_of_the_job_that_went_on(cluster, network, when, fresh):
    cluster.start(4, "2:5", "endpoint", f"{CONF},last_call_timeout=1", loss_timeout=LOSS_TIMEOUT)
    first, *left = cluster.nodes
    host = cluster.hosts[0]
    lose_host(host, first)
    lost_at = time.monotonic()
    if when != "at once":
        cluster.round_of(left)
    if when == "much later":
        wait_until(lambda: time.monotonic() > lost_at + 4 * LOSS_TIMEOUT, what="the job to go on")
    host.restore()
    there = [*left, cluster.join(host)]
    if fresh:
        there.append(cluster.join(network.add()))
    cluster.round_of(there)
    births = {life.fence.split("-")[0] for life in cluster.assert_no_rank_lived_twice()}
    assert len(births) == 1, "the job was begun anew"
    cluster.end()
