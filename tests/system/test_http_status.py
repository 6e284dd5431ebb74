"""Status and metrics by HTTP, on the coordinator's port and on --http-port, and `elastic-run --status`."""

import json
import os
import re
import signal
import socket
import struct
import time

import pytest

from harness import wait_until
from http_client import get, http_port, metrics, status, value, wait_until_ready
from http_load import Load
from test_many_nodes import WORKER, environments, job  # noqa: F401 (a fixture)
from test_wrong_endpoint import hangs_up, hears, peer, says
from workers import free_port

TOKEN = "kq7-Zebra-0451-horizon"
LEFT_OUT = "Names and texts are left out."


def end(*nodes):
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    return [node.wait() for node in nodes]


def only_job(port, **options):
    [found] = status(port, **options)["coordinator"]["jobs"]
    return found


def test_a_job_of_one_node_serves_its_port_from_the_beginning_to_the_end(elastic_run, script):
    """Its life: not ready while it is prepared and stopped, ready while its workers run."""
    go = elastic_run.directory / "go"
    node = elastic_run.start("--standalone", "--nproc-per-node=2", "--max-restarts=1", "--http-port=0",
                             script("waits.py", f"""
import os, sys, time
os.write(1, f"up {{os.getpid()}}\\n".encode())  # in one piece: the other writes there, too
while not os.path.exists({str(go)!r}):
    time.sleep(0.01)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if os.environ["RANK"] == "1":
        sys.exit(3)
    time.sleep(600)
while not os.path.exists({str(go) + "2"!r}):
    time.sleep(0.01)
"""))
    port = http_port(node)
    pids = node.wait_for_pids(2)
    wait_until_ready(port)
    assert get(port, "/healthz")[:2] == (200, "ok\n")
    assert get(port, "/readyz")[1] == "the workers of round 0 run\n"
    told = status(port)
    assert told["format"] == 1 and told["node"]["state"] == "running" and told["node"]["ready"] is True
    assert sorted(worker["pid"] for worker in told["node"]["workers"]) == sorted(pids)
    [found] = told["coordinator"]["jobs"]
    assert (found["phase"], found["round"], found["world_size"]) == ("running", 0, 2)
    go.touch()
    node.wait_for_pids(2)
    wait_until(lambda: only_job(port)["round"] == 1 and only_job(port)["phase"] == "running", what="round 1 to run")
    again = only_job(port)
    assert again["restarts"]["worker_failure"] == 1 and again["restarts_charged"] == 1
    assert again["lost_work_seconds"]["worker_failure"] > 0
    [failure] = again["failures"]
    assert failure["rank"] == 1 and "exited with code 3" in failure["text"]
    numbers, _ = metrics(port)
    assert value(numbers, "elastic_run_job_restarts_total", cause="worker_failure") == 1
    assert value(numbers, "elastic_run_node_workers_started_total") == 4
    assert value(numbers, "elastic_run_node_workers_failed_total") == 1
    (elastic_run.directory / "go2").touch()
    assert node.wait().returncode == 0


def test_the_coordinators_port_tells_of_the_job_and_every_nodes_own_port_of_the_node(job):
    first = job.node("--http-port=0", nnodes="2:3", conf="scale_up=never")
    own = http_port(first)
    first.wait_for_line("this node hosts the coordinator")
    wait_until(lambda: get(own, "/readyz")[1].startswith("waiting"), what="the first node to wait")
    assert get(own, "/readyz")[0] == 503
    second = job.node("--http-port=0", nnodes="2:3", conf="is_host=0,scale_up=never")
    others = http_port(second)
    for node in (first, second):
        environments(node, 1)
    for port in (own, others):
        wait_until_ready(port)
    told = status(job.port)
    assert [each["run_id"] for each in told["coordinator"]["jobs"]] == ["job"]
    assert status(own)["coordinator"] is not None and status(others)["coordinator"] is None
    found = only_job(job.port)
    assert found["nodes"]["in_round"] == 2 and len(found["members"]) == 2
    assert [member["node_rank"] for member in found["members"]] == [0, 1]
    assert {status(port)["node"]["node_rank"] for port in (own, others)} == {0, 1}

    third = job.node("--http-port=0", nnodes="2:3", conf="is_host=0,scale_up=never")
    standby = http_port(third)
    wait_until(lambda: get(standby, "/readyz")[1].startswith("standby"), what="the third node to stand by")
    assert get(standby, "/readyz")[0] == 503
    wait_until(lambda: only_job(job.port)["nodes"]["standby"] == 1, what="a standby")

    launcher = second.launcher()
    for pid in (second.pid, launcher):
        os.kill(pid, signal.SIGKILL)
    second.wait()
    environments(third, 1)
    wait_until(lambda: only_job(job.port)["phase"] == "running" and only_job(job.port)["round"] == 1, what="round 1")
    found = only_job(job.port)
    assert found["restarts"]["node_lost"] == 1 and found["node_losses"] == 1
    assert found["failures"][0]["cause"] == "node_lost"
    end(third, first)


