"""Where the coordinator is asked for after it has moved to another node: /status, orders and recordings follow it."""
# ctest: long
# ctest: clock
# ctest: nodes

import json
import re
import signal

import pytest

from harness import wait_until
from http_client import get, wait_until_ready
from networks import network  # noqa: F401 (a fixture)
from test_failover import CONF, IN_ORDER, begin, end, host_of, kill_all, next_round
from test_many_nodes import environments, job  # noqa: F401 (a fixture)

TOKEN = "kq7-Zebra-0451-horizon"


def asked(elastic_run, where, *arguments, **options):
    """elastic-run --status=WHERE, as JSON."""
    result = elastic_run(f"--status={where}", "--log-format=json", *arguments, **options)
    assert result.returncode == 0, result
    return json.loads(result.stdout)


def doors(document):
    """{name of a node: (address, port) of its door}"""
    [found] = document["coordinator"]["jobs"]
    return {each["name"]: tuple(each["door"].rsplit(":", 1)) for each in found["members"]}


def runs(document, number):
    """Whether it says that the round of this number runs; a page may be some time old."""
    [found] = document["coordinator"]["jobs"]
    return (found["round"], found["phase"]) == (number, "running")


def led_to(port, path, **options):
    """Where a port of this host leads a request."""
    code, text, headers = get(port, path, **options)
    assert code == 307, (code, text)
    return headers["Location"]


def test_every_door_leads_to_the_coordinator_and_answers_for_its_own_node(job):
    nodes = job.nodes(3, nnodes="2:3", conf=CONF)
    for node in nodes:
        environments(node, 1)
    code, text, _ = get(job.port, "/status")
    assert code == 200
    members = json.loads(text)["coordinator"]["jobs"][0]["members"]
    ports = {each["hosts_coordinator"]: [] for each in members}
    for each in members:
        ports[each["hosts_coordinator"]].append(int(each["door"].rsplit(":", 1)[1]))
    assert ports[True] == [job.port] and len(ports[False]) == 2
    for door in ports[False]:
        wait_until_ready(door)
        for path in ("/status", "/metrics", "/status?job=job", "/metrics?a=b%20c"):
            assert led_to(door, path) == f"http://127.0.0.1:{job.port}{path}"
        assert led_to(door, "/status", method="HEAD") == f"http://127.0.0.1:{job.port}/status"
        assert get(door, "/readyz")[:2] == (200, "the workers of round 0 run\n")
        assert get(door, "/healthz")[0] == 200
        # That job is not led anywhere: nothing is known of it.
        code, text, _ = get(door, "/status?job=other")
        assert code == 200 and json.loads(text)["coordinator"] is None
        assert json.loads(text)["node"]["coordinator_at"] == f"127.0.0.1:{job.port}"
        order = {"Elastic-Run-Order": "1"}
        assert led_to(door, "/drain?node=2", method="POST", headers=order).endswith(f":{job.port}/drain?node=2")
    end(nodes)


def test_the_status_is_found_at_any_node_after_the_coordinators_node_was_killed(network, job, elastic_run):  # noqa: F811
    hosts = network(3)
    nodes = begin(job, hosts)
    # Names and addresses are for clients of the coordinator's own host, as the job has no token.
    near, far = {"preexec_fn": hosts[0].enter}, {"preexec_fn": hosts[1].enter}
    places = doors(asked(elastic_run, f"127.0.0.1:{job.port}", **near))
    assert places["node0"] == (hosts[0].address, str(job.port))
    assert {name: place[0] for name, place in places.items()} == {host.name: host.address for host in hosts}
    assert set(doors(asked(elastic_run, f"{job.host}:{job.port}", **far))) == {""}
    watching = elastic_run.start(f"--status=127.0.0.1:{job.port}", "--watch", **near)
    watching.wait_for_line("round 0", stream="stdout")
    kill_all(nodes[0])
    next_round(nodes[1:])
    for name in ("node1", "node2"):
        wait_until(lambda: runs(asked(elastic_run, ":".join(places[name]), **far), 1), what="the status of round 1")
        found = asked(elastic_run, ":".join(places[name]), **far)
        [of_job] = found["coordinator"]["jobs"]
        assert of_job["round"] == 1 and of_job["node_losses"] == 1 and found["node"]["hosts_coordinator"]
        page = elastic_run("--status=" + ":".join(places[name]), **far)
        assert re.search(r"job job: running.*hosts the coordinator", page.stdout, re.DOTALL), page
    # It was told of the doors while the first coordinator lived.
    watching.wait_for_line("round 1", stream="stdout")
    watching.send_signal(signal.SIGINT)
    assert watching.wait().returncode == 0
    end(nodes[1:])


# Ends only when it may.
STAYS = """
import json, os, signal, time
def stay(*_):
    while not os.path.exists("may_end"):
        time.sleep(0.01)
    os._exit(0)
if "STAYS" in os.environ:
    signal.signal(signal.SIGTERM, stay)
os.write(1, f"env {json.dumps({name: os.environ[name] for name in ['GROUP_RANK', 'WORLD_SIZE']})}\\n".encode())
time.sleep(600)
"""


