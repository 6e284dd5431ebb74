"""What the benchmarks share: the programs under test, runs of them, figures, tables, JSON."""

import argparse
import dataclasses
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import select
import signal
import statistics
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


class BenchError(Exception):
    """The measurement can't be made, or what it measured is not worth anything."""


def run_main(main):
    """Runs a benchmark's main(); an error is one line on stderr and exit status 1."""
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"bench: error: {error}")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


# --- The programs --------------------------------------------------------------------------------


def elastic_run_binary():
    binary = os.environ.get("ELASTIC_RUN_BINARY", "")
    if not os.access(binary, os.X_OK) or os.path.isdir(binary):
        raise BenchError(f"no elastic-run at {binary!r}: build it (cmake --preset release && cmake "
                         "--build --preset release), or name it by ELASTIC_RUN_BINARY")
    return os.path.abspath(binary)


def torchrun():
    path = pathlib.Path(os.environ.get("ELASTIC_RUN_VENV", "")) / "bin/torchrun"
    if not os.access(path, os.X_OK):
        raise BenchError(f"no {path}: scripts/test installs PyTorch there, or name another "
                         "environment by ELASTIC_RUN_VENV")
    return str(path)


def elastic_run_version(binary):
    done = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else "unknown"


def torch_version(torchrun_path):
    return package_version(torchrun_path, "torch")


def package_version(program, name):
    """Of a package in the environment that has this program. From its record: importing it would take seconds."""
    places = pathlib.Path(program).parents[1].glob("lib/python*/site-packages")
    paths = [str(place) for place in places]
    for found in importlib.metadata.distributions(name=name, path=paths):
        return f"{name} {found.version}"
    return f"{name} unknown"


def compile_c(name, directory, place=HERE):
    """The path of a static executable made of tests/bench/NAME.c, or of one in another place."""
    path = pathlib.Path(directory) / name
    command = ["cc", "-O2", "-static", "-Wall", "-Wextra", "-o", path, place / f"{name}.c"]
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BenchError("no C compiler: apt-get install gcc") from None
    if made.returncode != 0:
        raise BenchError(f"{name}.c does not compile:\n{made.stderr}")
    return str(path)


def built_program(binary, name):
    """What the build that made `binary` has in tests/bench."""
    program = pathlib.Path(binary).parent / "tests/bench" / name
    if not os.access(program, os.X_OK):
        raise BenchError(f"no {program}: build everything (cmake --build --preset release)")
    return str(program)


def environment(temporary):
    """The whole environment of what is measured. OMP_NUM_THREADS keeps launchers from warning."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(temporary),
            "TMPDIR": str(temporary), "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}


# --- Runs ----------------------------------------------------------------------------------------


class Launch:
    """One run of a program: started by posix_spawn, with nothing to read; its output is kept for
    the error message, or goes to the descriptor `output`. `variables` are added to its environment.
    Must be waited for, or stopped."""

    def __init__(self, command, temporary, timeout_s=120, variables=None, output=None):
        self.command = command
        self._output = pathlib.Path(temporary) / "output" if output is None else None
        self._timeout_s = timeout_s
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self._output), os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
             0o600) if output is None else (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        values = environment(temporary) | (variables or {})
        # Python ignores these two, and what is ignored stays so over exec.
        defaults = [signal.SIGPIPE, signal.SIGXFSZ]
        self.began_ns = time.perf_counter_ns()
        self.pid = os.posix_spawn(command[0], command, values, file_actions=actions,
                                  setsigdef=defaults)
        self.pidfd = os.pidfd_open(self.pid)

    def wait(self):
        """Milliseconds from start to end; an error if it does not end with status 0, or in time."""
        if not select.select([self.pidfd], [], [], self._timeout_s)[0]:
            self.stop()
            raise BenchError(self._told(f"still running after {self._timeout_s} s"))
        _, status = os.waitpid(self.pid, 0)
        duration_ms = (time.perf_counter_ns() - self.began_ns) / 1e6
        os.close(self.pidfd)
        self.pidfd = -1
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            raise BenchError(self._told(f"exit status {code}" if code > 0 else
                                        f"killed by {signal.Signals(-code).name}"))
        return duration_ms

    def stop(self):
        """Ends it, in order where it can; does nothing to what has ended."""
        if self.pidfd < 0:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            signal.pidfd_send_signal(self.pidfd, number)
            if select.select([self.pidfd], [], [], 10)[0]:
                break
        os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        self.pidfd = -1

    def _told(self, what):
        text = self._output.read_text(errors="replace")[-2000:] if self._output else ""
        return f"{what}: {' '.join(self.command)}\n{text}"


def timed(command, temporary):
    """Milliseconds from posix_spawn to the end that waitpid tells."""
    launch = Launch(command, temporary)
    try:
        return launch.wait()
    finally:
        launch.stop()


# --- Processes -----------------------------------------------------------------------------------


def tree_of(ancestor):
    """The pids of a process and of all its descendants."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = pathlib.Path(f"/proc/{name}/stat").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        parent = int(stat[stat.rindex(")") + 2:].split()[1])
        children.setdefault(parent, []).append(int(name))
    found, left = [], [ancestor]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