def status_key(elastic_run):
    made = elastic_run("--status-key", env={"ELASTIC_RUN_TOKEN": TOKEN})
    assert made.returncode == 0, made
    return made.stdout.rstrip("\n")


def test_of_a_job_with_a_token_names_need_its_status_key_and_counts_do_not(job):
    key = status_key(job.elastic_run)
    assert re.fullmatch("[0-9a-f]{64}", key)
    node = job.node("--http-port=0", nnodes="1:2", env={"ELASTIC_RUN_TOKEN": TOKEN})
    own = http_port(node)
    environments(node, 1)
    wait_until_ready(own)
    for port in (own, job.port):
        for path in ("/status", "/metrics"):
            for token in ("", key[:-1], key + "0", key.upper(), TOKEN):
                code, text, headers = get(port, path, token=token)
                assert code == 401 and headers["WWW-Authenticate"].startswith("Bearer"), (path, token)
                assert "Authorization: Bearer" in text and TOKEN not in text and key not in text
            assert get(port, path, token=key)[0] == get(port, path)[0] == 200
        assert status(port)["counts_only"] is True and status(port)["node"]["name"] == ""
        assert status(port, token=key)["counts_only"] is False and status(port, token=key)["node"]["name"] != ""
        assert get(port, "/healthz")[0] == get(port, "/readyz")[0] == 200
    run = job.elastic_run
    without = run("--status", f"127.0.0.1:{job.port}")
    assert without.returncode == 0 and "job job: running" in without.stdout and LEFT_OUT in without.stdout, without
    assert socket.gethostname() not in without.stdout
    wrong = run("--status", f"127.0.0.1:{job.port}", env={"ELASTIC_RUN_TOKEN": "other"})
    assert wrong.returncode == 1 and "another token" in wrong.stderr
    shown = run("--status", f"127.0.0.1:{job.port}", env={"ELASTIC_RUN_TOKEN": TOKEN}).stdout
    assert "job job: running" in shown and socket.gethostname() in shown and LEFT_OUT not in shown
    [result] = end(node)
    assert TOKEN not in result.stderr


def test_a_job_of_one_node_guards_its_port_by_the_token_too(elastic_run, script):
    node = elastic_run.start("--standalone", "--http-port=0", script("worker.py", WORKER),
                             env={"ELASTIC_RUN_TOKEN": TOKEN})
    port = http_port(node)
    assert get(port, "/status", token=TOKEN)[0] == 401
    assert status(port)["counts_only"] is True
    assert status(port, token=status_key(elastic_run))["counts_only"] is False
    end(node)


