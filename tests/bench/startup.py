"""A job that does nothing: its time and the launcher's memory, beside torchrun and a bare loop."""

import argparse
import contextlib
import dataclasses
import gc
import os
import pathlib
import select
import tempfile

import common
from common import BenchError, Goal, Spread, positive, say

OURS, TORCHRUN, BARE = "elastic-run", "torchrun", "bare loop"

NOTES = """\
Time: from posix_spawn of the launcher to the waitpid that reaps it, by the perf_counter of a Python
process that does nothing else. What it costs to start and reap any program that way is measured by
the worker alone, and is in every figure. Every run had to end with status 0.
Order: the launchers take turns, another one first in each round; torchrun is in some rounds only.
Ratios are taken between runs of the same round; their median counts. Each launcher ran once before,
uncounted.
Worker: a static C program that returns 0. Bare loop: a static C program that starts the workers by
vfork, setsid and execve, then waits for them.
Memory: read from smaps_rollup while all ranks run, summed over the launcher's processes, which are
all its descendants but the workers; peak RSS is the sum of their VmHWM."""


@dataclasses.dataclass(frozen=True)
class Memory:
    """All processes of one launcher, in KiB."""

    processes: int
    rss: int
    pss: int
    private: int
    peak: int


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        noop = common.compile_c("noop", temporary)
        bare = common.compile_c("spawn_wait", temporary)
        binary, torchrun = common.elastic_run_binary(), common.torchrun()

        def command(contender, ranks, *arguments):
            if contender == BARE:
                return [bare, str(ranks), noop, *arguments]
            return [binary if contender == OURS else torchrun, "--standalone", "--no-python",
                    f"--nproc-per-node={ranks}", noop, *arguments]

        machine = common.machine()
        gc.disable()  # a collection in the middle of a run would be counted
        floor = [common.timed([noop], temporary) for _ in range(20)]
        times = {ranks: time_rounds(command, ranks, args, temporary) for ranks in args.ranks}
        memory = {ranks: memory_rounds(command, ranks, args, temporary) for ranks in args.ranks}
        versions = {OURS: common.elastic_run_version(binary),
                    TORCHRUN: common.torch_version(torchrun)}
    goals = judge(times, memory)
    report(machine, versions, floor, times, memory, goals)
    if args.json:
        common.write_json(args.json, as_json(machine, versions, floor, times, memory, goals))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench startup", description=__doc__)
    parser.add_argument("--ranks", type=rank_list, default=[1, 8, 64], metavar="N,...")
    parser.add_argument("--runs", type=positive, default=40, metavar="N",
                        help="of elastic-run and the bare loop, at each rank count (%(default)s)")
    parser.add_argument("--torchrun-runs", type=positive, default=5, metavar="N",
                        help="torchrun takes seconds: how many of the runs it is in (%(default)s)")
    parser.add_argument("--memory-runs", type=positive, default=3, metavar="N",
                        help="of each launcher, at each rank count (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    args = parser.parse_args()
    args.torchrun_runs = min(args.torchrun_runs, args.runs)
    return args


def rank_list(text):
    return [positive(part) for part in text.split(",")]


# --- Time ----------------------------------------------------------------------------------------


def time_rounds(command, ranks, args, temporary):
    """{contender: {round: ms}}; in each round another contender comes first."""
    measured = {OURS: {}, TORCHRUN: {}, BARE: {}}
    for contender in measured:
        common.timed(command(contender, ranks), temporary)
    with_torchrun = {index * args.runs // args.torchrun_runs for index in range(args.torchrun_runs)}
    for number in range(args.runs):
        say(f"{ranks} ranks: round {number + 1} of {args.runs}")
        # Rounds of two and rounds of three take turns each for themselves: all come first equally.
        three = number in with_torchrun
        first = sum((other in with_torchrun) == three for other in range(number))
        turns = [OURS, TORCHRUN, BARE] if three else [OURS, BARE]
        for turn in range(len(turns)):
            contender = turns[(first + turn) % len(turns)]
            measured[contender][number] = common.timed(command(contender, ranks), temporary)
    return measured


# --- Memory --------------------------------------------------------------------------------------


def memory_rounds(command, ranks, args, temporary):
    """{contender: {round: Memory}}"""
    measured = {OURS: {}, TORCHRUN: {}, BARE: {}}
    for number in range(args.memory_runs):
        say(f"{ranks} ranks: memory, round {number + 1} of {args.memory_runs}")
        for contender in measured:
            measured[contender][number] = measure_memory(
                lambda *fifos: command(contender, ranks, *fifos), ranks, temporary)
    return measured


def measure_memory(command, ranks, temporary):
    """Looks at the launcher while all its ranks wait for a byte, then lets them go."""
    paths = [str(pathlib.Path(temporary) / name) for name in ("ready", "go")]
    with contextlib.ExitStack() as stack:
        for path in paths:
            os.mkfifo(path)
            stack.callback(os.unlink, path)
        # For reading and writing: no open of a rank blocks, and no end of file comes in between.
        ready, go = (os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in paths)
        launch = common.Launch(command(*paths), temporary)
        stack.callback(launch.stop)
        stack.callback(os.close, go)  # first of all: ranks that still wait then end
        stack.callback(os.close, ready)
        waiting = 0
        while waiting < ranks:
            come, _, _ = select.select([ready, launch.pidfd], [], [], 120)
            if ready not in come:
                launch.wait()
                raise BenchError(f"{waiting} of {ranks} ranks came: {' '.join(launch.command)}")
            waiting += len(os.read(ready, ranks))
        found = memory_of(launch.pid, os.stat(worker_of(launch.command)))
        os.write(go, b"." * ranks)
        launch.wait()
        return found


def worker_of(command):
    return command[-3]  # noop READY GO


def memory_of(launcher, worker):
    """The launcher and all its descendants that do not run the worker's program."""
    total = {"Rss": 0, "Pss": 0, "Private_Clean": 0, "Private_Dirty": 0, "VmHWM": 0}
    processes = 0
    for pid in common.tree_of(launcher):
        try:
            if os.path.samestat(os.stat(f"/proc/{pid}/exe"), worker):
                continue
        except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
            continue
        of_one = common.memory_kib(pid, total)
        processes += of_one["Rss"] > 0
        for name, kib in of_one.items():
            total[name] += kib
    return Memory(processes, total["Rss"], total["Pss"],
                  total["Private_Clean"] + total["Private_Dirty"], total["VmHWM"])


# --- Report --------------------------------------------------------------------------------------


def rss(measured):
    return {number: found.rss for number, found in measured.items()}


def judge(times, memory):
    goals = []
    if 8 in times:
        ratio = Spread.of(common.pairs(times[8][TORCHRUN], times[8][OURS]))
        goals.append(Goal("8 ranks: times faster than torchrun", 100, True, ratio))
    if 64 in times:
        ratio = Spread.of(common.pairs(times[64][OURS], times[64][BARE]))
        goals.append(Goal("64 ranks: times the bare loop", 1.5, False, ratio))
    for ranks, measured in memory.items():
        ratio = Spread.of(common.pairs(rss(measured[TORCHRUN]), rss(measured[OURS])))
        plural = "rank" if ranks == 1 else "ranks"
        goals.append(Goal(f"{ranks} {plural}: times less memory than torchrun", 50, True, ratio))
    return goals


def report(machine, versions, floor, times, memory, goals):
    say("")
    print(f"{versions[OURS]}; {versions[TORCHRUN]}; {common.describe(machine)}")
    least = Spread.of(floor)
    print(f"the worker alone, without a launcher: {least.median:.2f} ms ({least.min:.2f} to "
          f"{least.max:.2f}, {least.count} runs)")

    print("\nSTART TO END OF A JOB THAT DOES NOTHING, ms; ratio: to elastic-run in the same round")
    common.print_table(["ranks", "<launcher", "runs", "median", "min", "max", "ratio",
                        "min to max"], list(time_table(times)))
    print("\nMEMORY OF THE LAUNCHER WHILE RANKS RUN, MiB (medians); ratio: of RSS to elastic-run's")
    common.print_table(["ranks", "<launcher", "runs", "processes", "RSS", "PSS", "private",
                        "peak RSS", "ratio"], list(memory_table(memory)))
    print("\nGOALS")
    common.print_goals(goals)
    print(f"\n{NOTES}")


def time_table(times):
    for ranks, measured in times.items():
        for contender, rounds in measured.items():
            took = Spread.of(list(rounds.values()))
            row = [str(ranks), contender, str(took.count),
                   *(f"{value:.2f}" for value in (took.median, took.min, took.max))]
            ratio = Spread.of(common.pairs(rounds, measured[OURS]))
            yield row + ([f"{ratio.median:.2f}", f"{ratio.min:.2f} to {ratio.max:.2f}"]
                         if contender != OURS else ["", ""])


def memory_table(memory):
    for ranks, measured in memory.items():
        for contender, rounds in measured.items():
            found = list(rounds.values())
            middle = [Spread.of([getattr(one, field) for one in found]).median / 1024
                      for field in ("rss", "pss", "private", "peak")]
            ratio = Spread.of(common.pairs(rss(rounds), rss(measured[OURS]))).median
            yield [str(ranks), contender, str(len(found)), str(max(one.processes for one in found)),
                   *(f"{value:.2f}" for value in middle),
                   f"{ratio:.2f}" if contender != OURS else ""]


def as_json(machine, versions, floor, times, memory, goals):
    return {
        "benchmark": "startup", "machine": machine, "versions": versions,
        "worker_alone_ms": floor,
        "start_to_end_ms": times,
        "memory_kib": {ranks: {contender: {number: dataclasses.asdict(found)
                                           for number, found in rounds.items()}
                               for contender, rounds in measured.items()}
                       for ranks, measured in memory.items()},
        "goals": [goal.as_json() for goal in goals],
    }


if __name__ == "__main__":
    common.run_main(main)
