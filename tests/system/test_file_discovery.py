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

# When the entries of dead jobs were written, as Unix time in milliseconds.
LONG_AGO = 1_000_000_000_000
HOSTS = r"this node hosts the coordinator at (\S+):(\d+), in"


class FileMeeting:
    """A file in a directory that all nodes share."""

    def __init__(self, place):
        (place / "shared").mkdir()
        self.path = place / "shared" / "meeting"
        self.endpoint = str(self.path)

    def entry(self, job="job"):
        if not self.path.exists():
            return None
        return json.loads(self.path.read_text())["jobs"].get(job)

    def put(self, port, next_port=None):
        """The entry of a job that was led there, and of one node that may lead it next."""
        next_leaders = [] if next_port is None else [{"address": "127.0.0.1", "port": next_port}]
        entry = {"incarnation": "0x7", "birth_ms": LONG_AGO, "round": 3, "term": 5, "process": "0x9",
                 "host": socket.gethostname(), "leader": {"address": "127.0.0.1", "port": port}, "next_leaders": next_leaders, "written_ms": LONG_AGO}
        text = json.dumps({"version": 1, "jobs": {"job": entry}})
        self.path.write_text(text)
        return text

    def until_led(self):
        """Until the leader has written that it leads, and writes no more: who is killed then leaves no lock."""
        wait_until(lambda: self.entry()["round"] is not None and os.listdir(self.path.parent) == [self.path.name],
                   what="the leader to be in the file")

    def is_clean(self):
        return os.listdir(self.path.parent) == []


@pytest.fixture
def in_memory(tmp_path):
    """A directory in memory: an entry is synchronized with the disk, which other work may keep busy for long."""
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


def told_why(nodes):
    """Why one of them, and only one, has begun the job that the file named."""
    [host] = hosts(nodes)
    return re.search(r"this node hosts the coordinator at \S+, in file \S+: (.*)", host.stderr.text).group(1)


def test_the_entry_of_a_dead_job_is_replaced_at_once(node, meeting):
    meeting.put(free_port(), free_port())
    nodes = [node(meeting, script_arguments=["0"]) for _ in range(2)]
    results = results_of(nodes)
    assert [result.returncode for result in results] == [0, 0], results
    assert re.search(r"no process of the job listens any more at 127\.0\.0\.1:\d+ and 1 more, which file \S+ named "
                     r"\d+ h \d+ min ago", told_why(nodes))
    assert meeting.is_clean()


def test_with_failover_evidence_none_the_entry_of_a_dead_job_is_not_replaced(node, meeting):
    text = meeting.put(free_port())
    result = node(meeting, conf="failover_evidence=none,join_timeout=3").wait()
    assert result.returncode == 1
    assert "with failover_evidence=none that is no proof: if the job is over, remove its entry" in result.stderr
    assert meeting.path.read_text() == text


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_that_another_version_has_written_is_left_alone(node, meeting, version):
    text = json.dumps({"version": version, "jobs": {}})
    meeting.path.write_text(text)
    result = node(meeting).wait()
    assert result.returncode == 1
    assert "it was written by another version of elastic-run" in result.stderr
    assert meeting.path.read_text() == text


def test_the_entry_says_who_leads_and_who_may_lead_next(node, meeting):
    # Nobody is lost, however busy the machine is.
    nodes = [node(meeting, conf="loss_timeout=10") for _ in range(2)]
    for each in nodes:
        environments(each, 1)
    wait_until(lambda: meeting.entry()["next_leaders"], what="the next leader to be in the file")
    entry = meeting.entry()
    [host] = hosts(nodes)
    address, port = re.search(HOSTS, host.stderr.text).groups()
    assert entry["leader"] == {"address": address, "port": int(port)}
    assert int(entry["incarnation"], 0) != 0 and entry["round"] == 0 and entry["term"] >= 1
    [following] = entry["next_leaders"]
    assert following["port"] != int(port)
    end_all(nodes)
    assert meeting.is_clean()


@pytest.fixture
def stranger():
    """The port of a server that is no coordinator."""
    class Greeting(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.sendall(b"SSH-2.0-somebody\r\n")
            self.request.recv(65536)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greeting)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def test_an_entry_that_leads_to_a_stranger_is_replaced(node, meeting, stranger):
    meeting.put(stranger)
    nodes = [node(meeting, script_arguments=["0"]) for _ in range(2)]
    results = results_of(nodes)
    assert [result.returncode for result in results] == [0, 0], results
    assert "no process of the job listens any more" in told_why(nodes)


