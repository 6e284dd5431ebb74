"""Ten thousand restarts in one elastic-run: memory and descriptors of both its processes stay as they are."""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import select
import struct
import sys
import tempfile
import time

import common
from common import BenchError, Spread, positive, say

MAY_GROW_KIB = 256  # from the first tenth of the samples to the last, anonymous memory as well as all that is resident
NAMES = {"anonymous": "anonymous memory, KiB", "resident": "RSS without the program's file, KiB",
         "descriptors": "descriptors"}
KINDS = {"default": [], "none": ["--log-dir=/dev/null"]}
PROCESSES = ["outer process", "launcher"]
SETTLED_S, SETTLE_TIMEOUT_S = 0.03, 60

NOTES = """\
Rank 0 kills itself as soon as all ranks of its attempt are in main(), so a round ends at once and no rank is
slow. At the samples it first waits until both processes were looked at, all ranks running and all
descriptors open: always the same point of a round. Memory is from smaps, without the pages of the
program's own file: the first restarts read more of them, up to the size of the file. Each rank checks that
its TORCHELASTIC_RESTART_COUNT is the attempt that it is in by count. Restart: from the death of rank 0 until
the last new rank is in main()."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """One process while all ranks of an attempt run; memory in KiB."""

    attempt: int
    anonymous: int
    resident: int  # without the pages of the program's file that are as in the file
    descriptors: int


@dataclasses.dataclass(frozen=True)
class Growth:
    """One figure of one process, from the first tenth of the samples to the last (medians)."""

    process: str
    what: str
    first: float
    last: float
    allowed: float

    @property
    def flat(self):
        # A process that gives memory back is no leak; a descriptor that is missing is a mistake.
        grown = self.last - self.first
        return grown <= self.allowed if self.allowed else grown == 0


def main():
    args = parse_arguments()
    flat = True
    results = {}
    machine = common.machine()
    with tempfile.TemporaryDirectory(prefix="elastic-run-soak.") as temporary:
        worker = common.compile_c("restart_worker", temporary)
        binary = common.elastic_run_binary()
        print(f"{common.elastic_run_version(binary)}; {common.describe(machine)}")
        for kind in args.log_dir:
            samples, gaps, took_s = soak(binary, worker, kind, args, temporary)
            growths = judge(samples)
            report(args, kind, growths, gaps, took_s)
            flat = flat and all(growth.flat for growth in growths)
            results[kind] = {
                "seconds": took_s, "restart_ms": gaps,
                "samples": {name: [dataclasses.asdict(one) for one in found]
                            for name, found in samples.items()},
                "growth": [dataclasses.asdict(one) | {"flat": one.flat} for one in growths]}
    print(f"\n{NOTES}")
    if args.json:
        common.write_json(args.json, {"soak": "restarts", "machine": machine, "ranks": args.ranks,
                                      "restarts": args.restarts, "flat": flat, "runs": results})
    return 0 if flat else 1


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak restarts", description=__doc__)
    parser.add_argument("--restarts", type=positive, default=10_000, metavar="N")
    parser.add_argument("--ranks", type=positive, default=8, metavar="N")
    parser.add_argument("--samples", type=positive, default=100, metavar="N",
                        help="looks at the processes, 20 at least (%(default)s)")
    parser.add_argument("--log-dir", type=kinds, default=list(KINDS), metavar="default,none",
                        help="a run each: with log directories as by default, and without")
    parser.add_argument("--json", metavar="FILE", help="every sample as JSON")
    args = parser.parse_args()
    if args.samples < 20 or args.restarts < args.samples:
        parser.error("a tenth of the samples is compared: 20 samples at least, and a restart for each")
    return args


def kinds(text):
    chosen = text.split(",")
    if not set(chosen) <= set(KINDS):
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(KINDS)}, or both")
    return chosen


def soak(binary, worker, kind, args, temporary):
    """({process: [Sample]}, [ms of each restart], seconds of the whole run)"""
    directory = pathlib.Path(temporary)
    look_every = args.restarts // args.samples
    marks = common.Marks(directory / "marks", args.ranks, args.restarts, look_every=look_every)
    samples = {name: [] for name in PROCESSES}
    with contextlib.ExitStack() as stack:
        ready, go = (stack.enter_context(fifo(directory / name)) for name in ("ready", "go"))
        began = time.perf_counter()
        launch = common.Launch(
            [binary, "--standalone", "--no-python", f"--nproc-per-node={args.ranks}",
             f"--max-restarts={args.restarts}", *KINDS[kind], worker, marks.path,
             str(directory / "ready"), str(directory / "go")], temporary, timeout_s=3600)
        stack.callback(launch.stop)
        while True:
            come, _, _ = select.select([ready, launch.pidfd], [], [], 600)
            if not come:
                raise BenchError("no restart in 600 s")
            if ready not in come:
                break
            attempt, = struct.unpack("=I", os.read(ready, 4))
            say(f"log directories: {kind}; restart {attempt} of {args.restarts}")
            for name, pid in zip(PROCESSES, (launch.pid, launcher_of(launch.pid))):
                samples[name].append(look(pid, attempt))
            os.write(go, b".")
        launch.wait()
        took_s = time.perf_counter() - began
    say("")
    return samples, marks.gaps_ms(), took_s


@contextlib.contextmanager
def fifo(path):
    """Open for reading and writing: no open of a rank blocks, and no end of file comes in between."""
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        os.unlink(path)


def launcher_of(outer):
    """The outer process has one child; workers are the launcher's."""
    children = pathlib.Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
    if len(children) != 1:
        raise BenchError(f"the outer process has {len(children)} children instead of one")
    return int(children[0])


