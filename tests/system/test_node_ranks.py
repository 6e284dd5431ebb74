"""Which node is in a round, and with which rank: claims, terms, units, standby, who hosts."""
# ctest: long
# ctest: clock
# ctest: nodes

import os
import signal

import pytest

from harness import alive
from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import environments, job  # noqa: F401 (a fixture)


def ranks(nodes):
    return [int(environments(node, 1)[0]["GROUP_RANK"]) for node in nodes]


def stop(nodes):
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    return [node.wait() for node in nodes]


def host(job, *arguments, **options):
    """The node that has the coordinator."""
    node = job.node(*arguments, **options)
    node.wait_for_line("this node hosts the coordinator")
    return node


def test_a_claimed_rank_is_the_nodes(job):
    # 0 on the command line claims nothing, so the first does, by its turn.
    nodes = [job.node(f"--node-rank={rank}", nnodes="3") for rank in (2, 1, 0)]
    assert ranks(nodes) == [2, 1, 0]
    stop(nodes)


def test_a_node_without_a_claim_takes_what_is_left(job):
    nodes = [host(job, nnodes="3", env={"NODE_RANK": "1"}), *(job.node(nnodes="3") for _ in range(2))]
    found = ranks(nodes)
    assert found[0] == 1 and sorted(found) == [0, 1, 2]
    stop(nodes)


def test_a_rank_that_is_claimed_twice_is_refused_to_the_second_and_both_are_named(network, job):
    hosts = network(3)
    job.host = hosts[0].address
    first = host(job, nnodes="3", env={"NODE_RANK": "1"}, preexec_fn=hosts[0].enter)
    waits = job.node(nnodes="3", env={"NODE_RANK": "0"}, preexec_fn=hosts[1].enter)
    waits.wait_for_line("nodes present, 3 needed", timeout=60)
    result = job.node(nnodes="3", env={"NODE_RANK": "1"}, preexec_fn=hosts[2].enter).wait()
    assert result.returncode == 1 and not result.stdout, result
    said = result.stderr
    assert "rank 1" in said and "node0" in said and "node2" in said, result
    third = job.node(nnodes="3", preexec_fn=hosts[2].enter)  # without the claim it is welcome
    assert ranks([first, waits, third]) == [1, 0, 2]
    stop([third, waits, first])


def test_other_terms_are_refused_with_both_values(job):
    first = job.node("--max-restarts=1", nnodes="2:4")
    first.wait_for_line("this node hosts the coordinator")
    result = job.node("--max-restarts=4", nnodes="2:4", conf="is_host=0").wait()
    assert result.returncode == 1 and not result.stdout, result
    for value in ("max-restarts", "1", "4"):
        assert value in result.stderr.splitlines()[-1], result
    assert alive(first.pid)
    stop([first])


def test_a_round_is_a_multiple_of_the_unit_and_who_is_over_stands_by(job):
    # The last call begins with the fourth of them. By the flag or by the key, all must say the same.
    nodes = [host(job, "--node_unit=2", nnodes="4:6", conf="last_call_timeout=8"),
             *(job.node(nnodes="4:6", conf="node_unit=2,is_host=0,last_call_timeout=8") for _ in range(4))]
    formed = nodes[0].wait_for_line(r"round 0: (\d) nodes", timeout=60).group(1)
    assert formed == "4"
    told = {node: node.wait_for_line("round 0: 4 nodes|standing by", timeout=60).group(0) for node in nodes[1:]}
    [over] = [node for node in told if told[node] == "standing by"]
    for node in nodes:
        if node is not over:
            environments(node, 1)
    sixth = job.node(nnodes="4:6", conf="node_unit=2,is_host=0")
    for node in (over, sixth):
        assert environments(node, 1)[0]["WORLD_SIZE"] == "6"
    stop([sixth, *reversed(nodes)])


