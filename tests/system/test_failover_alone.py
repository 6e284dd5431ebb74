"""With failover=majority, a coordinator that runs alone, on none of the nodes, is killed and does not come back."""
# ctest: clock
# ctest: nodes

import time

from cluster import cluster  # noqa: F401 (a fixture)
from harness import wait_until
from networks import network  # noqa: F401 (a fixture)
from test_failover_deaths import CONF, ELECTED

LOSS_TIMEOUT = 20  # seconds, of which a lease is three fifths


def acts(nodes):
    return [node for node in nodes if ELECTED in node.stderr.text]


def test_training_is_untouched_when_a_coordinator_that_runs_alone_is_killed(cluster):
    cluster.start(4, "2:4", "alone", CONF, loss_timeout=LOSS_TIMEOUT)
    cluster.coordinator.popen.kill()
    killed_at = time.monotonic()
    host = wait_until(lambda: acts(cluster.nodes), what="a node to host the coordinator")[0]
    host.wait_for_line("all 4 nodes of round 0 have reconnected: training goes on")
    # The leases are over by then that the dead one had given.
    wait_until(lambda: time.monotonic() > killed_at + 0.7 * LOSS_TIMEOUT, what="its leases to be over")
    over = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    wait_until(lambda: min(life.was_alive for life in cluster.assert_no_rank_lived_twice()) > over, what="all to be alive")
    lives = cluster.assert_no_rank_lived_twice()
    assert len(lives) == 4, lives
    cluster.end()
