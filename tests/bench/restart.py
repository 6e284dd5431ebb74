"""A rank dies: the time until all new ranks run, beside torchrun and a bare loop; until training goes on."""

import argparse
import contextlib
import gc
import os
import pathlib
import select
import shutil
import signal
import tempfile
import time

import common
from common import BenchError, Goal, Spread, positive, say

OURS, NO_LOGS, BARE = "elastic-run", "elastic-run, no logs", "bare loop"
WARM = "elastic-run, warm"
TORCHRUN, TORCHRUN_QUICK = "torchrun", "torchrun, 1 ms"

EXAMPLE = common.HERE.parents[1] / "examples/fashion_mnist.py"
CRASH_AT, CHECKPOINT_EVERY = 8, 5  # steps
TRAINING_TIMEOUT_S = 300
READY_STEPS = 50  # of the first round, before a rank is killed from outside
# In torchrun's own traceback where it has read a worker's error file before there was anything in it.
READ_TOO_EARLY = ("_capture_process_failures", "JSONDecodeError")
MOST_BROKEN = 5  # of one run
# How long rank 0 lives on when all are there: so that each launcher is at rest again, and so that the
# deaths fall anywhere between two looks of one that looks every 100 ms.
PAUSE_US, PAUSE_SPREAD_US = 20_000, 100_000

NOTES = """\
Restart: rank 0 notes CLOCK_MONOTONIC and kills itself by SIGKILL; each new rank notes it as the first
thing in main(). The figure is from the first to the last of these. The worker is a static C program that
ends by SIGTERM at once. Each run makes several restarts; the table's median and max are over all of them.
Order: the launchers take turns, another one first in each round; torchrun is in some rounds only. Ratios
are taken between the runs' medians in the same round; their median counts. Each ran once before, uncounted.
Bare loop: a static C program that starts the workers by vfork, setsid and execve, sends SIGTERM to each
one's group when one has died, waits for all of them and starts them again. It does nothing else.
No logs: --log-dir=/dev/null. 1 ms: --monitor-interval=0.001 instead of torchrun's own 0.1 s.
Training: rank 1 of examples/fashion_mnist.py says that it kills itself at a step; the figure is from that
line until the line of the first step done after the restart, as they are read from the launcher's output.
With --first-step rank 1 is killed from outside instead, when 50 steps are done or warm workers wait
(--warm-workers=on --warm-after=0), and the restart itself is not measured.
torchrun has TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, without which gloo may fail after its restarts. Broke:
torchrun ended by an exception of its own, having read the error file of a worker that was still writing it;
such a run is made again."""


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        programs = {"worker": common.compile_c("restart_worker", temporary),
                    BARE: common.compile_c("respawn", temporary),
                    OURS: common.elastic_run_binary(), TORCHRUN: common.torchrun()}
        machine = common.machine()
        gc.disable()  # a collection would take a core from what is measured
        gaps = {} if args.first_step else restart_rounds(programs, args, temporary)
        gc.enable()
        training, broke = training_rounds(programs, args, temporary) if args.training else ({}, {})
        versions = {OURS: common.elastic_run_version(programs[OURS]),
                    TORCHRUN: common.torch_version(programs[TORCHRUN])}
    goals = judge_first_step(training) if args.first_step else judge(gaps)
    report(args, machine, versions, gaps, (training, broke), goals)
    if args.json:
        common.write_json(args.json, {
            "benchmark": "restart", "machine": machine, "versions": versions, "ranks": args.ranks,
            "restart_ms": gaps, "training_ranks": args.training_ranks,
            "failure_to_step_ms": training, "broken_runs": broke, "goals": [goal.as_json() for goal in goals]})


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench restart", description=__doc__)
    parser.add_argument("--ranks", type=positive, default=8, metavar="N")
    parser.add_argument("--runs", type=positive, default=12, metavar="N",
                        help="of elastic-run and the bare loop (%(default)s)")
    parser.add_argument("--restarts", type=positive, default=20, metavar="N",
                        help="in each of these runs (%(default)s)")
    parser.add_argument("--torchrun-runs", type=positive, default=2, metavar="N",
                        help="torchrun takes seconds to start: how many of the runs it is in (%(default)s)")
    parser.add_argument("--torchrun-restarts", type=positive, default=5, metavar="N",
                        help="in each of these runs (%(default)s)")
    parser.add_argument("--training", action=argparse.BooleanOptionalAction, default=True,
                        help="measure also how long training stands still")
    parser.add_argument("--training-runs", type=positive, default=3, metavar="N",
                        help="of each launcher (%(default)s)")
    parser.add_argument("--training-ranks", type=positive, default=4, metavar="N")
    parser.add_argument("--first-step", action="store_true",
                        help="measure only how long training stands still, with and without warm workers")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    args = parser.parse_args()
    args.torchrun_runs = min(args.torchrun_runs, args.runs)
    return args


