"""What the measurements of many nodes share: the workers' marks, nodes, their processes."""

import collections
import dataclasses
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time
import types

import common
from common import BenchError

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from ports import free_port  # noqa: E402, F401 (the place of tests for both)

HEAD = struct.Struct("=4I3q")  # crowd.h
ENTRY = struct.Struct("=qqiIIIIi")

# What a node that was killed may leave behind of its lease, in ms, by the loss timeout in ms (docs/failover.md).
def lease_over_ms(loss_timeout_ms=5000):
    return loss_timeout_ms * 3 / 5 * 1.01 + 100


@dataclasses.dataclass(frozen=True)
class Entry:
    """A worker; times are those of time.monotonic_ns()."""

    came_ns: int
    stopped_ns: int
    pid: int
    rank: int
    world: int
    round: int
    restart: int
    conflict: int


class Marks:
    """The file in which workers note when they came."""

    def __init__(self, path, launchers=0, capacity=4096):
        self.path, self._launchers, self._capacity = str(path), launchers, capacity
        self._entries = HEAD.size + 4 * ((launchers + 1) // 2 * 2)
        size = self._entries + capacity * ENTRY.size
        with open(path, "wb") as file:
            file.write(HEAD.pack(launchers, capacity, 0, 0, 0, 0, 0))
            file.truncate(size)
        self._file = open(path, "rb", buffering=0)  # pylint: disable=consider-using-with

    def close(self):
        self._file.close()

    def head(self):
        """(arrived, began_ns, started_ns, ended_ns)"""
        _, _, arrived, _, began, started, ended = HEAD.unpack(os.pread(self._file.fileno(), HEAD.size, 0))
        return arrived, began, started, ended

    def launchers(self):
        data = os.pread(self._file.fileno(), 4 * self._launchers, HEAD.size)
        return [pid for pid, in struct.iter_unpack("=i", data) if pid > 0]

    def entries(self, first=0):
        arrived = self.head()[0]
        if arrived > self._capacity:
            raise BenchError(f"{arrived} workers came, more than there is room for")
        data = os.pread(self._file.fileno(), (arrived - first) * ENTRY.size, self._entries + first * ENTRY.size)
        found = (Entry(*values) for values in ENTRY.iter_unpack(data))
        return [one for one in found if one.came_ns]

    def rounds(self):
        """The workers by round, in the order in which the rounds' first workers came."""
        found = collections.OrderedDict()
        for one in sorted(self.entries(), key=lambda entry: entry.came_ns):
            found.setdefault(one.round, []).append(one)
        return list(found.values())

    def wait_for_round(self, world, after_ns=0, timeout_s=60, still=lambda: True):
        """The workers of the first complete round of so many that began after `after_ns`."""
        deadline = time.monotonic() + timeout_s
        while True:
            for workers in self.rounds():
                if workers[0].world == world and len(workers) == world and workers[0].came_ns >= after_ns:
                    return workers
            if time.monotonic() > deadline or not still():
                rounds = [(workers[0].world, len(workers)) for workers in self.rounds()]
                raise BenchError(f"no round of {world} workers in {timeout_s} s; there were (world, came): "
                                 f"{rounds[-5:]}")
            time.sleep(0.005)


def launcher_of(outer):
    """The launcher's process of an elastic-run; None while there is none, or no longer one."""
    try:
        children = pathlib.Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def cpu_ms(pid):
    """What it has used so far; 0 where it is gone."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6
    except OSError:
        return 0


def memory_kib(pid):
    """(RSS, PSS, private)"""
    values = {}
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, value = line.partition(":")
        values[name] = int(value.split()[0])
    return values["Rss"], values["Pss"], values["Private_Clean"] + values["Private_Dirty"]


def sockets(expression):
    """What ss tells of TCP connections, one text each; their processes and counters are in it."""
    done = subprocess.run(["ss", "-tinpOH", *expression.split()], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"ss (of iproute2) is needed: {done.stderr.strip()}")
    return done.stdout.splitlines()


def listener_of(port):
    """The process that listens there, or None."""
    done = subprocess.run(["ss", "-tlnpOH", f"sport = :{port}"], capture_output=True, text=True, check=False)
    found = re.search(r"pid=(\d+)", done.stdout)
    return int(found.group(1)) if found else None


def wait_for_listener(node, port, timeout_s=60):
    """Until somebody listens there; an error if the node ends before that, or in time nobody does."""
    deadline = time.monotonic() + timeout_s
    while listener_of(port) is None:
        if time.monotonic() > deadline or not node.runs():
            raise BenchError(f"nobody listens to port {port}: {node.told()}")
        time.sleep(0.01)


def counter(line, name):
    found = re.search(rf"\b{name}:(\d+)", line)
    return int(found.group(1)) if found else 0


def silent_for_ms(launcher, port):
    """How long ago the launcher last sent something to the endpoint."""
    for line in sockets(f"dport = :{port}"):
        if f"pid={launcher}," in line:
            return counter(line, "lastsnd")
    raise BenchError(f"process {launcher} has no connection to port {port}")


def command(binary, nodes, port, worker, *arguments, host="127.0.0.1", conf="", job="bench"):
    return [binary, f"--nnodes={nodes}", "--nproc-per-node=1", "--rdzv-backend=c10d", f"--rdzv-endpoint={host}:{port}",
            f"--rdzv-id={job}", *([f"--rdzv-conf={conf}"] if conf else []), "--no-python", *arguments, *worker]


def network_namespaces():
    """tests/system/networks.py; None where no network namespace can be made. Its fixture is not needed here, nor therefore
    pytest."""
    if os.geteuid() != 0:
        return None
    sys.modules.setdefault("pytest", types.SimpleNamespace(fixture=lambda function: function, skip=None))
    system = str(common.HERE.parent / "system")
    if system not in sys.path:
        sys.path.append(system)
    import networks  # pylint: disable=import-outside-toplevel,import-error
    try:
        networks.Network().remove()
    except (OSError, subprocess.CalledProcessError):
        return None
    return networks


class Node:
    """One launcher, with its output in a file. stop() ends it, however it is."""

    def __init__(self, program, directory, variables=None, enter=None):
        self.output = pathlib.Path(directory) / f"node.{time.monotonic_ns()}"
        with open(self.output, "wb") as output:
            self.began_ns = time.monotonic_ns()
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                program, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=enter,
                env=common.environment(directory) | (variables or {}))
        self.pid = self.process.pid

    def runs(self):
        return self.process.poll() is None

    def launcher(self):
        found = launcher_of(self.pid)
        if found is None:
            raise BenchError(f"a node has no launcher: {self.told()}")
        return found

    def told(self):
        return self.output.read_text(errors="replace")[-2000:]

    def kill(self):
        """Both processes at once; the workers follow by themselves."""
        launcher = launcher_of(self.pid)
        for pid in filter(None, (launcher, self.pid)):
            kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if not self.runs():
            return
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


def stop_all(nodes):
    for node in nodes:
        if node.runs():
            node.process.terminate()
    for node in nodes:
        node.stop()


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
