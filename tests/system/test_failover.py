"""The coordinator's node is lost, and the others go on: --rdzv-conf=failover=majority."""
# ctest: long
# ctest: gate-cases
# ctest: clock
# ctest: nodes

import os
import signal

import pytest
from harness import wait_until
from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import job, until_size  # noqa: F401 (a fixture)

# A lease is three fifths of the loss_timeout; on a busy machine a process may not run for a second or two.
CONF = "failover=majority,loss_timeout=5,rejoin_timeout=20,join_timeout=60"
# For where nobody falls silent.
IN_ORDER = CONF.replace("loss_timeout=5", "loss_timeout=10")


def start(job, host, nnodes="2:3", conf=CONF, arguments=lambda host: [], **options):
    return job.node(*arguments(host), nnodes=nnodes, conf=conf, preexec_fn=host.enter, **options)


def begin(job, hosts, conf=CONF, **options):
    """A job with a node on each host, whose workers run; the first host is the endpoint's. If the job may have no more
    nodes, however long the last one takes to come, it is in the first round."""
    job.host = hosts[0].address
    options["conf"] = "last_call_timeout=60," + conf
    nodes = [start(job, hosts[0], **options)]
    nodes[0].wait_for_line("this node hosts the coordinator")
    nodes += [start(job, host, **options) for host in hosts[1:]]
    next_round(nodes)
    return nodes


def kill_all(node):
    """As by the kernel's OOM killer: launcher, guardian and so the workers."""
    for pid in (node.launcher(), node.pid):
        os.kill(pid, signal.SIGKILL)
    node.wait()


def end(nodes):
    for node in nodes:
        node.send_signal(signal.SIGINT)
    for node in nodes:
        node.wait()


def next_round(nodes):
    """What the workers were given in the next round that has these nodes and no others, by node."""
    found = [until_size(node, len(nodes)) for node in nodes]
    # A node that was slow may have been in one more of them.
    while len(fences := {each.get("ELASTIC_RUN_FENCE") for each in found}) > 1:
        found = [each if each["ELASTIC_RUN_FENCE"] == max(fences) else until_size(node, len(nodes))
                 for node, each in zip(nodes, found)]
    return found


def host_of(nodes, found):
    """The node whose coordinator has formed the round of these workers. Others may have stood as candidates before it."""
    [number] = {int(each["ELASTIC_RUN_FENCE"].rpartition("-")[2]) for each in found}
    [host] = [node for node in nodes if f"round {number} has formed with" in node.stderr.text]
    assert "this node hosts the coordinator" in host.stderr.text
    return host


def test_the_others_go_on_when_all_processes_of_the_coordinators_node_are_killed(network, job):
    nodes = begin(job, network(3))
    kill_all(nodes[0])
    found = next_round(nodes[1:])
    assert sorted(each["RANK"] for each in found) == ["0", "1"]
    assert host_of(nodes[1:], found)
    assert any("the coordinator's process has ended" in node.stderr.text for node in nodes[1:])
    end(nodes[1:])


def test_with_failover_evidence_none_the_others_wait_until_their_promises_are_over(network, job):
    nodes = begin(job, network(3), conf=CONF + ",failover_evidence=none")
    kill_all(nodes[0])
    next_round(nodes[1:])
    for node in nodes[1:]:
        assert "the coordinator's process has ended" not in node.stderr.text
    end(nodes[1:])


def test_one_of_two_that_are_left_goes_on_when_the_new_coordinators_node_is_killed_too(network, job):
    nodes = begin(job, network(3), nnodes="1:3")
    kill_all(nodes[0])
    found = next_round(nodes[1:])
    host = host_of(nodes[1:], found)
    kill_all(host)
    last = next(node for node in nodes[1:] if node is not host)
    next_round([last])
    end([last])


def test_half_of_the_nodes_does_not_go_on_without_the_coordinators(network, job):
    hosts = network(4)
    nodes = begin(job, hosts, nnodes="2:4", conf=CONF.replace("rejoin_timeout=20", "rejoin_timeout=6"))
    for host in hosts[:2]:
        host.silence()
    for node in nodes[2:]:
        result = node.wait()
        assert result.returncode == 1
        assert "lost the coordinator" in result.stderr
    for host in hosts[:2]:
        host.restore()
    end(nodes[:2])


def leaves_in_order(node):
    """SIGTERM to the coordinator's node: it ends as one that was told to."""
    node.send_signal(signal.SIGTERM)
    assert "stopped by SIGTERM; all workers have ended" in node.wait().stderr


