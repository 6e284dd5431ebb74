"""The two servers that the tests of the worker store drive, ours and PyTorch's, and the fixtures that
start them: `from store_servers import ours, server, store` makes them known to a test file."""

import datetime
import os
import pathlib
import socket
import subprocess
import sys
import threading

import pytest

# PyTorch's client looks up the names of both ends of each of its connections. Where the resolver
# loses some of many questions at once, it is to ask again soon.
os.environ["RES_OPTIONS"] = "timeout:1"

import torch.distributed as dist  # noqa: E402

OURS, TORCH = "ours", "torch"
SHORT = datetime.timedelta(milliseconds=150)
LONG = datetime.timedelta(seconds=250)  # for what comes, however late; a test's time limit ends a hang


def our_program():
    """The store_server of the build under test."""
    build = pathlib.Path(os.environ["ELASTIC_RUN_BINARY"]).parent
    return os.environ.get("ELASTIC_STORE_SERVER", str(build / "tests/stand_ins/store_server"))


class OurServer:
    """A store_server, which serves one store and obeys lines on stdin."""

    side = OURS

    def __init__(self, programs, address="127.0.0.1", **popen):
        self.running = programs.start(address, program=[our_program()], stdin=subprocess.PIPE, **popen)
        self.pid = self.running.pid
        self.port = int(self.running.wait_for_line(r"^port (\d+)$", stream="stdout").group(1))

    def tell(self, order):
        self.running.popen.stdin.write(f"{order}\n".encode())
        self.running.popen.stdin.flush()

    def reset(self):
        self.tell("reset")
        self.running.wait_for_line("^reset$", stream="stdout")

    def hold(self):
        """Nothing is served, nor any connection accepted, until the next line is told."""
        self.tell("hold")
        self.running.wait_for_line("^held$", stream="stdout")

    def stats(self):
        self.tell("stats")
        line = self.running.wait_for_line("^stats (.*)$", stream="stdout").group(1)
        return {name: int(value) for name, value in (pair.split("=") for pair in line.split())}

    def wait_for_log(self, pattern):
        self.running.wait_for_line(pattern)

    def end(self):
        self.running.popen.stdin.close()
        assert self.running.wait().returncode == 0


class TorchServer:
    """PyTorch's server in this process. It looks up the name of each client that connects: an IPv4
    listener, for those of this machine are in the hosts file as IPv4 addresses only."""

    side = TORCH

    def __init__(self):
        listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = listener.getsockname()[1]
        self.store = dist.TCPStore("127.0.0.1", self.port, is_master=True, wait_for_workers=False,
                                   master_listen_fd=listener.detach())

    def end(self):
        del self.store


# PyTorch's server as a program that behaves as store_server does, but for the orders.
TORCH_PROGRAM = [sys.executable, "-c", """
import socket, sys
import torch.distributed as dist
listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
store = dist.TCPStore("127.0.0.1", listener.getsockname()[1], is_master=True, wait_for_workers=False,
                      master_listen_fd=listener.detach())
print("port", store.port, flush=True)
sys.stdin.read()
"""]


class TorchProcess:
    """PyTorch's server in a process of its own, whose memory and time can be told from the test's."""

    side = TORCH

    def __init__(self, programs):
        self.running = programs.start(program=TORCH_PROGRAM, stdin=subprocess.PIPE)
        self.pid = self.running.pid
        self.port = int(self.running.wait_for_line(r"^port (\d+)$", stream="stdout").group(1))

    def end(self):
        self.running.popen.stdin.close()
        assert self.running.wait().returncode == 0


def processor_seconds(server):
    """That its process has used: of a TorchServer it is ours."""
    pid = os.getpid() if isinstance(server, TorchServer) else server.pid
    times = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def ours(elastic_run):
    server = OurServer(elastic_run)
    yield server
    server.end()


@pytest.fixture(params=[OURS, TORCH])
def server(request):
    """Each of the two in its turn: a test that takes it expects the same of both."""
    if request.param == OURS:
        yield request.getfixturevalue("ours")
        return
    server = TorchServer()
    yield server
    server.end()


@pytest.fixture
def store(server):
    return client(server)


def client(server, world_size=None):
    """A PyTorch client; one with a world size counts itself at `init/`, as a worker does."""
    return dist.TCPStore("127.0.0.1", server.port, world_size, is_master=False, timeout=LONG)


def in_threads(count, work):
    """Runs work(0) to work(count - 1) at once; raises the first exception of any."""
    results = [None] * count
    errors = []

    def run(index):
        try:
            results[index] = work(index)
        except BaseException as error:  # told by the thread that asked
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def at_once(*works):
    """Runs each of the functions in a thread of its own; what they returned, in their order."""
    return in_threads(len(works), lambda index: works[index]())


def tcp_table():
    """(local port, remote port, state, receive queue, timer) of each socket of this machine."""
    for name in ("tcp", "tcp6"):
        path = pathlib.Path("/proc/net", name)
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            fields = line.split()
            yield (int(fields[1].split(":")[1], 16), int(fields[2].split(":")[1], 16), fields[3],
                   int(fields[4].split(":")[1], 16), fields[5].split(":")[0])
