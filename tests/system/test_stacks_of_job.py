"""--stacks=HOST:PORT: what all workers of a job are doing, over all its nodes."""
# ctest: long
# ctest: nodes

import json
import os
import re
import signal
import sys
import threading

import pytest
from http_client import get, http_port
from networks import network  # noqa: F401 (a fixture)
from test_failover import CONF
from test_many_nodes import job  # noqa: F401 (a fixture)
from test_stacks import FUTEX, wait_for_call
from workers import free_port

TOKEN = "kq7-Zebra-0451-horizon"
# Rank 1 loads for ever, the others wait for it for ever. It says who it is from where it stays.
SCRIPT = """\
import os, threading

def up():
    os.write(1, b"up %d\\n" % os.getpid())

def load():
    up(), threading.Event().wait()

def wait():
    up(), threading.Event().wait()

load() if os.environ["RANK"] == "1" else wait()
"""


@pytest.fixture
def train(script):
    return script("train.py", SCRIPT)


def wait_for_workers(node, count):
    """Until they are where they stay."""
    for pid in node.wait_for_pids(count):
        wait_for_call(pid, FUTEX)


@pytest.fixture
def begin(job, train):
    """begin(count, ...): so many nodes of a job whose workers are in SCRIPT, of which the first has the coordinator."""
    def start(count, *arguments, nproc=1, **options):
        options.setdefault("nnodes", str(count))
        nodes = job.nodes(count, *arguments, script=train, nproc=nproc, **options)
        for node in nodes:
            wait_for_workers(node, nproc)
        return nodes
    return start


@pytest.fixture
def stacks(elastic_run):
    """stacks(port): the document of --stacks, as a value."""
    def ask(port, *arguments, status=0, host="127.0.0.1", **options):
        result = elastic_run(f"--stacks={host}:{port}", "--log-format=json", *arguments, **options)
        assert result.returncode == status, result
        return json.loads(result.stdout)
    return ask


def of_workers(document):
    """{the function of SCRIPT that they are in: their ranks}, the odd one first."""
    found = {}
    for group in document["groups"]:
        if group["of"] != "worker":
            continue
        functions = [frame["function"] for frame in group["frames"]]
        found[functions[-2] if len(functions) > 1 else group["problem"]] = [member["rank"] for member in group["members"]]
    return found


def problems(document):
    return {node["name"]: node["problem"] for node in document["nodes"] if node["problem"]}


def end(*nodes):
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    return [node.wait() for node in nodes]


def test_the_stacks_of_all_nodes_are_grouped_and_the_odd_one_is_the_first(begin, job, stacks, elastic_run):
    nodes = begin(3, nproc=2)
    document = stacks(job.port)
    assert list(of_workers(document).items()) == [("load", [1]), ("wait", [0, 2, 3, 4, 5])]
    assert document["run_id"] == "job"
    assert len(document["nodes"]) == 3 and not problems(document)
    # All nodes are on this host, and yet each member says on which one it is.
    names = [node["name"] for node in document["nodes"]]
    assert [re.search(r"\(node (\d)\)$", name).group(1) for name in names] == ["0", "1", "2"]
    members = {member["rank"]: member for group in document["groups"] if group["of"] == "worker"
               for member in group["members"]}
    assert [members[rank]["node"] for rank in range(6)] == [name for name in names for _ in range(2)]
    page = elastic_run(f"--stacks=localhost:{job.port}")
    assert page.returncode == 0, page
    assert page.stdout.startswith("job job: 6 workers on 3 nodes, 2 different stacks, the rarest first\n\nrank 1 (process ")
    assert page.stdout.index("    load  ") < page.stdout.index("ranks 0, 2-5 (")
    assert [result.returncode for result in end(*nodes)] == [1, 1, 1]


