"""Nodes that meet by a file: any of them hosts the coordinator, and another takes it over."""
# ctest: long
# ctest: gate-cases
# ctest: clock
# ctest: nodes

import json
import os
import pathlib
import re
import signal
import socket
import socketserver
import tempfile
import threading

import pytest

from harness import alive, wait_until
from networks import network  # noqa: F401 (a fixture)
from test_many_nodes import ALL_COME, WORKER, environments, until_size
from workers import free_port

# What else a claim says that its holder renews; and how long it is good from when it was seen to be renewed, in ms.
RENEWED = {"renewals": 7, "loss_timeout_ms": 1000, "term": 1}
GOOD_FOR = 706
HOSTS = r"this node hosts the coordinator at (\S+):(\d+), in"


class FileMeeting:
    """A file in a directory that all nodes share."""

    def __init__(self, place):
        (place / "shared").mkdir()
        self.path = place / "shared" / "meeting"
        self.endpoint = str(self.path)

    def claim(self, job="job"):
        if not self.path.exists():
            return None
        return json.loads(self.path.read_text())["jobs"].get(job)

    def put(self, port, agent="gone", job="job"):
        claim = {"address": "127.0.0.1", "port": port, "agent": agent} | RENEWED
        self.path.write_text(json.dumps({"version": 3, "jobs": {job: claim}}))

    def until_renewed(self):
        """Until the claim has been renewed and its holder writes no more: who is killed then leaves no lock."""
        before = self.claim()["renewals"]
        wait_until(lambda: self.claim()["renewals"] != before and os.listdir(self.path.parent) == [self.path.name],
                   what="the claim to be renewed")

    def is_clean(self):
        return os.listdir(self.path.parent) == []