def test_the_peer_port_of_a_newcomer_is_no_place_of_a_dead_job(node, meeting, stranger):
    port = free_port()
    meeting.put(stranger, port)
    nodes = [node(meeting, conf=f"coordinator_port={port}", script_arguments=["0"]) for _ in range(2)]
    results = results_of(nodes)
    assert [result.returncode for result in results] == [0, 0], results
    assert "no process of the job listens any more" in told_why(nodes)


def test_an_entry_that_leads_to_another_jobs_coordinator_is_replaced(node, meeting):
    others = [node(meeting, job="other job") for _ in range(2)]
    for each in others:
        environments(each, 1)
    text = json.loads(meeting.path.read_text())
    there = meeting.entry("other job")["leader"]
    elsewhere = FileMeeting(meeting.path.parent)
    elsewhere.put(there["port"])
    nodes = [node(elsewhere, script_arguments=["0"]) for _ in range(2)]
    results = results_of(nodes)
    assert [result.returncode for result in results] == [0, 0], results
    assert "no process of the job listens any more" in told_why(nodes)
    assert json.loads(meeting.path.read_text())["jobs"].keys() == text["jobs"].keys()
    end_all(others)


def test_an_entry_that_leads_to_silence_is_never_replaced_and_is_named(node, meeting):
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:  # connects, and never says a word
        port = silent.getsockname()[1]
        text = meeting.put(port, free_port())
        waiting = node(meeting, conf="join_timeout=8")
        where = rf"127\.0\.0\.1:{port}, which file {re.escape(meeting.endpoint)} named \d+ h \d+ min ago"
        waiting.wait_for_line(f"warning: {where}.*it does not answer")
        result = waiting.wait()
    assert result.returncode == 1
    assert re.search(rf"found no coordinator at file {re.escape(meeting.endpoint)} within 8 s: {where} as a place of this "
                     r"job: .*remove its entry there, or choose another --rdzv-id", result.stderr), result.stderr
    assert meeting.path.read_text() == text


def test_a_file_that_other_hosts_do_not_see_is_told_once(node, meeting):
    nodes = [node(meeting, script_arguments=["0"]) for _ in range(2)]
    for result in results_of(nodes):
        assert result.returncode == 0
        assert len(re.findall(r"file \S+ is on \w+, which other hosts do not see", result.stderr)) == 1


def test_a_second_job_meets_in_the_same_place(node, meeting):
    first = [node(meeting) for _ in range(2)]
    for each in first:
        environments(each, 1)
    meeting.until_led()
    before = meeting.entry()
    second = [node(meeting, job="other job", script_arguments=["0"]) for _ in range(2)]
    results = results_of(second)
    assert [result.returncode for result in results] == [0, 0], results
    assert meeting.entry("other job") is None and meeting.entry() == before
    assert all(alive(each.pid) for each in first)
    end_all(first)
    assert meeting.is_clean()


def acting(nodes, meeting):
    """The node whose coordinator is in the file."""
    port = meeting.entry()["leader"]["port"]
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
    meeting.until_led()
    before = meeting.entry()["process"]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    host.wait()
    others = [each for each in nodes if each is not host]
    for each in others:
        assert until_size(each, 2)["TORCHELASTIC_RESTART_COUNT"] == "0"
    wait_until(lambda: meeting.entry()["process"] != before, what="the elected leader to be in the file")
    assert acting(others, meeting)
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
    meeting.until_led()
    assert meeting.entry()["leader"] == {"address": "localhost", "port": port}
    end_all(nodes)


def test_a_node_killed_between_bind_and_write_is_in_nobodys_way(node, meeting):
    lock = meeting.path.with_name("meeting.lock")
    lock.write_text("somebody")
    first = node(meeting, script_arguments=["0"], level="debug")
    first.wait_for_line("file .* is to name .*: no node had begun it")
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


def test_between_hosts_the_entry_names_an_address_that_the_others_reach(network, node, meeting):
    nodes = [node(meeting, nnodes="3", script_arguments=["0"], preexec_fn=host.enter) for host in network(3)]
    results = results_of(nodes)
    assert [result.returncode for result in results] == [0, 0, 0], results
    [host] = hosts(nodes)
    assert re.search(HOSTS, host.stderr.text).group(1) == network.hosts[nodes.index(host)].address


@pytest.mark.parametrize("endpoint, message", [
    ("{shared}/none/meeting", r"its directory \S+/none: No such file or directory"),
    ("{shared}", "it cannot be read: Is a directory"),
    ("{worker}", "it holds something that elastic-run has not written"),
    ("/proc/self/exe", "it is larger than 2 MiB, so elastic-run has not written it"),
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
    assert "the node that file /shared/meeting names, or else the first node to begin the job" in result.stdout
