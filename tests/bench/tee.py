"""Ranks whose output goes to the console and to files (-t 3), beside torchrun and tee(1): speed and delay."""

import argparse
import contextlib
import dataclasses
import fcntl
import os
import pathlib
import shutil
import statistics
import tempfile
import threading
import time

import common
from common import BenchError, Goal, Spread, positive, say

OURS, TORCHRUN, TEE, PIPE = "elastic-run", "torchrun", "tee(1)", "pipe alone"
LINE = 100

NOTES = """\
Workers: a static C program that writes lines of 100 bytes, in writes of the size that is named above; the
launchers run it with -t 3 and a log directory, tee(1) is one process a rank, fed by a pipe. The console of
all is one pipe of 1 MiB, which a thread of this process reads and whose bytes and lines it counts.
Total: from posix_spawn of the launcher until it has ended and the console has ended. Flow: from the first
byte at the console to the last, without the launcher's start; ratios to torchrun are those of the flow, in
its favour, ratios to tee(1) those of the total. Each round has one run of each; ratios are taken between
runs of the same round; torchrun is in some rounds only. Lines missing: by the count of what was shown.
Delay: from the moment before a worker writes a line until this process has read it; the ranks write a line
each pause. `pipe alone`: the worker writes to the console itself."""


@dataclasses.dataclass(frozen=True)
class Run:
    """Two ranks' output through one launcher."""

    total_s: float
    flow_s: float
    lines_written: int
    lines_shown: int
    bytes_written: int  # of lines, without prefixes
    bytes_in_files: int
    cpu_s: float  # of launcher, workers and all, without the reader

    @property
    def flow_mb_per_s(self):
        return self.bytes_written / 1e6 / self.flow_s


