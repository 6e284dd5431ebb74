"""elastic-gpu-probe over a socket pair, with stand-in libraries for NVIDIA's. docs/gpu-probe.md has its lines, and
tests/stand_ins/gpu/README.md what the libraries can be made to do."""

import json
import os
import socket

SHARE = 65536  # bytes of each rank in these tests' all-gathers


def build_directory(elastic_run):
    return elastic_run.binary.parent


def libraries(elastic_run):
    """The directory of the stand-ins."""
    return build_directory(elastic_run) / "tests/stand_ins/gpu"


def program(elastic_run):
    return build_directory(elastic_run) / "elastic-gpu-probe"


def facts_file(directory, **facts):
    """A file of facts; `_1_name` is of device 1 alone."""
    lines = []
    for name, value in facts.items():
        if name.startswith("_"):
            name = name[1:].replace("_", ".", 1)
        lines.append(f"{name}={value}\n")
    path = directory / f"facts-{len(list(directory.glob('facts-*')))}"
    path.write_bytes("".join(lines).encode("utf-8", "surrogateescape"))
    return path


def without(library, symbols, directory):
    """A copy of a library in which these functions are not found: their names are others."""
    content = library.read_bytes()
    for symbol in symbols:
        name = b"\0" + symbol.encode() + b"\0"
        assert content.count(name) >= 1, f"{library} has no {symbol}"
        content = content.replace(name, name[:-2] + b"~\0")
    copy = directory / library.name
    copy.write_bytes(content)
    copy.chmod(0o755)
    return copy


def line_of(request):
    """A request on the wire: each member of a list is a value of its own."""
    values = [(name, value) for name, given in request.items() for value in (given if isinstance(given, list) else [given])]
    return "\t".join(f"{name}={value}" for name, value in values).encode() + b"\n"


class Probe:
    """A probe that runs. `faults`, `facts`: what the stand-ins are told; `env`: changes beside."""

    def __init__(self, elastic_run, faults=None, facts=None, env=None, command=None, **popen):
        self._libraries = libraries(elastic_run)
        ours, theirs = socket.socketpair()
        self.socket = ours
        self.socket.settimeout(60)
        self._read = b""
        changes = {"ELASTIC_RUN_PROBE_PRODUCT": "128", "LD_LIBRARY_PATH": str(self._libraries),
                   "STAND_IN_GPU_FAULTS": faults, "STAND_IN_GPU_FACTS": str(facts) if facts else None}
        with theirs:
            self.running = elastic_run.start(program=command or [program(elastic_run)], stdout=theirs,
                                             env=changes | (env or {}), **popen)

    def send(self, request):
        """A request as a dictionary, or bytes as they are."""
        self.socket.sendall(request if isinstance(request, bytes) else line_of(request))

    def receive_line(self):
        """The next line's bytes without its end; b"" when there are no more."""
        while b"\n" not in self._read:
            piece = self.socket.recv(65536)
            if not piece:
                assert not self._read, f"half a line: {self._read}"
                return b""
            self._read += piece
        line, self._read = self._read.split(b"\n", 1)
        return line

    def receive(self):
        line = self.receive_line()
        assert line, "the probe has ended without a reply"
        return json.loads(line)

    def ask(self, request):
        self.send(request)
        return self.receive()

    def open(self, device=0, **candidates):
        usual = {"cuda": ["libcuda.so.1"], "nccl": ["libnccl.so.2"],
                 "cublaslt": ["libcublasLt.so.13", "libcublasLt.so.12"], "nvml": ["libnvidia-ml.so.1"]}
        return self.ask({"do": "open", "device": device} | usual |
                        {name: list(map(os.fspath, paths)) for name, paths in candidates.items()})

    def is_silent(self, seconds):
        """True if nothing is said in that time."""
        self.socket.settimeout(seconds)
        try:
            self._read += self.socket.recv(1)
            return False
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(60)

    def close(self):
        """Ends it as elastic-run does; the result of the program."""
        self.socket.close()
        return self.running.wait()


def gather(rank, world, id, deadline_ms=60000, size=SHARE):
    return {"do": "gather", "id": id, "rank": rank, "world": world, "bytes": size, "deadline_ms": deadline_ms}