def test_any_nodes_door_leads_to_the_coordinator(begin, job, stacks, elastic_run):
    nodes = begin(2, "--http-port=0", nnodes="1:2", conf=CONF)
    members = json.loads(get(job.port, "/status")[1])["coordinator"]["jobs"][0]["members"]
    doors = [int(member["door"].rsplit(":", 1)[1]) for member in members]
    assert len(set(doors)) == 2
    for door in doors:
        assert of_workers(stacks(door)) == {"load": [1], "wait": [0]}
    # The port of the node with the coordinator answers, too; another node's says where that is.
    own = re.search(r"served on port (\d+)", nodes[0].stderr.text).group(1)
    assert of_workers(stacks(own)) == {"load": [1], "wait": [0]}
    refused = elastic_run(f"--stacks=127.0.0.1:{http_port(nodes[1])}")
    assert refused.returncode == 1 and refused.stdout == "", refused
    assert f"name its endpoint with --stacks (this node looks for it at 127.0.0.1:{job.port})" in refused.stderr, refused
    end(*nodes)


def test_a_job_of_one_node_tells_its_stacks_at_its_http_port(elastic_run, train, stacks):
    node = elastic_run.start("--standalone", "--nproc-per-node=2", "--http-port=0", train)
    wait_for_workers(node, 2)
    document = stacks(http_port(node))
    assert of_workers(document) == {"load": [1], "wait": [0]}
    assert len(document["nodes"]) == 1
    end(node)


def test_a_node_that_does_not_answer_is_named_and_the_others_are_told(begin, job, stacks):
    nodes = begin(3, conf="loss_timeout=60")
    stopped = nodes[1]
    launcher = stopped.launcher()
    rank_of = re.search(r"this is node (\d)", stopped.stderr.text).group(1)
    os.kill(launcher, signal.SIGSTOP)
    document = stacks(job.port, timeout=60)
    [(name, problem)] = problems(document).items()
    assert name.endswith(f"(node {rank_of})") and problem == "it did not answer within 15 s"
    told = sorted(rank for ranks in of_workers(document).values() for rank in ranks)
    assert told == sorted({0, 1, 2} - {int(rank_of)})
    os.kill(launcher, signal.SIGCONT)
    # It goes on as if nothing had been, and answers the next time.
    assert not problems(stacks(job.port))
    end(*nodes)


def test_who_asks_at_the_same_time_gets_the_same_answer_and_the_next_one_waits(begin, job, elastic_run):
    nodes = begin(2)
    answers = []

    def ask():
        answers.append(elastic_run(f"--stacks=127.0.0.1:{job.port}", "--log-format=json"))

    asking = [threading.Thread(target=ask) for _ in range(4)]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert [answer.returncode for answer in answers] == [0] * 4, answers
    # Two collections at most: one for who came first, and one for who came after it was over.
    log = nodes[0].stderr.text
    assert 1 <= log.count("the stacks of the workers were collected: 2 of 2 nodes told theirs") <= 2, log
    # Nothing else waits while somebody does.
    assert get(job.port, "/healthz")[:2] == (200, "ok\n")
    end(*nodes)


def test_stacks_of_a_job_with_a_token_need_it(begin, job, elastic_run, stacks):
    given = {"ELASTIC_RUN_TOKEN": TOKEN}
    nodes = begin(2, env=given)
    for env in ({}, {"ELASTIC_RUN_TOKEN": "other"}):
        refused = elastic_run(f"--stacks=127.0.0.1:{job.port}", env=env)
        assert refused.returncode == 1 and refused.stdout == "", refused
        assert "does not prove the job's token" in refused.stderr, refused
    assert of_workers(stacks(job.port, env=given)) == {"load": [1], "wait": [0]}
    secret = job.elastic_run.directory / "token"
    secret.write_text(TOKEN + "\n")
    assert of_workers(stacks(job.port, f"--rdzv-conf=token_file={secret}")) == {"load": [1], "wait": [0]}
    end(*nodes)


