"""An operator's orders: `elastic-run --drain=NODE` and `--stop`, each with `--status=HOST:PORT`."""
# ctest: gate-cases
# ctest: clock
# ctest: nodes

import json
import os
import re
import signal

import pytest

from harness import wait_until
from http_client import get, http_port, status
from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import ALL_COME, NOBODY_IS_SILENT, environments, job  # noqa: F401 (a fixture)
from workers import free_port

TOKEN = "kq7-Zebra-0451-horizon"
# Says who it is; ends at SIGTERM, after it has written that down.
SAVES = """
import json, os, signal, sys, time
def save(*_):
    with open("saved", "a") as file:
        file.write(f"{os.environ['RANK']}\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
names = ["RANK", "WORLD_SIZE", "GROUP_RANK", "TORCHELASTIC_RESTART_COUNT"]
os.write(1, f"env {json.dumps({name: os.environ[name] for name in names} | {'PID': os.getpid()})}\\n".encode())
time.sleep(600)
"""


@pytest.fixture
def order(elastic_run):
    """Gives an order to the port of a job on this host."""
    def give(port, *arguments, host="127.0.0.1", **options):
        return elastic_run(*arguments, f"--status={host}:{port}", **options)
    return give


def drain(order, port, node, *arguments, **options):
    return order(port, f"--drain={node}", *arguments, **options)


def stop(order, port, *arguments, **options):
    return order(port, "--stop", *arguments, **options)


def only_job(port, **options):
    [found] = status(port, **options)["coordinator"]["jobs"]
    return found


def end(*nodes):
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    return [node.wait() for node in nodes]


def ranks(nodes):
    """{group rank: node} of running nodes, which have just said who they are."""
    found = {}
    for node in nodes:
        [env] = environments(node, 1)
        found[int(env["GROUP_RANK"])] = (node, env)
    return found


@pytest.mark.gate
def test_a_drained_node_leaves_in_order_and_the_others_go_on_without_a_charged_restart(job, script, order):
    nodes = job.nodes(3, nnodes="2:3", script=script("saves.py", SAVES), conf=NOBODY_IS_SILENT)
    # The first one hosts the coordinator, whichever rank it has.
    rank, leaver = next((rank, node) for rank, (node, _) in ranks(nodes).items() if node is not nodes[0])
    told = drain(order, job.port, rank)
    assert told.returncode == 0, told
    assert re.fullmatch(rf"node {rank} \(.+\) leaves: its workers get SIGTERM and the time of its --shutdown-timeout to "
                        r"end; then the other 2 nodes begin a new round, which --max-restarts does not count\n",
                        told.stdout), told
    left = leaver.wait()
    assert left.returncode == 1 and "an operator has drained this node" in left.stderr, left
    assert "an operator at 127.0.0.1 has ordered this node to leave the job" in left.stderr, left
    stayers = [node for node in nodes if node is not leaver]
    for node in stayers:
        [env] = environments(node, 1)
        assert (env["WORLD_SIZE"], env["TORCHELASTIC_RESTART_COUNT"]) == ("2", "0")
    # Its worker had the time to save, which no SIGKILL would have given it; so had those of the others, whose next round
    # begins when all have ended.
    assert sorted((job.elastic_run.directory / "saved").read_text().split()) == ["0", "1", "2"]
    found = only_job(job.port)
    assert found["restarts_charged"] == 0 and found["node_losses"] == 0 and found["round"] == 1
    assert found["restarts"]["membership_change"] == 1 and "drained by an operator" in found["because"]
    end(*stayers)


def test_a_stopped_job_ends_in_order_on_all_nodes(job, script, order):
    nodes = job.nodes(2, nnodes="2", script=script("saves.py", SAVES))
    ranks(nodes)
    told = stop(order, job.port)
    assert told.returncode == 0, told
    assert told.stdout == ("the job stops: the workers of its 2 nodes get SIGTERM and the time of --shutdown-timeout to "
                           "end, then the job ends\n")
    for result in [node.wait() for node in nodes]:
        assert result.returncode == 1 and "stopped by an operator; all workers have ended" in result.stderr, result
    assert sorted((job.elastic_run.directory / "saved").read_text().split()) == ["0", "1"]
    gone = stop(order, job.port)
    assert gone.returncode == 1 and gone.stdout == "" and "connection refused" in gone.stderr.lower(), gone