# --- Until all new ranks run ---------------------------------------------------------------------


def command_of(contender, programs, ranks, restarts):
    """The launcher's command line; the worker's path for the marks is to be added."""
    if contender == BARE:
        return [programs[BARE], str(ranks), programs["worker"]]
    more = {NO_LOGS: ["--log-dir=/dev/null"], TORCHRUN_QUICK: ["--monitor-interval=0.001"]}
    launcher = programs[OURS if contender in (OURS, NO_LOGS) else TORCHRUN]
    return [launcher, "--standalone", "--no-python", f"--nproc-per-node={ranks}",
            f"--max-restarts={restarts}", *more.get(contender, []), programs["worker"]]


def restart_rounds(programs, args, temporary):
    """{contender: {round: [ms of each restart]}}; in each round another contender comes first."""
    two_kinds = [OURS, NO_LOGS, BARE]
    all_kinds = [*two_kinds, TORCHRUN, TORCHRUN_QUICK]
    measured = {contender: {} for contender in all_kinds}
    for contender in all_kinds:
        restarts_of_one_run(contender, programs, args.ranks, 1, temporary)
    with_torchrun = {index * args.runs // args.torchrun_runs for index in range(args.torchrun_runs)}
    for number in range(args.runs):
        say(f"restarts: round {number + 1} of {args.runs}")
        turns = all_kinds if number in with_torchrun else two_kinds
        # Rounds with torchrun and those without take turns each for themselves: all come first equally.
        first = sum((other in with_torchrun) == (number in with_torchrun) for other in range(number))
        for turn in range(len(turns)):
            contender = turns[(first + turn) % len(turns)]
            slow = contender in (TORCHRUN, TORCHRUN_QUICK)
            measured[contender][number] = restarts_of_one_run(
                contender, programs, args.ranks, args.torchrun_restarts if slow else args.restarts,
                temporary)
    return measured


def restarts_of_one_run(contender, programs, ranks, restarts, temporary):
    marks = common.Marks(pathlib.Path(temporary) / "marks", ranks, restarts, PAUSE_US, PAUSE_SPREAD_US)
    common.timed([*command_of(contender, programs, ranks, restarts), marks.path], temporary)
    return marks.gaps_ms()


# --- Until training goes on ----------------------------------------------------------------------


def training_rounds(programs, args, temporary):
    """{contender: {round: ms}}, {contender: how many runs its own mistake has ended}"""
    measured = {OURS: {}, TORCHRUN: {}} | ({WARM: {}} if args.first_step else {})
    broke = dict.fromkeys(measured, 0)
    contenders = list(measured)
    for number in range(args.training_runs):
        say(f"training: round {number + 1} of {args.training_runs}")
        for contender in contenders if number % 2 == 0 else reversed(contenders):
            for attempt in range(1 + MOST_BROKEN):
                try:
                    measured[contender][number] = failure_to_step(
                        contender, programs, args.training_ranks, temporary, args.first_step)
                    break
                except LineMissing as missing:
                    broke[contender] += 1
                    is_known = all(mark in missing.told for mark in READ_TOO_EARLY)
                    if contender != TORCHRUN or not is_known or attempt == MOST_BROKEN:
                        raise
    return measured, broke


class LineMissing(BenchError):
    """`told`: all that the launcher has printed instead."""

    def __init__(self, text, command, told):
        super().__init__(f"no line with {text!r}: {' '.join(command)}\n{told[-2000:]}")
        self.told = told


def rank_of_job(launcher, rank):
    """The pid of a rank whose environment tells of it: a descendant of the launcher, in its first round."""
    wanted = {f"RANK={rank}".encode(), b"TORCHELASTIC_RESTART_COUNT=0"}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted <= set((process / "environ").read_bytes().split(b"\0")) and is_below(int(process.name), launcher):
                return int(process.name)
        except OSError:
            continue  # it has ended, or is none of ours
    raise BenchError(f"no process is rank {rank}")


def is_below(pid, ancestor):
    while pid > 1 and pid != ancestor:
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid == ancestor


def failure_to_step(contender, programs, ranks, temporary, first_step):
    """Milliseconds in which a job that lost a rank does not train."""
    launcher = programs[OURS if contender == WARM else contender]
    directory = pathlib.Path(temporary) / "training"
    directory.mkdir()
    command = [launcher, "--standalone", f"--nproc-per-node={ranks}", "--max-restarts=1", str(EXAMPLE),
               "--checkpoint", str(directory / "checkpoint.pt"), "--log-every=1",
               f"--checkpoint-every={CHECKPOINT_EVERY}"]
    command += ["--epochs=100"] if first_step else [f"--crash-at={CRASH_AT}"]
    if contender == WARM:
        command[1:1] = ["--warm-workers=on", "--warm-after=0", "--log-level=info"]
    variables = {"PYTHON_EXEC": str(pathlib.Path(common.torchrun()).parent / "python3"),
                 "PYTHONDONTWRITEBYTECODE": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, directory)
        reader, writer = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, reader)
        try:
            launch = common.Launch(command, temporary, variables=variables, output=writer)
        finally:
            os.close(writer)
        stack.callback(launch.stop)
        lines = TimedLines(reader)
        if first_step:
            find(lines, "wait for the next round" if contender == WARM else f"step {READY_STEPS}/", command)
            rank_1 = rank_of_job(launch.pid, 1)
            died_ns = time.perf_counter_ns()
            os.kill(rank_1, signal.SIGKILL)
            find(lines, "resumed from step", command)
            find(lines, "step ", command)
            if contender == WARM and b"taken by warm workers" not in lines.read:
                raise BenchError(f"workers were not warm: {' '.join(command)}")
            return (lines.at_ns - died_ns) / 1e6
        find(lines, "kills itself at step", command)
        died_ns = lines.at_ns
        find(lines, f"resumed from step {CRASH_AT // CHECKPOINT_EVERY * CHECKPOINT_EVERY}", command)
        find(lines, f"step {CRASH_AT // CHECKPOINT_EVERY * CHECKPOINT_EVERY + 1}/", command)
        return (lines.at_ns - died_ns) / 1e6


