"""Plays the launcher to the import server of warm workers (src/warm/server.py), without elastic-run."""

import array
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import pty
import re
import selectors
import signal
import socket
import subprocess
import tempfile
import time

SOURCES = pathlib.Path(__file__).parents[2] / "src/warm"
CHANNEL = 3  # where the server finds its socket
PR_SET_CHILD_SUBREAPER = 36
LONG_S = 60  # for what comes, however late
SOON_S = 60  # for its end, which takes no time where nothing else runs


def boot():
    """What elastic-run gives `python -c`: kBoot of src/warm/server_text.h."""
    return re.search(r'kBoot =\s*"([^"\\]*)";', (SOURCES / "server_text.h").read_text())[1]


@dataclasses.dataclass
class Outcome:
    """How a process ended: its status as subprocess gives it, and what it wrote."""

    status: int
    stdout: bytes
    stderr: bytes

    def lines(self):
        return [self.status, "stdout:", *self.stdout.splitlines(True), "stderr:", *self.stderr.splitlines(True)]


class Streams:
    """A process's stdout and stderr: each a "pipe", a "file" or a "terminal"."""

    def __init__(self, kind):
        self.kind = kind
        pairs = [self._pair() for _ in range(2)]
        self.given = [given for _, given in pairs]
        self._ours = [ours for ours, _ in pairs]

    def _pair(self):
        if self.kind == "pipe":
            return os.pipe()
        if self.kind == "terminal":
            return pty.openpty()
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno()), os.dup(file.fileno())

    def are_given(self):
        """The process has them: these must be closed here, for their end to be seen."""
        for descriptor in self.given:
            os.close(descriptor)

    def read(self):
        """All that was written. Of a file: until now; else until nobody can write any more."""
        texts = {descriptor: b"" for descriptor in self._ours}
        with contextlib.ExitStack() as stack:
            for descriptor in self._ours:
                stack.callback(os.close, descriptor)
            if self.kind == "file":
                return [os.pread(descriptor, 1 << 20, 0) for descriptor in self._ours]
            selector = stack.enter_context(selectors.DefaultSelector())
            for descriptor in self._ours:
                selector.register(descriptor, selectors.EVENT_READ)
            until = time.monotonic() + LONG_S
            while selector.get_map():
                if time.monotonic() > until:
                    raise TimeoutError(texts)
                for key, _ in selector.select(1):
                    try:
                        part = os.read(key.fd, 1 << 16)
                    except OSError:  # of a terminal that nobody has open
                        part = b""
                    texts[key.fd] += part
                    if not part:
                        selector.unregister(key.fd)
        return list(texts.values())


class Running:
    """A script's process, which leads a session; `wait()` returns its status."""

    def __init__(self, pid, streams, wait):
        self.pid = pid
        self._streams = streams
        self._wait = wait

    def outcome(self):
        try:
            texts = [] if self._streams.kind == "file" else self._streams.read()
            status = self._wait()
            return Outcome(status, *(texts or self._streams.read()))
        finally:
            end_group(self.pid)


def end_group(group):
    """Kills what is left of a process group, and reaps those who are our children, or are given us by their death."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)


def give(descriptor):
    """A preexec_fn, for close_fds would close CHANNEL: the program has this as CHANNEL, and no other but the first."""
    os.dup2(descriptor, CHANNEL)
    for other in map(int, os.listdir("/proc/self/fd")):
        if other > CHANNEL:
            with contextlib.suppress(OSError):  # that of the directory
                os.set_inheritable(other, False)


class ImportServer:
    """An import server and its workers; `python`, `options` and `environment` are theirs. `target` is a script's path
    or, if `is_module`, a module's name. It is a context, which ends all that is left of it."""

    opened = 0

    def __init__(self, python, target, environment, directory, *, is_module=False, options=("-u",), wanted="", running=""):
        self.command = [str(python), *options, *(["-m"] if is_module else []), str(target)]
        self.environment = environment
        self.directory = directory
        self._waiting = []  # (pid, socket)
        ImportServer.opened += 1
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # its workers are to be our children
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # so that CHANNEL is in use
        self._ours.settimeout(LONG_S)
        text = (SOURCES / "server.py").read_text()
        arguments = ["-c", boot(), text, "module" if is_module else "script", str(target), wanted, "", str(running)]
        with theirs:
            self._process = subprocess.Popen(
                [str(python), *options, *arguments], env=environment, cwd=directory, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, start_new_session=True, close_fds=False,
                preexec_fn=lambda: give(theirs.fileno()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _, channel in self._waiting:
            channel.close()
        self._ours.close()
        try:
            self._process.wait(SOON_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            raise
        finally:
            end_group(self._process.pid)
            ImportServer.opened -= 1
            if ImportServer.opened == 0:
                ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def _receive(self):
        packet, ancillary, _, _ = self._ours.recvmsg(1 << 16, socket.CMSG_SPACE(array.array("i").itemsize))
        descriptors = array.array("i")
        for _, _, data in ancillary:
            descriptors.frombytes(data)
        assert packet, "the import server has ended"
        return packet.decode().split("\0"), list(descriptors)

    def reports(self):
        """Its packets until it is ready ("R") or refuses ("F"), as lists of a letter and fields."""
        found = []
        while not found or found[-1][0] == "S":
            found.append(self._receive()[0])
        return found

    def park(self, count=1):
        self._ours.send(b"P%d" % count)
        for _ in range(count):
            (packet,), (descriptor,) = self._receive()
            assert packet[0] == "W"
            self._waiting.append((int(packet[1:]), socket.socket(fileno=descriptor)))
        assert self._receive() == (["D"], [])  # none is on its way any more

    def start_warm(self, *arguments, variables=(), streams="pipe"):
        if not self._waiting:
            self.park()
        pid, channel = self._waiting.pop(0)
        streams = Streams(streams)
        variables = [f"{name}={value}" for name, value in dict(variables).items()]
        order = "\0".join([f"O{len(variables)}", *variables, *self.command, *map(str, arguments)])
        with channel:
            channel.settimeout(LONG_S)
            socket.send_fds(channel, [order.encode()], streams.given)
            streams.are_given()
            running = Running(pid, streams, lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            assert channel.recv(1) == b"T", running.outcome()
            channel.send(b"G")
        return running

    def start_fresh(self, *arguments, variables=(), streams="pipe"):
        streams = Streams(streams)
        process = subprocess.Popen(
            [*self.command, *map(str, arguments)], env=self.environment | dict(variables), cwd=self.directory,
            stdin=subprocess.DEVNULL, stdout=streams.given[0], stderr=streams.given[1], start_new_session=True)
        streams.are_given()
        return Running(process.pid, streams, process.wait)

    def both(self, *arguments, **how):
        """The outcomes of a fresh and of a warm worker with these arguments."""
        with contextlib.ExitStack() as stack:
            fresh = self.start_fresh(*arguments, **how)
            stack.callback(end_group, fresh.pid)
            warm = self.start_warm(*arguments, **how)
            stack.callback(end_group, warm.pid)
            return fresh.outcome(), warm.outcome()