def memory_kib(pid, names):
    """{name: KiB} of what smaps_rollup and status tell of a process; all 0 if it has ended: it holds nothing."""
    found = dict.fromkeys(names, 0)
    try:
        text = "".join(pathlib.Path(f"/proc/{pid}/{file}").read_text() for file in ("smaps_rollup", "status"))
    except (FileNotFoundError, ProcessLookupError):
        return found
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in found:
            found[name] = int(value.split()[0])
    return found


# --- Restarts ------------------------------------------------------------------------------------


class Marks:
    """The file through which the ranks of restart_worker.c tell when they came and died."""

    HEAD = struct.Struct("=8I")

    def __init__(self, path, ranks, restarts, pause_us=0, pause_spread_us=0, look_every=1):
        self.path, self.ranks, self.restarts = str(path), ranks, restarts
        times = restarts + (restarts + 1) * ranks
        head = self.HEAD.pack(ranks, restarts, pause_us, pause_spread_us, look_every, 0, 0, 0)
        pathlib.Path(path).write_bytes(head + bytes(8 * times))

    def gaps_ms(self):
        """For each restart: from the death of rank 0 until the last new rank was in main(). An error
        unless every rank of every attempt came."""
        data = pathlib.Path(self.path).read_bytes()
        arrived, wrong = self.HEAD.unpack_from(data)[5:7]
        expected = (self.restarts + 1) * self.ranks
        if wrong or arrived != expected:
            raise BenchError(f"{arrived} ranks came in {self.restarts + 1} attempts instead of "
                             f"{expected}, {wrong} of them to a wrong attempt")
        times = [one for one, in struct.iter_unpack("=q", data[self.HEAD.size:])]
        came = times[self.restarts:]
        return [(max(came[(number + 1) * self.ranks:(number + 2) * self.ranks]) - died) / 1e6
                for number, died in enumerate(times[:self.restarts])]


# --- Figures -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Spread:
    """The middle and the ends of some measurements."""

    count: int
    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values):
        return cls(len(values), statistics.median(values), min(values), max(values))


@dataclasses.dataclass(frozen=True)
class Goal:
    """A ratio, taken pair by pair, that is to stay on one side of a bound."""

    what: str
    bound: float
    at_least: bool
    ratio: Spread

    @property
    def reached(self):
        return self.ratio.median >= self.bound if self.at_least else self.ratio.median <= self.bound

    def row(self):
        sign = ">=" if self.at_least else "<="
        return ["reached" if self.reached else "MISSED", self.what, f"{sign} {self.bound:g}",
                f"{self.ratio.median:.2f}", f"{self.ratio.min:.2f} to {self.ratio.max:.2f}",
                f"{self.ratio.count}"]

    def as_json(self):
        return {"what": self.what, "bound": self.bound, "reached": self.reached,
                "side": "at least" if self.at_least else "at most",
                **dataclasses.asdict(self.ratio)}


def print_goals(goals):
    print_table(["goal", "<what", "bound", "median", "min to max", "pairs"],
                [goal.row() for goal in goals])


def print_table(head, rows):
    """Columns to the right, but those whose head begins with '<'."""
    left = [name.startswith("<") for name in head]
    lines = [[name.removeprefix("<") for name in head], *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = [cell.ljust(width) if to_left else cell.rjust(width)
                 for cell, width, to_left in zip(line, widths, left)]
        print("  ".join(cells).rstrip())


def positive(text):
    """The type of an option."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


def counts(text):
    """The type of an option: numbers of nodes, or 0 for none."""
    return [] if text == "0" else [positive(part) for part in text.split(",")]


def pairs(numerators, denominators):
    """Ratios of what was measured in the same round: both map a round to its figure."""
    return [numerators[number] / denominators[number] for number in numerators
            if number in denominators]


def machine():
    """To be asked before the measurement: the load is then that of others."""
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "load": os.getloadavg()[0],
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def describe(about):
    busy = " (OTHERS ARE AT WORK, the figures suffer)" if about["load"] > 0.5 else ""
    return (f"{about['cpu']}, {about['cores']} cores, Linux {about['kernel']}; load average at the "
            f"start {about['load']:.2f}{busy}")


def say(text):
    """Progress, for whoever waits at a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def write_json(path, value):
    try:
        pathlib.Path(path).write_text(json.dumps(value, indent=2) + "\n")
    except OSError as error:
        raise BenchError(f"can't write {path}: {error.strerror}") from None