class Console:
    """A pipe, and a thread that reads it to its end."""

    def __init__(self, keep):
        reading, self.writing = os.pipe()
        with contextlib.suppress(OSError):  # as it is, if that is refused
            fcntl.fcntl(self.writing, fcntl.F_SETPIPE_SZ, 1 << 20)
        self._reading = reading
        self._keep = keep
        self.first = self.last = None
        self.lines = 0
        self.pieces = []  # (when, bytes), if they are kept
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while piece := os.read(self._reading, 1 << 20):
            self.last = time.monotonic()
            self.first = self.first or self.last
            if self._keep:
                self.pieces.append((time.monotonic_ns(), piece))
            self.lines += piece.count(b"\n")
        os.close(self._reading)

    def wait(self):
        os.close(self.writing)
        self._thread.join(60)
        if self._thread.is_alive():
            raise BenchError("somebody holds the console open")


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        need = 2 * args.ranks * args.megabytes * 1_000_000
        if shutil.disk_usage(temporary).free < need:
            raise BenchError(f"{temporary} has less than {need // 1_000_000} MB left; name another place by TMPDIR")
        bench = Bench(args, temporary)
        machine = common.machine()
        rounds = bench.rounds()
        delays = bench.delays()
        versions = {OURS: common.elastic_run_version(bench.binary), TORCHRUN: common.torch_version(bench.torchrun)}
    goals = judge(rounds, delays)
    report(args, machine, versions, rounds, delays, goals)
    if args.json:
        common.write_json(args.json, {
            "benchmark": "tee", "machine": machine, "versions": versions,
            "ranks": args.ranks, "megabytes": args.megabytes, "write_bytes": args.write_bytes,
            "runs": {contender: {number: dataclasses.asdict(run) for number, run in runs.items()}
                     for contender, runs in rounds.items()},
            "delay_us": delays, "goals": [goal.as_json() for goal in goals]})


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench tee", description=__doc__)
    parser.add_argument("--ranks", type=positive, default=2, metavar="N")
    parser.add_argument("--megabytes", type=positive, default=400, metavar="N", help="of each rank (%(default)s)")
    parser.add_argument("--write-bytes", type=positive, default=8192, metavar="N",
                        help="what a worker writes at once (%(default)s, as Python's print to a pipe)")
    parser.add_argument("--runs", type=positive, default=5, metavar="N")
    parser.add_argument("--torchrun-runs", type=positive, default=3, metavar="N",
                        help="how many of the runs it is in (%(default)s)")
    parser.add_argument("--stamps", type=positive, default=1000, metavar="N", help="of each rank (%(default)s)")
    parser.add_argument("--pause-us", type=positive, default=2000, metavar="N", help="between them (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    args = parser.parse_args()
    args.torchrun_runs = min(args.torchrun_runs, args.runs)
    return args


class Bench:
    def __init__(self, args, temporary):
        self.args = args
        self.temporary = temporary
        self.logs = pathlib.Path(temporary) / "logs"
        self.binary, self.torchrun = common.elastic_run_binary(), common.torchrun()
        self.worker = common.compile_c("tee_worker", temporary)
        if not shutil.which("tee"):
            raise BenchError("there is no tee")

    def command(self, contender, *arguments):
        worker = [self.worker, *map(str, arguments)]
        if contender in (OURS, TORCHRUN):
            return [self.binary if contender == OURS else self.torchrun, "--standalone", "--no-python", "-t", "3",
                    f"--log-dir={self.logs}", f"--nproc-per-node={self.args.ranks}", *worker]
        one = " ".join(worker) + (f" | tee {self.logs}/$rank.log" if contender == TEE else "")
        ranks = " ".join(map(str, range(self.args.ranks)))
        return ["/bin/sh", "-c", f"for rank in {ranks}; do {one} & done; wait"]

    def start(self, contender, *arguments, keep=False):
        """The console of a run that is over, its seconds, and the processor's; the log files are there."""
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir()
        console = Console(keep)
        began = time.monotonic()
        before = os.times()
        launch = common.Launch(self.command(contender, *arguments), self.temporary, timeout_s=600,
                               output=console.writing)
        try:
            launch.wait()
        finally:
            launch.stop()
        after = os.times()
        console.wait()
        total = time.monotonic() - began
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return console, total, cpu

    def run(self, contender):
        count = self.args.megabytes * 1_000_000 // LINE
        console, total, cpu = self.start(contender, "lines", count, self.args.write_bytes)
        written = count * self.args.ranks
        in_files = sum(path.stat().st_size for path in self.logs.rglob("*") if path.is_file())
        shown = min(console.lines, written)  # launchers say a line of their own, too
        return Run(total, console.last - console.first, written, shown, written * LINE, in_files, cpu)

    def rounds(self):
        """{contender: {round: Run}}; in each round another one comes first."""
        measured = {OURS: {}, TORCHRUN: {}, TEE: {}}
        with_torchrun = {index * self.args.runs // self.args.torchrun_runs for index in range(self.args.torchrun_runs)}
        for number in range(self.args.runs):
            turns = [one for one in measured if one != TORCHRUN or number in with_torchrun]
            for turn in range(len(turns)):
                contender = turns[(number + turn) % len(turns)]
                say(f"round {number + 1} of {self.args.runs}: {contender}")
                measured[contender][number] = self.run(contender)
        return measured

    def delays(self):
        """{contender: microseconds of each line}"""
        found = {}
        for contender in (OURS, TORCHRUN, TEE, PIPE):
            say(f"delay of {contender}")
            console, _, _ = self.start(contender, "stamps", self.args.stamps, self.args.pause_us, keep=True)
            found[contender] = list(stamped(console.pieces))
            if len(found[contender]) != self.args.stamps * self.args.ranks:
                raise BenchError(f"{contender}: {len(found[contender])} of "
                                 f"{self.args.stamps * self.args.ranks} lines came")
        return found


def stamped(pieces):
    """The age of each line that has a time in it, when its end was read."""
    rest = b""
    for when, piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            stamp = line.rpartition(b"]:")[2]
            if stamp.isdigit():
                yield (when - int(stamp)) / 1000


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# --- Report --------------------------------------------------------------------------------------


def judge(rounds, delays):
    def each(contender, what):
        return {number: what(run) for number, run in rounds[contender].items()}

    flow = lambda run: run.flow_mb_per_s
    total = lambda run: run.total_s
    late = percentile(delays[OURS], 0.99) / 1000
    return [
        Goal("times torchrun's throughput", 3, True,
             Spread.of(common.pairs(each(OURS, flow), each(TORCHRUN, flow)))),
        Goal("times the time of tee(1)", 2, False, Spread.of(common.pairs(each(OURS, total), each(TEE, total)))),
        Goal("share of the lines that the console got", 1, True,
             Spread.of([run.lines_shown / run.lines_written for run in rounds[OURS].values()])),
        Goal("share of the bytes that the log files have", 1, True,
             Spread.of([run.bytes_in_files / run.bytes_written for run in rounds[OURS].values()])),
        Goal("delay of a line, 99th percentile, ms", 2, False, Spread.of([late])),
    ]


def report(args, machine, versions, rounds, delays, goals):
    say("")
    print(f"{versions[OURS]}; {versions[TORCHRUN]}; {common.describe(machine)}")
    print(f"\n{args.ranks} RANKS WRITE {args.megabytes} MB EACH, {args.write_bytes} BYTES AT ONCE (medians)")
    common.print_table(["<through", "runs", "total s", "flow s", "MB/s", "CPU s", "ratio", "lines missing",
                        "MB in files"], list(run_table(rounds)))
    print(f"\nDELAY OF A LINE, ms ({args.ranks} ranks, a line each {args.pause_us} us)")
    common.print_table(["<through", "lines", "median", "p90", "p99", "max"], [
        [contender, str(len(found)), *(f"{value / 1000:.3f}" for value in (
            statistics.median(found), percentile(found, 0.9), percentile(found, 0.99), max(found)))]
        for contender, found in delays.items()])
    print("\nGOALS")
    common.print_goals(goals)
    print(f"\n{NOTES}")


def run_table(rounds):
    for contender, runs in rounds.items():
        found = list(runs.values())

        def middle(what):
            return statistics.median(getattr(run, what) for run in found)

        ratio = common.pairs({number: run.total_s for number, run in runs.items()},
                             {number: run.total_s for number, run in rounds[OURS].items()})
        yield [contender, str(len(found)), f"{middle('total_s'):.2f}", f"{middle('flow_s'):.2f}",
               f"{middle('flow_mb_per_s'):.0f}", f"{middle('cpu_s'):.2f}",
               "" if contender == OURS else f"{statistics.median(ratio):.2f}",
               str(max(run.lines_written - run.lines_shown for run in found)),
               f"{min(run.bytes_in_files for run in found) / 1e6:.1f}"]


if __name__ == "__main__":
    common.run_main(main)