def test_a_status_key_is_made_where_there_is_a_token_alone(elastic_run, tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n")
    by_file = elastic_run("--status-key", f"--rdzv-conf=token_file={tmp_path / 'token'}")
    assert by_file.stdout == status_key(elastic_run) + "\n" and by_file.stderr == ""
    without = elastic_run("--status-key")
    assert without.returncode == 2 and "there is no token" in without.stderr and without.stdout == ""


@pytest.fixture
def alone(elastic_run):
    """The port of a coordinator that serves nobody."""
    port = free_port()
    coordinator = elastic_run.start("--coordinator-only", f"--rdzv-endpoint=127.0.0.1:{port}")
    coordinator.wait_for_line("the coordinator listens")
    yield port
    [result] = end(coordinator)
    assert result.returncode == 0 and "HTTP" not in result.stderr, "no request is worth a line of the log"


def exchange(port, sent):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(sent)
        got = b""
        while piece := connection.recv(65536):
            got += piece
    return got


@pytest.mark.parametrize("sent, code, word", [
    (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 404, b"/healthz, /readyz, /status and /metrics"),
    (b"GET /statuses HTTP/1.1\r\nConnection: close\r\n\r\n", 404, b"not found"),
    (b"PUT /status HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi", 405, b"use GET or HEAD"),
    (b"POST /stop HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi", 400, b"send no body"),
    (b"GET /status HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi", 400, b"send no body"),
    (b"GET /" + b"x" * 3000 + b" HTTP/1.1\r\n\r\n", 414, b"longer than 2048 bytes"),
    (b"GET / HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n", 431, b"longer than 8192 bytes"),
    (b"GET / HTTP/x.1\r\n\r\n", 400, b"not an HTTP request"),
])
def test_what_cannot_be_served_is_answered_in_words_and_closed(alone, sent, code, word):
    got = exchange(alone, sent)
    assert got.startswith(b"HTTP/1.1 %d " % code) and word in got, got
    assert got.count(b"HTTP/1.1 ") == 1 and got.endswith(b"\n")


def test_a_request_may_come_in_pieces_and_a_connection_may_be_used_again(alone):
    with socket.create_connection(("127.0.0.1", alone), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n":
            connection.sendall(bytes([byte]))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(65536)
        assert b"Content-Length: 3\r\n" in head  # and no body
        connection.sendall(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
        rest = b""
        while piece := connection.recv(65536):
            rest += piece
        assert rest.endswith(b"\r\n\r\nok\n")


def test_a_coordinator_alone_is_ready_and_says_that_nobody_is_there(alone, elastic_run):
    assert get(alone, "/readyz")[:2] == (200, "the coordinator listens\n")
    assert status(alone)["node"] is None and status(alone)["coordinator"]["jobs"] == []
    assert "no jobs" in elastic_run("--status", f"127.0.0.1:{alone}").stdout


def test_a_connection_that_breaks_while_answers_wait_is_gone_and_nothing_else(alone):
    """Who asks much at once, reads nothing and resets, at whatever moment."""
    asked = b"GET /metrics HTTP/1.1\r\n\r\n" * 600 + b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n"
    for step in range(40):
        with socket.socket() as rude:
            rude.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            rude.connect(("127.0.0.1", alone))
            rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            rude.sendall(asked)
            rude.recv(1 + 200 * step)  # so far they have got
    assert get(alone, "/healthz")[0] == 200


def test_who_says_no_more_still_hears_the_answers(alone):
    with socket.create_connection(("127.0.0.1", alone), timeout=60) as peer_:
        peer_.sendall(b"GET /metrics HTTP/1.1\r\n\r\n" * 300)
        peer_.shutdown(socket.SHUT_WR)
        heard = b""
        while piece := peer_.recv(1 << 16):
            heard += piece
    assert heard.count(b"HTTP/1.1 200 ") == 300


def test_who_reads_slowly_hears_all_answers(alone):
    with socket.socket() as peer_:
        peer_.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        peer_.settimeout(60)
        peer_.connect(("127.0.0.1", alone))
        peer_.sendall(b"GET /metrics HTTP/1.1\r\n\r\n" * 999 + b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n")
        heard = bytearray()
        slow_until = time.monotonic() + 3  # longer than a connection without more to say is kept
        while piece := peer_.recv(1 << 14):
            heard += piece
            if time.monotonic() < slow_until:
                time.sleep(0.05)
    assert heard.count(b"HTTP/1.1 200 ") == 1000


def test_a_silent_connection_is_closed(alone):
    """So that nobody can have all of them: 10 s after its last request."""
    with socket.create_connection(("127.0.0.1", alone), timeout=60) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n\r\nGET /half")
        got = b""
        while piece := connection.recv(65536):
            got += piece
    assert got.count(b"HTTP/1.1 200") == 1


def test_the_page_of_status_names_nodes_rounds_restarts_and_failures(job, script):
    fails = script("fails.py", WORKER.replace("time.sleep(600)", """
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "1":
    while not os.path.exists("rank_0_is_up"):
        time.sleep(0.01)
    sys.exit(7)
open("rank_0_is_up", "w").close()
time.sleep(600)"""))
    nodes = job.nodes(2, "--max-restarts=1", script=fails)
    for node in nodes:
        environments(node, 2)
    run = job.elastic_run
    wait_until(lambda: only_job(job.port)["phase"] == "running", what="round 1 to run")
    page = run("--status", f"127.0.0.1:{job.port}")
    assert page.returncode == 0 and page.stderr == "", page
    for part in ("job job: running for", "round     1, world size 2, because rank 1", "2 in round; wanted: 2",
                 "restarts  1 (1 worker failure); 1 of 1 charged", " % in a round (imports and hangs count): ", "hosts the coordinator",
                 "last failures:", "exited with code 7"):
        assert part in page.stdout, (part, page.stdout)
    raw = run("--status", f"localhost:{job.port}", "--log-format=json", "--rdzv-id=job")
    assert json.loads(raw.stdout)["coordinator"]["jobs"][0]["run_id"] == "job"
    other = run("--status", f"127.0.0.1:{job.port}", "--rdzv-id=other")
    assert other.returncode == 1 and "no job of that name" in other.stderr
    end(*reversed(nodes))


def test_watching_writes_a_line_each_time_where_there_is_no_terminal(job):
    node = job.node(nnodes="1:2")
    environments(node, 1)
    watch = job.elastic_run.start("--status", f"127.0.0.1:{job.port}", "--watch")
    for _ in range(2):
        watch.wait_for_line("job job: running, round 0; nodes: 1 in round", stream="stdout")
    end(node)
    watch.wait_for_line("Connection refused")  # and it tries again
    [result] = end(watch)
    assert result.returncode == 0


def test_watching_on_a_terminal_draws_the_page_anew(job):
    node = job.node(nnodes="1:2")
    environments(node, 1)
    ours, theirs = os.openpty()
    watch = job.elastic_run.start("--status", f"127.0.0.1:{job.port}", "--watch", stdout=theirs)
    os.close(theirs)
    drawn = b""
    while drawn.count(b"\x1b[H\x1b[J") < 2:
        drawn += os.read(ours, 65536)
    watch.send_signal(signal.SIGINT)
    assert watch.wait().returncode == 0
    os.close(ours)
    assert b"job job: running" in drawn and b"press Ctrl-C to quit" in drawn
    end(node)


def test_an_endpoint_that_cannot_tell_is_named_with_the_reason(elastic_run):
    port = free_port()
    for endpoint, word in ((f"127.0.0.1:{port}", "Connection refused"), ("no-such-host.invalid:1", "no such name")):
        result = elastic_run("--status", endpoint)
        assert result.returncode == 1 and result.stdout == "", result
        assert f"--status={endpoint}" in result.stderr and word in result.stderr, result
    for behave, word in ((says(b"SSH-2.0-OpenSSH_9.2\r\n", after_a_word=False), "SSH"),
                         (says(b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 2\r\n\r\nhi", after_a_word=True),
                          "calls itself nginx"),
                         (says(b"HTTP/1.1 200 OK\r\nServer: elastic-run\r\nContent-Length: 2\r\n\r\nhi", after_a_word=True),
                          "its status"),
                         (hangs_up, "closed the connection"),
                         (hears, "did not answer within 10 s")):
        with peer(behave) as there:
            result = elastic_run("--status", f"127.0.0.1:{there}")
            assert result.returncode == 1 and word in result.stderr, result


@pytest.mark.parametrize("arguments, word", [
    (["--status", "host:99999"], "99999"),
    (["--status", "host:0"], "nothing can listen on port 0"),
    (["--status", "host:1", "--nnodes=2"], "--status starts no job"),
    (["--status", "host:1", "train.py"], "--status starts no script"),
    (["--watch", "train.py"], "--status"),
    (["--http-port=70000", "train.py"], "from 0 to 65535"),
    (["--http-port=x", "train.py"], "not a whole number"),
])
def test_a_command_line_that_makes_no_sense_ends_with_status_2(elastic_run, arguments, word):
    result = elastic_run(*arguments)
    assert result.returncode == 2 and word in result.stderr, result


def test_a_port_that_is_taken_ends_it_before_a_worker_starts(elastic_run, script, tmp_path):
    (tmp_path / "temporary").mkdir()
    with socket.create_server(("", free_port()), family=socket.AF_INET6, dualstack_ipv6=True) as taken:
        port = taken.getsockname()[1]
        result = elastic_run("--standalone", f"--http-port={port}", script("worker.py", WORKER), "0",
                             env={"TMPDIR": str(tmp_path / "temporary")})
    assert result.returncode == 2 and result.stdout == "", result
    assert list((tmp_path / "temporary").iterdir()) == [], "what was made for the run is gone"
    assert f"port {port}" in result.stderr and f"process {os.getpid()}" in result.stderr
    assert "--http-port" in result.stderr


def test_a_thousand_requests_a_second_keep_no_round_from_forming_and_restarting(job, script, capsys):
    again = script("again.py", WORKER.replace("time.sleep(600)", """
count = os.environ["TORCHELASTIC_RESTART_COUNT"]
if os.environ["RANK"] == "1" and count != "5":
    while not os.path.exists("up" + count):
        time.sleep(0.001)
    sys.exit(3)
open("up" + count, "w").close()
while not os.path.exists("done"):
    time.sleep(0.01)"""))
    first = job.node("--max-restarts=5", script=again, nnodes="2")
    first.wait_for_line("this node hosts the coordinator")
    load = Load(job.port, ["/metrics", "/status"], 600)
    try:
        wait_until(lambda: min(load.answers.values()) > 300, what="the load to be there")
        second = job.node("--max-restarts=5", script=again, nnodes="2", conf="is_host=0")
        found = [environments(node, 6) for node in (first, second)]
        assert [[each["TORCHELASTIC_RESTART_COUNT"] for each in one] for one in found] == [list("012345")] * 2
        before = dict(load.answers)
        wait_until(lambda: all(load.answers[path] > before[path] for path in before), what="the load to go on")
    finally:
        per_second = load.stop()
    assert load.ended == {}
    (job.elastic_run.directory / "done").touch()
    assert [node.wait().returncode for node in (second, first)] == [0, 0]
    with capsys.disabled():
        print(f"\n{per_second:.0f} requests a second were answered while a job of two nodes formed and restarted 5 times")
