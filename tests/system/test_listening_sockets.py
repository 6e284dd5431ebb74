"""What a job of one node listens at: loopback alone, unless it was asked for more, and then strangers get no answer."""
# ctest: nodes

import re
import signal
import subprocess
import sys

import pytest
import raw_store
from networks import network  # noqa: F401 (a fixture)
from workers import free_port

ASK = raw_store.request(raw_store.GET, raw_store.text(b"key"))
WRITE = raw_store.request(raw_store.SET, raw_store.text(b"key"), raw_store.text(b"value"))
ANSWER = raw_store.text(b"value").hex()

# A worker that writes a key and reads it, at each address that MASTER_ADDR has.
WORKER = f"""\
import os, signal, socket
for family, kind, protocol, _, where in socket.getaddrinfo(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]),
                                                         type=socket.SOCK_STREAM):
    try:
        with socket.create_connection(where[:2], timeout=50) as store:
            store.sendall({raw_store.HELLO + WRITE + ASK!r})
            print("answer", where[0], store.recv(100).hex(), flush=True)
    except OSError as error:
        print("error", where[0], error, flush=True)
print("told", flush=True)
signal.pause()
"""
# What the store says to somebody at an address and port; nothing if it says nothing.
STRANGER = f"""\
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=50) as store:
    try:
        store.sendall({raw_store.HELLO + ASK!r})
        print("answer", store.recv(100).hex())
    except ConnectionError:
        print("answer ")
"""


def listening(host):
    """[(address, port)] of what listens on this host, which runs one job and nothing else."""
    shown = subprocess.run(["ip", "netns", "exec", host.namespace, "ss", "-Hltn"], check=True, capture_output=True, text=True)
    found = [line.split()[3].rpartition(":") for line in shown.stdout.splitlines()]
    return sorted({(address.strip("[]").partition("%")[0], int(port)) for address, _, port in found})


@pytest.fixture
def job(elastic_run, network, script):
    """job(options..., env={}): (running, the host it is on, another host, where its store has answered)."""
    hosts = network(2)
    worker = script("worker.py", WORKER)

    def start(*options, env=None):
        running = elastic_run.start("--nproc-per-node=1", *options, worker, env=env or {}, preexec_fn=hosts[0].enter)
        running.wait_for_line("^told$", stream="stdout")
        answers = re.findall(r"^(answer|error) (\S+) (.*)$", running.so_far(), re.MULTILINE)
        return running, hosts[0], hosts[1], answers

    return start


def end(running):
    running.send_signal(signal.SIGTERM)
    return running.wait()


@pytest.mark.parametrize("options, env", [
    ([], {}),
    (["--standalone"], {}),
    (["--nnodes=1", "--rdzv-backend=c10d"], {}),
    (["--master-port={port}"], {}),
    (["--master-addr=127.0.0.1", "--master-port={port}"], {}),
    (["--master-addr=localhost", "--master-port={port}"], {}),
    (["--master-addr=::1", "--master-port={port}"], {}),
    (["--rdzv-backend=static", "--rdzv-endpoint=localhost:{port}"], {}),
    ([], {"PET_MASTER_PORT": "{port}"}),
    ([], {"PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": "{port}"}),
    ([], {"PET_RDZV_ENDPOINT": "127.0.0.1:{port}", "PET_RDZV_BACKEND": "static"}),
], ids=lambda value: " ".join(value) if isinstance(value, list) else ",".join(value))
def test_a_job_of_one_node_listens_on_loopback_alone(job, options, env):
    port = str(free_port())
    running, host, _, answers = job(*[word.replace("{port}", port) for word in options],
                                    env={name: value.replace("{port}", port) for name, value in env.items()})
    found = listening(host)
    assert found and {address for address, _ in found} <= {"127.0.0.1", "::1"}
    # Each address that the name has is served, so that no client has to try another one.
    assert answers and {(kind, answer) for kind, _, answer in answers} == {("answer", ANSWER)}
    if any("{port}" in word for word in [*options, *env.values()]):
        assert {number for _, number in found} == {int(port)}
    end(running)


@pytest.mark.parametrize("admits", ["this host", "all"])
def test_at_an_address_of_the_host_a_static_store_answers_this_host_only(job, admits):
    port = free_port()
    conf = ["--rdzv-conf=store_admits=all"] if admits == "all" else []
    running, host, other, answers = job("--master-addr=10.77.0.1", f"--master-port={port}", *conf)
    assert answers == [("answer", "10.77.0.1", ANSWER)]
    assert {number for _, number in listening(host)} == {port}
    done = subprocess.run([sys.executable, "-c", STRANGER, host.address, str(port)], capture_output=True, text=True, timeout=60,
                          preexec_fn=other.enter, check=True)
    result = end(running)
    if admits == "all":
        assert done.stdout == f"answer {ANSWER}\n" and "closed the connection" not in result.stderr
        return
    assert done.stdout.strip() == "answer"
    assert re.search(rf"worker store on port {port} closed the connection from 10\.77\.0\.2: no interface of this host "
                     r"has this address; .*store_admits=all", result.stderr), result


def test_who_asks_for_status_or_an_address_is_heard_elsewhere_and_by_nothing_more(job):
    port, status = free_port(), free_port()
    running, host, _, answers = job(f"--master-port={port}", f"--http-port={status}", "--local-addr=10.77.0.1")
    assert [kind for kind, _, _ in answers] == ["answer"]
    assert {number for address, number in listening(host) if address not in ("127.0.0.1", "::1")} == {status}
    end(running)
