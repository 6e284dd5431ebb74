"""The process that reads one part of a node's evidence of a hang, asked about real processes."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest

from harness import is_sanitized, wait_until

BINARY = os.environ["ELASTIC_RUN_BINARY"]
CHANNEL = 3
# More than any part may take.
PATIENCE_S = 60

# A worker as PyTorch's recorder is seen from outside: it reads its pipe, and dumps whenever something comes.
RECORDER = """
import json, os, sys
pipe, dump = sys.argv[1:]
os.mkfifo(pipe)
entry = {"record_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 7, "p2p_seq_id": 0,
         "profiling_name": "nccl:all_reduce", "input_sizes": [[4]], "input_dtypes": ["Float"], "output_sizes": [[4]],
         "state": "started", "retired": False, "is_p2p": False}
reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
os.set_blocking(reading, True)
writing = os.open(pipe, os.O_WRONLY)  # so that reading waits
print("ready", flush=True)
while os.read(reading, 128):
    with open(dump + ".new", "w") as file:
        json.dump({"version": "2.10", "entries": [entry]}, file)
    os.rename(dump + ".new", dump)
"""

# A worker whose control server answers the same to all: the socket is where its own environment names it.
CONTROLLED = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(os.environ["TORCH_WORKER_SERVER_SOCKET"])
server.listen()
print("ready", flush=True)
clients = []
while True:
    clients.append(server.accept()[0])
    request = clients[-1].recv(4096).decode()
    if sys.argv[1]:
        head = "HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n"
        clients[-1].sendall((head % len(sys.argv[1]) + sys.argv[1]).encode())
"""


def task(part, workers, **others):
    return {"part": part, "world_size": 4, "workers": workers, "addresses": ["127.0.0.1"], "round_began_us": 0,
            "gpu_program": "", "temporary": "/tmp", "peers": [], "ras_is_ours": False, "least_ms": 0} | others


def worker(rank, pid):
    return {"rank": rank, "local_rank": rank, "pid": pid, "children": []}


@contextlib.contextmanager
def reader(line, environment=None):
    """The process, which has got its task, and its channel."""
    ours, its = socket.socketpair()

    def give_channel():
        os.dup2(its.fileno(), CHANNEL)
        os.set_inheritable(CHANNEL, True)

    with ours, its, subprocess.Popen([BINARY, "--evidence-reader"], env=environment or {}, preexec_fn=give_channel,
                                     pass_fds=[CHANNEL]) as process:
        its.close()
        ours.settimeout(PATIENCE_S)
        ours.sendall(line.encode() + b"\n")
        yield process, ours


def answer_to(line, environment=None):
    """What the process answers, or None, and its exit status."""
    with reader(line, environment) as (process, channel):
        received = b""
        while piece := channel.recv(65536):
            received += piece
        status = process.wait(PATIENCE_S)
    return (json.loads(received) if received else None), status


def confinement(process):
    """Whether the process has a filter of system calls, and how many bytes of files it may write."""
    words = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines())
    limits = pathlib.Path(f"/proc/{process.pid}/limits").read_text()
    return words["Seccomp"].strip() == "2", re.search(r"Max file size +(\S+)", limits)[1]


@pytest.fixture
def started():
    processes = []

    def start(*arguments, **variables):
        process = subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, text=True,
                                   env=os.environ | variables)
        processes.append(process)
        assert process.stdout.readline() == "ready\n"
        return process.pid

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_worker_that_sleeps_and_one_that_is_stopped_are_told_apart(started):
    waiting = "import threading; print('ready', flush=True); threading.Event().wait()"
    sleeping, stopped = started(waiting), started(waiting)
    os.kill(stopped, signal.SIGSTOP)
    os.waitid(os.P_PID, stopped, os.WSTOPPED | os.WNOWAIT)
    answer, status = answer_to(json.dumps(task("processes", [worker(2, sleeping), worker(3, stopped)])))
    assert status == 0
    ranks = answer["facts"]["ranks"]
    assert [(rank["rank"], rank["pid"]) for rank in ranks] == [(2, sleeping), (3, stopped)]
    assert [rank["state"] for rank in ranks] == ["sleep", "stopped"]
    assert min(rank["state_ms"] for rank in ranks) >= 2000


def test_a_recorder_is_asked_by_its_pipe_and_its_dump_is_read(started, tmp_path):
    pid = started(RECORDER, f"{tmp_path}/pipe_2.pipe", f"{tmp_path}/dump_2")
    environment = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{tmp_path}/pipe_",
                   "TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/dump_"}
    answer, status = answer_to(json.dumps(task("recorder", [worker(2, pid), worker(3, pid)])), environment)
    assert status == 0
    facts = answer["facts"]
    assert [rank["recorder"]["state"] for rank in facts["ranks"]] == ["ok", "refused"]
    assert "it has no pipe" in facts["ranks"][1]["recorder"]["why"]
    (fact,) = facts["group_facts"]
    assert (fact["enqueued"], fact["retired"], fact["operation"]) == (7, 0, "all_reduce")
    assert facts["groups"][0]["name"] == "default_pg"