def test_who_stands_by_takes_the_place_and_the_rank_of_who_is_lost(job):
    nodes = [host(job, nnodes="2"), job.node(nnodes="2")]
    before = ranks(nodes)
    spare = job.node(nnodes="2")
    spare.wait_for_line("waiting for .*round|standing by", timeout=60)
    os.kill(nodes[1].launcher(), signal.SIGKILL)
    nodes[1].wait()
    after = {node: environments(node, 1)[0] for node in (nodes[0], spare)}
    assert [int(after[node]["GROUP_RANK"]) for node in (nodes[0], spare)] == before
    assert {each["TORCHELASTIC_RESTART_COUNT"] for each in after.values()} == {"0"}
    assert {each["WORLD_SIZE"] for each in after.values()} == {"2"}
    stop([spare, nodes[0]])


def test_of_several_agents_on_one_host_who_binds_first_hosts_and_all_meet(job):
    nodes = [job.node(nnodes="8", script_arguments=["0"]) for _ in range(8)]
    assert sorted(ranks(nodes)) == list(range(8))
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [0] * 8, results
    assert sum("this node hosts the coordinator" in result.stderr for result in results) == 1


def test_all_of_a_job_end_when_the_coordinators_node_is_told_to(job):
    nodes = job.nodes(3, nnodes="2:3", conf="failover=off")
    ranks(nodes)
    nodes[0].send_signal(signal.SIGTERM)
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [1, 1, 1]
    for result in results[1:]:
        assert "SIGTERM" in result.stderr, result


def test_another_node_that_is_told_to_end_leaves_and_the_job_goes_on(job):
    nodes = job.nodes(3, nnodes="2:3")
    ranks(nodes)
    [left] = stop([nodes[2]])
    assert left.returncode == 1 and "SIGTERM" in left.stderr, left
    rest = nodes[:2]
    found = [environments(node, 1)[0] for node in rest]
    assert {(each["WORLD_SIZE"], each["TORCHELASTIC_RESTART_COUNT"]) for each in found} == {("2", "0")}
    assert not any("was lost" in node.stderr.text for node in rest)
    stop(reversed(rest))


@pytest.mark.parametrize("wish, grows", [("now", True), ("on-restart", False)])
def test_scale_up_says_when_a_newcomer_is_let_in(job, wish, grows):
    nodes = job.nodes(2, "--max-restarts=1", nnodes="2:3", conf=f"scale_up={wish}")
    pids = [environments(node, 1)[0]["PID"] for node in nodes]
    newcomer = job.node("--max-restarts=1", nnodes="2:3", conf="is_host=0")
    if not grows:
        newcomer.wait_for_line("waiting for .*round|standing by", timeout=60)
        assert all(alive(pid) for pid in pids)
        os.kill(pids[1], signal.SIGKILL)  # a restart, which takes it along
    assert sorted(ranks([*nodes, newcomer])) == [0, 1, 2]
    stop([newcomer, *reversed(nodes)])


def test_a_node_that_is_done_waits_for_the_others_and_is_in_the_next_round_if_one_is_needed(job, script):
    """Its success is no reason to go: when another fails, all begin anew."""
    early = script("early.py", """
import json, os, pathlib, sys, time
os.write(1, b"env %s\\n" % json.dumps(dict(os.environ)).encode())
if os.environ["RANK"] == "0" or os.environ["TORCHELASTIC_RESTART_COUNT"] == "1":
    sys.exit(0)
while not pathlib.Path("fail").exists():
    time.sleep(0.02)
sys.exit(4)
""")
    nodes = job.nodes(2, "--max-restarts=1", script=early)
    by_rank = {environments(node, 1)[0]["RANK"]: node for node in nodes}
    by_rank["0"].wait_for_line("exited with code 0")
    (job.elastic_run.directory / "fail").touch()
    assert {environments(node, 1)[0]["TORCHELASTIC_RESTART_COUNT"] for node in nodes} == {"1"}
    assert [node.wait().returncode for node in nodes] == [0, 0]


def test_a_node_with_another_number_of_workers_gives_the_world_its_own(job):
    nodes = [host(job, nnodes="2", nproc=3, env={"OMP_NUM_THREADS": "1"}),
             job.node(nnodes="2", nproc=1, env={"OMP_NUM_THREADS": "1"})]
    found = [*environments(nodes[0], 3), *environments(nodes[1], 1)]
    assert sorted(int(each["RANK"]) for each in found) == [0, 1, 2, 3]
    assert {each["WORLD_SIZE"] for each in found} == {"4"}
    stop(reversed(nodes))