def test_an_order_that_cannot_be_carried_out_changes_nothing_and_says_why(job, order):
    host = job.node("--http-port=0", "--node-rank=0", nnodes="2:2")
    own = http_port(host)
    host.wait_for_line("this node hosts the coordinator")
    other = job.node("--http-port=0", "--node-rank=1", nnodes="2:2")
    others = http_port(other)
    ranks([host, other])
    refusals = {
        ("--drain=7",): r"--drain=7: no node has rank 7; the nodes are 0 \(.+\), 1 \(.+\)\n",
        ("--drain=nobody",): r"--drain=nobody: no node has the name or address nobody; the nodes are 0 ",
        ("--drain=0",): r"--drain=0: node 0 \(.+\) hosts the job's coordinator, .*; --stop ends the job",
        ("--drain=1", "--rdzv-id=other"): r"--drain=1: there is no job other here; the jobs here are job; name one with --rdzv-id\n",
        ("--stop", "--rdzv-id=other"): r"--stop: there is no job other here; the jobs here are job; name one with --rdzv-id\n",
    }
    for arguments, reason in refusals.items():
        refused = order(job.port, *arguments)
        assert refused.returncode == 1 and refused.stdout == "", refused
        assert re.search(reason, refused.stderr), refused
    # Both are called by this host's name.
    name = only_job(job.port)["members"][0]["name"]
    several = drain(order, job.port, name)
    assert several.returncode == 1 and "may be any of 2 nodes" in several.stderr, several
    elsewhere = drain(order, others, 1)
    assert elsewhere.returncode == 1, elsewhere
    assert f"the job's coordinator is not in this process; name its endpoint with --status (this node looks for it at " \
        f"127.0.0.1:{job.port})" in elsewhere.stderr, elsewhere
    assert only_job(job.port)["nodes"]["in_round"] == 2 and only_job(job.port)["round"] == 0
    # The coordinator's own --http-port takes orders, too.
    assert drain(order, own, 1).returncode == 0
    assert other.wait().returncode == 1
    end(host)


def test_a_wrong_command_line_orders_nothing(elastic_run):
    wrong = {
        ("--drain=1",): "--drain=1: nothing says where the job is; name its endpoint with --status=HOST:PORT",
        ("--stop",): "nothing says where the job is; name its endpoint with --status=HOST:PORT",
        ("--drain=", "--status=host0"): "it names no node",
        ("--drain= ", "--status=host0"): "it names no node",
        ("--drain=1", "--stop", "--status=host0"): "--stop starts no job; leave it out, or --stop",
        ("--drain=1", "--status=host0", "--watch"): "--watch",
        ("--stop", "--status=host0:0"): "nothing can listen on port 0",
        ("--stop", "--status=host0", "train.py"): "train.py: --stop starts no script",
        ("--drain=1", "--status=host0", "--nnodes=2"): "--drain starts no job",
    }
    for arguments, reason in wrong.items():
        refused = elastic_run(*arguments)
        assert refused.returncode == 2 and reason in refused.stderr, refused


def test_nothing_but_such_a_command_orders_anything(job):
    nodes = job.nodes(2, nnodes="1:2")
    ranks(nodes)
    order = {"Elastic-Run-Order": "1"}
    for path in ("/stop", "/drain?node=1"):
        for method, headers, code in (("GET", order, 405), ("HEAD", order, 405), ("POST", {}, 403),
                                      ("POST", {**order, "Origin": "http://127.0.0.1"}, 403),
                                      ("POST", {**order, "Origin": "null"}, 403), ("OPTIONS", order, 405)):
            assert get(job.port, path, method=method, headers=headers)[0] == code, (method, path)
    assert get(job.port, "/drain", method="POST", headers=order)[0] == 400
    assert get(job.port, "/status", method="POST", headers=order)[0] == 405
    assert only_job(job.port)["nodes"]["in_round"] == 2 and only_job(job.port)["round"] == 0
    end(*nodes)