def look(pid, attempt):
    descriptors = settled_descriptors(pid)
    # Not the private memory: pages of a program that was linked just now are dirty until they are written back, and
    # count as private or shared by whether another elastic-run happens to run.
    program = os.readlink(f"/proc/{pid}/exe")
    anonymous = resident = 0
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        first, *others = line.split(maxsplit=5)
        if not first.endswith(":"):
            of_program = others[4:] == [program]
        elif first == "Anonymous:":
            anonymous += int(others[0])
            resident += int(others[0]) if of_program else 0
        elif first == "Rss:" and not of_program:
            resident += int(others[0])
    return Sample(attempt, anonymous, resident, descriptors)


def settled_descriptors(pid):
    """How many are open when that has not changed for a moment in which it had nothing to do: what has to do with the start
    of the last rank is done in the moment after it runs, and the outer process hears of the ranks in bursts."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    count, since = -1, 0.0
    while True:
        now = time.monotonic()
        found = len(os.listdir(f"/proc/{pid}/fd"))
        if found != count or not sleeps(pid):
            count, since = found, now
        elif now - since >= SETTLED_S:
            return count
        if now > deadline:
            raise BenchError(f"the descriptors of process {pid} change all the time")
        time.sleep(0.002)


def sleeps(pid):
    """None of its threads runs, or waits for a processor."""
    try:
        stats = [path.read_text() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # one has ended meanwhile
        return False
    return all(stat.rpartition(")")[2].split()[0] == "S" for stat in stats)


def judge(samples):
    growths = []
    for name, found in samples.items():
        tenth = max(1, len(found) // 10)
        for what, allowed in (("anonymous", MAY_GROW_KIB), ("resident", MAY_GROW_KIB), ("descriptors", 0)):
            first, last = (Spread.of([getattr(one, what) for one in part]).median
                           for part in (found[:tenth], found[-tenth:]))
            growths.append(Growth(name, what, first, last, allowed))
    return growths


def report(args, kind, growths, gaps, took_s):
    tenth = max(1, len(gaps) // 10)
    first, last = Spread.of(gaps[:tenth]), Spread.of(gaps[-tenth:])
    print(f"\n{args.restarts} RESTARTS OF {args.ranks} RANKS, log directories: {kind}")
    common.print_table(
        ["<process", "<", "first tenth", "last tenth", "grown", "may grow", "<"],
        [[one.process, NAMES[one.what], f"{one.first:g}", f"{one.last:g}", f"{one.last - one.first:+g}",
          f"{one.allowed:g}", "flat" if one.flat else "NOT FLAT"] for one in growths])
    print(f"a restart takes {first.median:.2f} ms (at most {first.max:.0f}) in the first tenth, "
          f"{last.median:.2f} ms (at most {last.max:.0f}) in the last; all in all {took_s:.1f} s, "
          f"{1000 * took_s / args.restarts:.2f} ms for each restart")
    print("verdict: " + ("flat" if all(one.flat for one in growths) else "NOT FLAT"))
    sys.stdout.flush()


if __name__ == "__main__":
    common.run_main(main)