@pytest.mark.gate
@pytest.mark.timing  # kind A: T = 10 s
def test_the_coordinators_node_hands_over_when_it_gets_sigterm(network, job):
    nodes = begin(job, network(3), conf=IN_ORDER)
    leaves_in_order(nodes[0])
    next_round(nodes[1:])
    nodes[0].wait_for_line("hands over to another node")
    for node in nodes[1:]:
        assert "killing the workers" not in node.stderr.text
    end(nodes[1:])


def test_a_coordinator_whose_own_node_is_out_hands_over_when_it_gets_sigterm_and_training_goes_on(job):
    def node(number, *arguments):
        return job.node("--network-check", f"--local-addr=127.0.0.{number}", *arguments, nnodes="2:3",
                        conf="last_call_timeout=60," + IN_ORDER)

    first = node(1, "--health-hook=exit 1")
    first.wait_for_line("this node hosts the coordinator")
    others = [node(number) for number in (2, 3)]
    next_round(others)
    first.wait_for_line("this node is done; its coordinator keeps serving the other nodes of its job until that is over")
    first.send_signal(signal.SIGTERM)
    result = first.wait()
    assert result.returncode == 1, result
    assert "hands over to another node: the elastic-run beside it received SIGTERM" in result.stderr, result
    wait_until(lambda: any("training goes on" in other.stderr.text for other in others), what="the new coordinator")
    for other in others:
        assert "killing the workers" not in other.stderr.text and "round 2 " not in other.stderr.text, other.stderr.text
    end(others)


def test_one_of_two_nodes_goes_on_when_the_coordinators_is_told_to_leave(network, job):
    nodes = begin(job, network(2), nnodes="1:2", conf=IN_ORDER)
    leaves_in_order(nodes[0])
    next_round(nodes[1:])
    end(nodes[1:])


@pytest.mark.parametrize("nnodes, more", [("3", ""), ("2:3", ",on_leave=end")])
def test_the_job_ends_with_its_coordinators_node_where_others_are_too_few_or_on_leave_is_end(
    network, job, nnodes, more
):
    nodes = begin(job, network(3), nnodes=nnodes, conf=IN_ORDER + more)
    leaves_in_order(nodes[0])
    for node in nodes[1:]:
        assert "SIGTERM" in node.wait().stderr


@pytest.mark.parametrize("which, count", [("launcher", 3), ("guardian", 2)])
def test_the_others_do_not_wait_for_the_lease_of_a_coordinators_node_that_says_its_workers_are_dead(
    network, job, which, count
):
    # Its lease would last for a minute and more.
    nodes = begin(job, network(count), nnodes=f"1:{count}", conf=CONF + ",loss_timeout=120")
    os.kill(nodes[0].launcher() if which == "launcher" else nodes[0].pid, signal.SIGKILL)
    next_round(nodes[1:])
    nodes[0].wait()
    end(nodes[1:])


# Rank 0 trains until it may end; the others are done at once.
DONE_EARLY = """
import json, os, time
names = ["RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"]
os.write(1, f"env {json.dumps({name: os.environ[name] for name in names})}\\n".encode())
while os.environ["RANK"] == "0" and not os.path.exists("may_end"):
    time.sleep(0.01)
"""


def test_the_coordinators_node_that_is_done_hands_over_and_ends_well_while_others_train(network, job, script):
    hosts = network(3)
    # The endpoint's host is not the node of rank 0, which would wait for the others without limit.
    ranks = {host.name: (index + 1) % 3 for index, host in enumerate(hosts)}
    nodes = begin(job, hosts, nnodes="3", conf=IN_ORDER + ",exit_barrier=2", script=script("done.py", DONE_EARLY),
                  arguments=lambda host: [f"--node-rank={ranks[host.name]}"])
    first = nodes[0].wait()
    assert first.returncode == 0, first
    assert "hands over to another node" in first.stderr
    assert "the other nodes did not finish within 2 s after this node's workers succeeded" in first.stderr
    trains = nodes[-1]
    trains.wait_for_line("enough nodes of the last round support this coordinator|all .* have reconnected")
    (job.elastic_run.directory / "may_end").touch()
    for node in nodes[1:]:
        result = node.wait()
        assert result.returncode == 0, result
        assert result.stdout.count("env ") == 1 and "killing" not in result.stderr, result