class TimedLines:
    """The lines of a pipe; `at_ns` is when the last one was read."""

    def __init__(self, reader):
        self._reader, self._left, self.read, self.at_ns = reader, [], b"", 0
        self._deadline = time.monotonic() + TRAINING_TIMEOUT_S

    def __iter__(self):
        return self

    def __next__(self):
        while not self._left:
            patience = max(0, self._deadline - time.monotonic())
            if not select.select([self._reader], [], [], patience)[0]:
                raise StopIteration
            piece = os.read(self._reader, 65536)
            self.at_ns = time.perf_counter_ns()
            if not piece:
                raise StopIteration
            before = self.read.rpartition(b"\n")[2]
            self.read += piece
            self._left = (before + piece).split(b"\n")[:-1]
        return self._left.pop(0).decode(errors="replace")


def find(lines, text, command):
    if not any(text in line for line in lines):
        raise LineMissing(text, command, lines.read.decode(errors="replace"))


# --- Report --------------------------------------------------------------------------------------


def medians(rounds):
    return {number: Spread.of(found).median for number, found in rounds.items()}


def judge_first_step(training):
    ratio = Spread.of(common.pairs(training[WARM], training[OURS]))
    return [Goal("first step: times fresh workers", 0.2, False, ratio)]


def judge(gaps):
    ratio = Spread.of(common.pairs(medians(gaps[OURS]), medians(gaps[BARE])))
    return [Goal("restart: times the bare loop", 1.3, False, ratio)]


def report(args, machine, versions, gaps, training_and_broke, goals):
    training, broke = training_and_broke
    say("")
    print(f"{versions[OURS]}; {versions[TORCHRUN]}; {common.describe(machine)}")
    if gaps:
        print(f"\nRANK 0 OF {args.ranks} DIES, UNTIL ALL {args.ranks} NEW RANKS RUN, ms; ratio: to the bare "
              "loop in the same round")
        common.print_table(["<launcher", "runs", "restarts", "median", "min", "max", "ratio",
                            "min to max"], list(restart_table(gaps)))
    if training:
        print(f"\nA RANK OF {args.training_ranks} DIES, UNTIL THE NEXT STEP OF TRAINING IS DONE, ms; ratio: "
              "to elastic-run in the same round")
        common.print_table(["<launcher", "runs", "broke", "median", "min", "max", "ratio", "min to max"],
                           list(training_table(training, broke)))
    print("\nGOALS")
    common.print_goals(goals)
    print(f"\n{NOTES}")


def spread_columns(spread, digits):
    return [f"{value:.{digits}f}" for value in (spread.median, spread.min, spread.max)]


def ratio_columns(numerators, denominators, is_measure):
    if is_measure:
        return ["", ""]
    ratio = Spread.of(common.pairs(numerators, denominators))
    return [f"{ratio.median:.2f}", f"{ratio.min:.2f} to {ratio.max:.2f}"]


def restart_table(gaps):
    for contender, rounds in gaps.items():
        every = Spread.of([gap for found in rounds.values() for gap in found])
        yield [contender, str(len(rounds)), str(every.count), *spread_columns(every, 2),
               *ratio_columns(medians(rounds), medians(gaps[BARE]), contender == BARE)]


def training_table(training, broke):
    for contender, rounds in training.items():
        took = Spread.of(list(rounds.values()))
        yield [contender, str(took.count), str(broke[contender]), *spread_columns(took, 0),
               *ratio_columns(rounds, training[OURS], contender == OURS)]


if __name__ == "__main__":
    common.run_main(main)