def test_an_order_in_a_job_with_a_token_proves_it(job, order):
    given = {"ELASTIC_RUN_TOKEN": TOKEN}
    nodes = job.nodes(3, nnodes="1:3", env=given)
    leaver = ranks(nodes)[2][0]
    for env in ({}, {"ELASTIC_RUN_TOKEN": "other"}):
        for arguments in (("--drain=2",), ("--stop",)):
            refused = order(job.port, *arguments, env=env)
            assert refused.returncode == 1 and "does not prove the job's token" in refused.stderr, refused
    accepted = drain(order, job.port, 2, env=given)
    assert accepted.returncode == 0, accepted
    assert leaver.wait().returncode == 1
    secret = job.elastic_run.directory / "token"
    secret.write_text(TOKEN + "\n")
    accepted = stop(order, job.port, f"--rdzv-conf=token_file={secret}")
    assert accepted.returncode == 0 and TOKEN not in accepted.stdout + accepted.stderr, accepted
    for node in nodes[:2] if leaver is nodes[2] else [node for node in nodes if node is not leaver]:
        result = node.wait()
        assert result.returncode == 1 and "stopped by an operator" in result.stderr, result


def test_from_another_host_an_order_needs_the_jobs_token(network, job, order):  # noqa: F811
    own, other = network(2)
    job.host = own.address
    for token in ("", TOKEN):
        env = {"ELASTIC_RUN_TOKEN": token} if token else {}
        node = job.node(nnodes="1:2", env=env, preexec_fn=own.enter)
        environments(node, 1)
        refused = stop(order, job.port, host=own.address, preexec_fn=other.enter)
        reason = "does not prove the job's token" if token else "orders are taken from this host only"
        assert refused.returncode == 1 and reason in refused.stderr, refused
        given = {"preexec_fn": other.enter, "host": own.address, "env": env} if token else {"preexec_fn": own.enter}
        assert stop(order, job.port, **given).returncode == 0
        result = node.wait()
        assert result.returncode == 1 and "stopped by an operator" in result.stderr, result


def test_nodes_that_are_in_no_round_leave_at_once(job, order):
    """Before the first round there are no ranks, and a node that stands by has none."""
    hosts = {}
    first = job.node(nnodes="2:2", conf="scale_up=never")
    first.wait_for_line("this node hosts the coordinator")
    wait_until(lambda: "no job is here" not in drain(order, job.port, 9).stderr, what="the first node to join")
    early = drain(order, job.port, 0)
    assert early.returncode == 1 and "no node has a rank, because there is no round now" in early.stderr, early
    second = job.node("--local-addr=node-b", nnodes="2:2", conf="is_host=0,scale_up=never")
    hosts = ranks([first, second])
    assert set(hosts) == {0, 1}
    third = job.node("--local-addr=node-c", nnodes="2:2", conf="is_host=0,scale_up=never")
    third.wait_for_line("standing by")
    told = drain(order, job.port, "NODE-C")
    assert told.returncode == 0 and told.stdout == "node-c (in no round) leaves: no workers of it run; the job goes on\n"
    left = third.wait()
    assert left.returncode == 1 and "an operator has drained this node" in left.stderr, left
    found = only_job(job.port)
    assert found["round"] == 0 and found["phase"] == "running" and found["nodes"]["in_round"] == 2
    # Below the minimum the rest waits, as after a SIGTERM to that node, and the answer says so.
    told = drain(order, job.port, "node-b")
    assert told.returncode == 0, told
    assert "the other node is fewer than the 2 that --nnodes asks for: the job then waits for more nodes, and fails if " \
        "too few have joined after 600 s" in told.stdout, told
    assert second.wait().returncode == 1
    first.wait_for_line(r"1 node present, 2 needed.* node \d \(node-b\) was drained by an operator", timeout=60)
    told = stop(order, job.port)
    assert told.returncode == 0 and told.stdout == "the job ends: no workers run on its 1 node\n", told
    assert "stopped by an operator" in first.wait().stderr