def test_the_endpoint_leads_to_the_coordinator_that_its_host_has_handed_over(job, script, elastic_run):
    options = {"nnodes": "2:3", "script": script("stays.py", STAYS), "conf": IN_ORDER + ",last_call_timeout=60"}
    nodes = [job.node(env={"STAYS": "1"}, **options)]
    nodes[0].wait_for_line("this node hosts the coordinator")
    nodes += [job.node(**options) for _ in range(2)]
    name = [environments(node, 1)[0] for node in nodes][0]["GROUP_RANK"]
    nodes[0].send_signal(signal.SIGTERM)
    nodes[0].wait_for_line("hands over to another node")
    # Until the new one is elected the endpoint, or the candidate to which it leads, says so.
    wait_until(lambda: get(job.port, "/status")[0] == 307 and
               elastic_run(f"--status=127.0.0.1:{job.port}").returncode == 0, what="the new coordinator")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/status", led_to(job.port, "/status"))
    moved = asked(elastic_run, f"127.0.0.1:{job.port}")
    assert moved["coordinator"]["jobs"][0]["round"] == 0 and moved["node"]["hosts_coordinator"]
    # It is elected perhaps before the node that leaves has come to it.
    wait_until(lambda: any("received SIGTERM and leaves" in node.stderr.text for node in nodes[1:]), what="it to hear who leaves")
    told = elastic_run(f"--drain={name}", f"--status=127.0.0.1:{job.port}")
    assert told.returncode == 0 and "is leaving already" in told.stdout, told
    (elastic_run.directory / "may_end").touch()
    assert "stopped by SIGTERM" in nodes[0].wait().stderr
    assert {each["WORLD_SIZE"] for each in next_round(nodes[1:])} == {"2"}
    end(nodes[1:])


def test_an_order_at_a_door_needs_the_token_to_reach_a_coordinator_on_another_host(network, job, elastic_run):  # noqa: F811
    hosts = network(2)
    nodes = begin(job, hosts, nnodes="2:2")
    there = {"preexec_fn": hosts[1].enter}
    place = doors(asked(elastic_run, f"127.0.0.1:{job.port}", preexec_fn=hosts[0].enter))["node1"]
    refused = elastic_run("--stop", f"--status=127.0.0.1:{place[1]}", **there)
    assert refused.returncode == 1, refused
    assert re.search(rf"the job's coordinator is at {hosts[0].address}:{job.port} now.*run the command there with "
                     rf"--status=127\.0\.0\.1:{job.port}, or give the job a token", refused.stderr), refused
    assert "orders are taken from this host only" in elastic_run("--stop", f"--status={':'.join(place)}", **there).stderr
    end(nodes)


def test_with_the_token_status_and_orders_follow_from_any_door_and_without_it_nothing_leads(
        network, job, elastic_run):  # noqa: F811
    hosts = network(3)
    env = {"ELASTIC_RUN_TOKEN": TOKEN}
    nodes = begin(job, hosts, env=env)
    there = {"preexec_fn": hosts[1].enter}
    place = ":".join(doors(asked(elastic_run, f"{job.host}:{job.port}", env=env, **there))["node2"])
    kill_all(nodes[0])
    found = next_round(nodes[1:])
    wait_until(lambda: runs(asked(elastic_run, place, env=env, **there), 1), what="the status of round 1")
    stranger = asked(elastic_run, place, **there)
    if host_of(nodes[1:], found) is nodes[2]:
        assert stranger["counts_only"] and stranger["coordinator"]["jobs"][0]["members"][0]["door"] == ""
    else:
        assert stranger["coordinator"] is None and stranger["node"]["coordinator_at"] == ""
    refused = elastic_run("--stop", f"--status={place}", **there)
    assert refused.returncode == 1 and "does not prove the job's token" in refused.stderr, refused
    told = elastic_run("--stop", f"--status={place}", env=env, **there)
    assert told.returncode == 0 and "the job stops" in told.stdout, told
    for node in nodes[1:]:
        assert "stopped by an operator" in node.wait().stderr


def test_each_coordinator_of_the_job_is_in_the_recording_of_its_node_and_is_replayed(network, job, elastic_run):  # noqa: F811
    hosts = network(3)
    hosts[2].refuse_new_connections()  # so that it is no candidate, and node 1 stands alone
    files = {host.name: elastic_run.directory / f"{host.name}.jsonl" for host in hosts}
    nodes = begin(job, hosts, conf=IN_ORDER, arguments=lambda host: [f"--record={files[host.name]}"])
    nodes[0].send_signal(signal.SIGTERM)
    nodes[0].wait()
    found = next_round(nodes[1:])
    [number] = {int(each["ELASTIC_RUN_FENCE"].rpartition("-")[2]) for each in found}  # 1, or more if a node was slow
    end(nodes[1:])
    old = elastic_run("--replay", files["node0"])
    assert old.returncode == 0, old
    *steps, last = [json.loads(line) for line in old.stdout.splitlines()]
    decided = [text for step in steps[1:] for text in step["decided"]]
    assert any("hands over to another node: node 0 (node0) received SIGTERM" in text for text in decided), decided
    assert (last["end"], last["verdict"]) == ("taken-over", None), last
    taken = elastic_run("--replay", files["node1"])
    assert taken.returncode == 0, taken
    first, *steps, last = [json.loads(line) for line in taken.stdout.splitlines()]
    assert (first["job"], first["birth"]["term"]) == ("job", 1), first
    assert [last["verdict"][name] for name in ("outcome", "round")] == ["stopped", number], last
    # It stands, is promised support, is elected, and forms the next round.
    [formed] = [i for i, step in enumerate(steps) for text in step["decided"]
                if text.startswith(f"round {number} has formed with 2 nodes")]
    assert "promise" in [step["event"]["event"] for step in steps[:formed + 1]], taken
    assert files["node2"].read_text() == ""