@pytest.fixture
def in_memory(tmp_path):
    """A directory in memory: each renewal of a claim is synchronized with the disk, which other work may keep busy for
    longer than a claim is good."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as place:
        yield pathlib.Path(place)


@pytest.fixture
def meeting(in_memory):
    return FileMeeting(in_memory)


@pytest.fixture
def node(elastic_run, script):
    """node(meeting): starts a node of the job that meets there."""
    worker = script("worker.py", WORKER)

    def start(meeting, *arguments, nnodes="2", conf="", job="job", script_arguments=(), level="info", **popen):
        settings = ",".join(filter(None, ["store_type=file", "last_call_timeout=1", conf]))
        return elastic_run.start(
            f"--nnodes={nnodes}", "--nproc-per-node=1", "--rdzv-backend=c10d", f"--rdzv-endpoint={meeting.endpoint}",
            f"--rdzv-id={job}", f"--rdzv-conf={settings}", f"--log-level={level}", *arguments, worker,
            *script_arguments, **popen)

    return start


def results_of(nodes):
    return [each.wait() for each in nodes]


def holder(claim):
    """Whose it is."""
    return claim["address"], claim["port"], claim["agent"]


def hosts(nodes):
    """Those that have said that they host the coordinator."""
    return [each for each in nodes if "this node hosts the coordinator" in each.stderr.text]


def end_all(nodes):
    for each in nodes:
        each.send_signal(signal.SIGTERM)
    for each in nodes:
        each.wait()


def test_nodes_that_start_together_form_a_job_and_leave_nothing_in_the_place(node, meeting):
    nodes = [node(meeting, script_arguments=["0"]) for _ in range(2)]
    found = [environments(each, 1)[0] for each in nodes]
    results = results_of(nodes)
    assert [result.returncode for result in results] == [0, 0], results
    assert sorted(each["RANK"] for each in found) == ["0", "1"]
    assert len(hosts(nodes)) == 1
    assert meeting.is_clean()


def test_of_eight_nodes_that_race_exactly_one_hosts(node, meeting):
    nodes = [node(meeting, nnodes="8", script_arguments=["0"]) for _ in range(8)]
    results = results_of(nodes)
    assert [result.returncode for result in results] == [0] * 8, results
    assert len(hosts(nodes)) == 1
    assert meeting.is_clean()


def told_takeover(nodes):
    """Why one of them, and only one, has taken the claim over."""
    [host] = hosts(nodes)
    found = re.search(r"127\.0\.0\.1:\d+ has not renewed its claim for (\d+) ms(.*)", host.stderr.text)
    assert found and int(found.group(1)) >= GOOD_FOR, host.stderr.text
    return found.group(2)


def test_the_claim_of_a_dead_job_is_taken_over_when_it_is_not_good_any_more(node, meeting):
    meeting.put(free_port())
    nodes = [node(meeting, script_arguments=["0"]) for _ in range(2)]
    results = results_of(nodes)
    assert [result.returncode for result in results] == [0, 0], results
    assert ", and no process listens there" in told_takeover(nodes)


@pytest.mark.parametrize("version", [2, 4])
def test_a_file_that_another_version_has_written_is_left_alone(node, meeting, version):
    text = json.dumps({"version": version, "jobs": {}})
    meeting.path.write_text(text)
    result = node(meeting).wait()
    assert result.returncode == 1
    assert "it was written by another version of elastic-run" in result.stderr
    assert meeting.path.read_text() == text


def test_a_claim_is_renewed_while_its_job_runs(node, meeting):
    # Every other second: it is held, and the nodes are not lost, however busy the machine is.
    nodes = [node(meeting, conf="loss_timeout=10") for _ in range(2)]
    for each in nodes:
        environments(each, 1)
    first = meeting.claim()
    wait_until(lambda: meeting.claim()["renewals"] > first["renewals"], what="the claim to be renewed")
    now = meeting.claim()
    assert now == first | {"renewals": now["renewals"]}
    end_all(nodes)
    assert meeting.is_clean()


def test_a_claim_that_leads_to_a_stranger_is_taken_over(node, meeting):
    class Greeting(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.sendall(b"SSH-2.0-somebody\r\n")
            self.request.recv(65536)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greeting)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        meeting.put(server.server_address[1])
        nodes = [node(meeting, script_arguments=["0"]) for _ in range(2)]
        results = results_of(nodes)
    finally:
        server.shutdown()
        server.server_close()
    assert [result.returncode for result in results] == [0, 0], results
    assert ", and the server there is not a coordinator" in told_takeover(nodes)


def test_a_claim_that_leads_to_silence_is_taken_over_when_it_is_not_good_any_more(node, meeting):
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:  # connects, and never says a word
        meeting.put(silent.getsockname()[1])
        nodes = [node(meeting, script_arguments=["0"]) for _ in range(2)]
        results = results_of(nodes)
    assert [result.returncode for result in results] == [0, 0], results
    told_takeover(nodes)


def test_a_second_job_meets_in_the_same_place(node, meeting):
    first = [node(meeting) for _ in range(2)]
    for each in first:
        environments(each, 1)
    before = holder(meeting.claim())
    second = [node(meeting, job="other job", script_arguments=["0"]) for _ in range(2)]
    results = results_of(second)
    assert [result.returncode for result in results] == [0, 0], results
    assert meeting.claim("other job") is None and holder(meeting.claim()) == before
    assert all(alive(each.pid) for each in first)
    end_all(first)
    assert meeting.is_clean()


def acting(nodes, meeting):
    """The node whose coordinator has the claim."""
    port = meeting.claim()["port"]
    [found] = [each for each in hosts(nodes)
               if re.search(rf"this node hosts the coordinator at (\S+:|port ){port}\b", each.stderr.text)]
    return found


@pytest.mark.parametrize("killed", [
    pytest.param("node", marks=[pytest.mark.gate, pytest.mark.timing]),  # kind A: T = 5 s
    "outer process"])
def test_when_the_host_is_killed_another_node_hosts_and_the_job_goes_on(node, meeting, killed):
    nodes = [node(meeting, nnodes="2:3", conf=ALL_COME) for _ in range(3)]
    for each in nodes:
        until_size(each, 3)
    host = acting(nodes, meeting)
    # The launcher first: it would go by itself when the outer process has gone.
    victims = (host.launcher(), host.pid) if killed == "node" else (host.pid,)
    before = holder(meeting.claim())
    meeting.until_renewed()
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    host.wait()
    others = [each for each in nodes if each is not host]
    for each in others:
        assert until_size(each, 2)["TORCHELASTIC_RESTART_COUNT"] == "0"
    assert acting(others, meeting)
    assert holder(meeting.claim()) != before
    end_all(others)
    assert meeting.is_clean()


def test_a_node_with_is_host_0_never_hosts(node, meeting):
    guest = node(meeting, conf="is_host=0", script_arguments=["0"])
    guest.wait_for_line(r"no node hosts the coordinator yet, and this one may not \(is_host=0\)", timeout=60)
    host = node(meeting, script_arguments=["0"])
    assert [result.returncode for result in results_of([guest, host])] == [0, 0]
    assert hosts([guest, host]) == [host]


def test_the_port_and_the_address_can_be_given(node, meeting):
    port = free_port()
    nodes = [node(meeting, "--local-addr=localhost", conf=f"coordinator_port={port}") for _ in range(2)]
    for each in nodes:
        environments(each, 1)
    assert (meeting.claim()["address"], meeting.claim()["port"]) == ("localhost", port)
    end_all(nodes)


def test_a_node_killed_between_bind_and_write_is_in_nobodys_way(node, meeting):
    lock = meeting.path.with_name("meeting.lock")
    lock.write_text("somebody")
    first = node(meeting, script_arguments=["0"], level="debug")
    first.wait_for_line("claiming file .* no node had claimed it")
    for pid in (first.pid, first.launcher()):
        os.kill(pid, signal.SIGKILL)
    first.wait()
    lock.unlink()
    nodes = [node(meeting, script_arguments=["0"]) for _ in range(2)]
    assert [result.returncode for result in results_of(nodes)] == [0, 0]
    assert len(hosts(nodes)) == 1


def test_a_lock_that_a_dead_node_left_is_broken(node, meeting):
    lock = meeting.path.with_name("meeting.lock")
    lock.write_text("somebody")
    os.utime(lock, (lock.stat().st_mtime - 60,) * 2)
    nodes = [node(meeting, script_arguments=["0"]) for _ in range(2)]
    assert [result.returncode for result in results_of(nodes)] == [0, 0]
    assert meeting.is_clean()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of system calls are those of x86-64")
@pytest.mark.parametrize("error, why", [
    (95, "no hard link can be made: Operation not supported"),
    (0, r"it reported \S+/meeting\.lock as made, but this node does not have it"),  # says yes, and does nothing
])
def test_a_file_system_that_gives_no_locks_is_refused_at_once(node, elastic_run, meeting, refusing, error, why):
    program = [*refusing(f"{error} 86"), *refusing(f"{error} 265"), elastic_run.binary]  # link, linkat
    result = node(meeting, program=program).wait()
    assert result.returncode == 1
    assert re.search(rf"its file system has no reliable locks: {why}; name a file on one that makes hard links",
                     result.stderr)
    assert meeting.is_clean()


def test_a_file_system_that_hangs_is_named_and_holds_nobody_up(node, meeting, deaf_server, tmp_path):
    meeting.endpoint = str(tmp_path / "deaf" / "meeting")
    waiting = node(meeting, conf="join_timeout=4", preexec_fn=deaf_server.mount_here)
    result = waiting.wait()
    assert result.returncode == 1
    assert "its file system does not answer" in result.stderr


def test_between_hosts_the_claim_names_an_address_that_the_others_reach(network, node, meeting):
    nodes = [node(meeting, nnodes="3", script_arguments=["0"], preexec_fn=host.enter) for host in network(3)]
    results = results_of(nodes)
    assert [result.returncode for result in results] == [0, 0, 0], results
    [host] = hosts(nodes)
    assert re.search(HOSTS, host.stderr.text).group(1) == network.hosts[nodes.index(host)].address


@pytest.mark.parametrize("endpoint, message", [
    ("{shared}/none/meeting", r"its directory \S+/none: No such file or directory"),
    ("{shared}", "it cannot be read: Is a directory"),
    ("{worker}", "it holds something that elastic-run has not written"),
    ("/proc/self/exe", "it is larger than 2 MiB, so it is not a file of claims"),
])
def test_a_file_that_cannot_be_is_refused_at_once(node, meeting, tmp_path, endpoint, message):
    worker = tmp_path / "worker.py"
    meeting.endpoint = endpoint.format(shared=meeting.path.parent, worker=worker)
    before = worker.read_bytes()
    result = node(meeting).wait()
    assert result.returncode == 1
    assert re.search(f"file {re.escape(meeting.endpoint)}: {message}", result.stderr), result
    assert worker.read_bytes() == before


@pytest.mark.parametrize("arguments, message", [
    (["--rdzv-endpoint=/shared/x"], "nodes that meet by a file need store_type=file in --rdzv-conf"),
    (["--rdzv-conf=store_type=file"], "nothing says by which file the nodes meet"),
    (["--rdzv-conf=store_type=tcpstore"], "store_type must be tcp or file, not 'tcpstore'"),
    (["--rdzv-endpoint=/x", "--rdzv-conf=store_type=file,coordinator_port=70000"], "coordinator_port=70000 is not a port"),
    (["--coordinator-only", "--rdzv-endpoint=/x", "--rdzv-conf=store_type=file"],
     "--coordinator-only listens at an endpoint of its own, for any job"),
    (["--rdzv-endpoint=a:1", "--rdzv-conf=coordinator_port=7,failover=off"],
     "the coordinator listens at the port of --rdzv-endpoint"),
])
def test_what_makes_no_sense_is_refused(elastic_run, script, arguments, message):
    job = [] if "--coordinator-only" in arguments else ["--nnodes=2", "--rdzv-backend=c10d", script("train.py", "")]
    result = elastic_run(*arguments, *job)
    assert result.returncode == 2
    assert message in result.stderr


def test_a_dry_run_names_the_place_and_who_would_host(elastic_run, script):
    result = elastic_run("--dry-run", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=/shared/meeting",
                         "--rdzv-conf=store_type=file", script("train.py", ""))
    assert result.returncode == 0
    assert re.search(r"^endpoint +file /shared/meeting ", result.stdout, re.MULTILINE)
    assert "the node that file /shared/meeting names, or else the first node to claim it" in result.stdout