def test_recorders_are_asked_at_the_control_sockets_that_workers_environments_name(started, tmp_path):
    def dump(number):
        return json.dumps({"version": "2.10", "entries": [
            {"record_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": number, "p2p_seq_id": 0,
             "profiling_name": "gloo:all_reduce", "retired": False, "is_p2p": False}]})

    said = {0: dump(7), 1: dump(6), 2: '{"entries": ' + "[" * 100, 3: None}
    workers = []
    for rank, text in said.items():
        variables = {"TORCH_WORKER_SERVER_SOCKET": f"{tmp_path}/control {rank}"} if text else {}
        program = CONTROLLED if text else "import threading; print('ready', flush=True); threading.Event().wait()"
        workers.append(worker(rank, started(program, text or "", **variables)))
    answer, status = answer_to(json.dumps(task("recorder", workers)))
    assert status == 0
    facts = answer["facts"]
    assert [rank["recorder"]["state"] for rank in facts["ranks"]] == ["ok", "ok", "lost", "off"], facts
    assert [fact["enqueued"] for fact in facts["group_facts"]] == [7, 6], facts


def test_a_control_server_that_does_not_answer_is_late(started, tmp_path):
    pid = started(CONTROLLED, "", TORCH_WORKER_SERVER_SOCKET=f"{tmp_path}/control")
    with reader(json.dumps(task("recorder", [worker(2, pid)]))) as (process, channel):
        if not is_sanitized(BINARY):
            wait_until(lambda: confinement(process) == (True, "0"), what="a reader of dumps that is confined")
        (rank,) = json.loads(channel.recv(65536))["facts"]["ranks"]
    assert rank["recorder"]["state"] == "late" and "7 s" in rank["recorder"]["why"], rank


def test_without_nccl_and_drivers_their_parts_are_off(tmp_path):
    answer, _ = answer_to(json.dumps(task("ras", [])), {"NCCL_RAS_ENABLE": "0"})
    assert answer["facts"]["ras_source"]["state"] == "off"
    answer, _ = answer_to(json.dumps(task("gpus", [])), {"ELASTIC_RUN_PROBE_ROOT": str(tmp_path)})
    assert answer["facts"]["nvml"]["state"] == "off"
    answer, _ = answer_to(json.dumps(task("links", [])), {"ELASTIC_RUN_PROBE_ROOT": str(tmp_path)})
    assert answer["facts"]["links"]["state"] == "off"


@pytest.mark.skipif(is_sanitized(BINARY), reason="the sanitizers make more system calls than any reader may")
def test_what_reads_evidence_is_confined(started, tmp_path):
    """Each while it waits: for RAS's answer, for a dump that does not come, for the second look."""
    with socket.create_server(("127.0.0.1", 0)) as ras:
        place = f"127.0.0.1:{ras.getsockname()[1]}"
        with reader(json.dumps(task("ras", [])), {"NCCL_RAS_ADDR": place}) as (process, channel):
            ras.settimeout(PATIENCE_S)
            with ras.accept()[0]:
                assert confinement(process) == (True, "0")
            assert json.loads(channel.recv(65536))["facts"]["ras_source"]["state"] == "lost"
    pipe = tmp_path / "pipe_2.pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    environment = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{tmp_path}/pipe_", "TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/dump_"}
    with reader(json.dumps(task("recorder", [worker(2, os.getpid())])), environment) as (process, channel):
        wait_until(lambda: confinement(process) == (True, "0"), what="a reader of dumps that is confined")
        assert os.read(reading, 8) == b"1"
        process.kill()
    os.close(reading)
    with reader(json.dumps(task("processes", [worker(2, os.getpid())]))) as (process, channel):
        wait_until(lambda: confinement(process) == (True, "0"), what="a reader of processes that is confined")
        assert json.loads(channel.recv(65536))["facts"]["ranks"][0]["pid"] == os.getpid()


def test_connections_to_the_store_are_those_of_the_workers_that_have_them():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        peer = f"127.0.0.1:{client.getsockname()[1]}"
        workers = [worker(1, 1), worker(3, os.getpid())]
        answer, status = answer_to(json.dumps(task("store clients", workers, peers=["10.0.0.1:7", peer])))
    assert (status, answer["clients"]) == (0, [{"peer": peer, "rank": 3}])


@pytest.mark.parametrize("line", ["", "{}", "[[[[", json.dumps(task("everything", []))])
def test_what_is_no_task_is_not_answered(line):
    assert answer_to(line) == (None, 1)