def test_from_another_host_stacks_need_the_jobs_token(network, job, train, elastic_run, stacks):  # noqa: F811
    own, other = network(2)
    job.host = own.address
    for token in ("", TOKEN):
        env = {"ELASTIC_RUN_TOKEN": token} if token else {}
        node = job.node(nnodes="1:2", script=train, env=env, preexec_fn=own.enter)
        wait_for_workers(node, 1)
        refused = elastic_run(f"--stacks={own.address}:{job.port}", preexec_fn=other.enter)
        reason = "does not prove the job's token" if token else "orders are taken from this host only"
        assert refused.returncode == 1 and reason in refused.stderr, refused
        given = {"preexec_fn": other.enter, "host": own.address, "env": env} if token else {"preexec_fn": own.enter}
        assert of_workers(stacks(job.port, **given)) == {"wait": [0]}
        end(node)


def test_nothing_but_such_a_question_gets_stacks(begin, job):
    nodes = begin(2)
    order = {"Elastic-Run-Order": "1"}
    for method, headers, code in (("GET", order, 405), ("HEAD", order, 405), ("POST", {}, 403),
                                  ("POST", {**order, "Origin": "http://127.0.0.1"}, 403)):
        assert get(job.port, "/stacks", method=method, headers=headers)[0] == code, (method, headers)
    assert get(job.port, "/stacks?job=other", method="POST", headers=order)[0] == 404
    code, text, headers = get(job.port, "/stacks", method="POST", headers=order)
    assert code == 200 and headers["Content-Type"] == "application/json"
    assert json.loads(text)["elastic_run_stacks"] == 1
    end(*nodes)


def test_one_of_several_jobs_is_named_and_one_without_workers_says_so(elastic_run, train, stacks):
    port = free_port()
    server = elastic_run.start("--coordinator-only", f"--rdzv-endpoint=127.0.0.1:{port}")
    server.wait_for_line("the coordinator listens")
    nodes = {}
    for name, least in (("one", 1), ("two", 2)):
        nodes[name] = elastic_run.start(f"--nnodes={least}:2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}",
                                        f"--rdzv-id={name}", "--rdzv-conf=last_call_timeout=1,is_host=0", train)
    wait_for_workers(nodes["one"], 1)
    refused = elastic_run(f"--stacks=127.0.0.1:{port}")
    assert refused.returncode == 1 and "the jobs here are one, two; name one with --rdzv-id" in refused.stderr, refused
    assert of_workers(stacks(port, "--rdzv-id=one")) == {"wait": [0]}
    waits = stacks(port, "--rdzv-id=two", status=1)
    assert waits["groups"] == [] and list(problems(waits).values()) == ["it has no workers now"]
    end(*nodes.values(), server)


def test_a_wrong_place_and_a_place_where_nothing_is_are_refused(elastic_run):
    for wrong, reason in {":29400": "the empty host is neither a name nor an IP address",
                          "host0:x": "the port x is not a number", "host0:0": "nothing can listen on port 0"}.items():
        refused = elastic_run(f"--stacks={wrong}")
        assert refused.returncode == 2 and reason in refused.stderr, refused
    port = free_port()
    refused = elastic_run(f"--stacks=127.0.0.1:{port}")
    assert refused.returncode == 1 and "connection refused" in refused.stderr.lower(), refused
    assert f"--stacks=127.0.0.1:{port}" in refused.stderr, refused
    other = elastic_run.start("-c", "import http.server; s = http.server.HTTPServer(('127.0.0.1', 0), "
                              "http.server.BaseHTTPRequestHandler); print(f'port {s.server_port}', flush=True); "
                              "s.serve_forever()", program=[sys.executable])
    port = other.wait_for_line(r"port (\d+)", stream="stdout").group(1)
    refused = elastic_run(f"--stacks=127.0.0.1:{port}")
    assert refused.returncode == 1 and "it is not elastic-run" in refused.stderr, refused
    other.send_signal(signal.SIGKILL)
    other.wait()