def test_one_of_several_jobs_is_named_and_its_coordinator_elsewhere_lets_every_node_leave(elastic_run, script, order):
    port = free_port()
    server = elastic_run.start("--coordinator-only", f"--rdzv-endpoint=127.0.0.1:{port}")
    server.wait_for_line("the coordinator listens")
    worker = script("saves.py", SAVES)
    nodes = {}
    for name in ("one", "two"):
        nodes[name] = elastic_run.start("--nnodes=1:2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}",
                                        f"--rdzv-id={name}", "--rdzv-conf=last_call_timeout=1,is_host=0", worker)
        environments(nodes[name], 1)
    for arguments in (("--stop",), ("--drain=0",)):
        refused = order(port, *arguments)
        assert refused.returncode == 1, refused
        assert "the jobs here are one, two; name one with --rdzv-id" in refused.stderr, refused
    assert stop(order, port, "--rdzv-id=one").returncode == 0
    assert "stopped by an operator" in nodes["one"].wait().stderr
    # The node may be gone before the coordinator has seen it.
    wait_until(lambda: len(status(port)["coordinator"]["jobs"]) == 1, what="the first job to be over")
    last = drain(order, port, 0)
    assert last.returncode == 0 and "no other node is in the job, which ends with it" in last.stdout, last
    assert "an operator has drained this node" in nodes["two"].wait().stderr
    wait_until(lambda: status(port)["coordinator"]["jobs"] == [], what="both jobs to have ended")
    assert status(port)["coordinator"]["jobs_ended"]["stopped"] == 2
    nothing = stop(order, port)
    assert nothing.returncode == 1 and "no job is here now" in nothing.stderr, nothing
    server.send_signal(signal.SIGTERM)
    assert server.wait().returncode == 0


def test_a_job_of_one_node_is_stopped_at_its_http_port(elastic_run, script, order):
    node = elastic_run.start("--standalone", "--http-port=0", script("saves.py", SAVES))
    environments(node, 1)
    port = http_port(node)
    refused = drain(order, port, 0)
    assert refused.returncode == 1 and "hosts the job's coordinator" in refused.stderr, refused
    assert stop(order, port).returncode == 0
    result = node.wait()
    assert result.returncode == 1 and "stopped by an operator" in result.stderr, result
    assert (elastic_run.directory / "saved").read_text() == "0\n"


def test_orders_are_events_and_are_replayed(job, elastic_run, order):
    recording, events = elastic_run.directory / "job.record", elastic_run.directory / "events"
    first = job.node(f"--record={recording}", f"--events={events}", nnodes="1:2", conf=ALL_COME)
    first.wait_for_line("this node hosts the coordinator")
    second = job.node(nnodes="1:2")
    ranks([first, second])
    drain(order, job.port, 5)
    drain(order, job.port, 1)
    second.wait()
    environments(first, 1)
    stop(order, job.port)
    first.wait()
    told = [json.loads(line) for line in events.read_text().splitlines()]
    orders = [event for event in told if event["event"] == "operator_order"]
    assert [(each["order"], each["wanted"], each["from"], each["accepted"]) for each in orders] == [
        ("drain", "5", "127.0.0.1", False), ("drain", "1", "127.0.0.1", True), ("stop", None, "127.0.0.1", True)]
    replayed = elastic_run("--replay", recording)
    assert replayed.returncode == 0, replayed
    _, *steps, last = [json.loads(line) for line in replayed.stdout.splitlines()]
    ordered = [step for step in steps if step["event"]["event"] == "operator-order"]
    assert [[step["event"][name] for name in ("kind", "node", "from")] for step in ordered] == [
        ["drain", "5", "127.0.0.1"], ["drain", "1", "127.0.0.1"], ["stop", None, "127.0.0.1"]]
    assert any("has ordered node 5 to leave: refused: no node has rank 5" in text for text in ordered[0]["decided"])
    assert "leave-job" in [sent["message"] for sent in ordered[1]["sent"]], ordered[1]
    verdict = last["verdict"]
    assert [verdict[name] for name in ("outcome", "round", "restarts_used")] == ["stopped", 1, 0], verdict
    assert verdict["reason"].startswith("stopped by an operator"), verdict
