"""A rank dies: the time until all new ranks run, beside torchrun and a bare loop; until training goes on.

With --first-step: how soon training goes on with warm workers, beside interpreters that have imported everything and wait,
fresh ones and torchrun; the memory of warm workers; what preparing them takes from the first round."""

import argparse
import contextlib
import gc
import os
import pathlib
import select
import shutil
import signal
import sys
import tempfile
import time

import common
import first_step
from common import Goal, Spread, positive, say
from training import EXAMPLE, OURS, TORCHRUN, NotDone, unless_broken, variables_of

NO_LOGS, BARE, TORCHRUN_QUICK = "elastic-run, no logs", "bare loop", "torchrun, 1 ms"
BOUND = "elastic-run, bound"

CRASH_AT, CHECKPOINT_EVERY = 8, 5  # steps
TRAINING_TIMEOUT_S = 300
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
No logs: --log-dir=/dev/null. Bound: --numa-binding=node --numa-affinity. 1 ms: --monitor-interval=0.001 instead of torchrun's own 0.1 s.
Training: rank 1 of examples/fashion_mnist.py says that it kills itself at a step; the figure is from that
line until the line of the first step done after the restart, as they are read from the launcher's output.
torchrun has TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, without which gloo may fail after its restarts. Broke:
torchrun ended by an exception of its own, having read the error file of a worker that was still writing it;
such a run is made again."""


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        programs = {"worker": common.compile_c("restart_worker", temporary),
                    BARE: common.compile_c("respawn", temporary),
                    OURS: common.elastic_run_binary(), TORCHRUN: common.torchrun()}
        machine = common.machine()
        versions = {OURS: common.elastic_run_version(programs[OURS]),
                    TORCHRUN: common.torch_version(programs[TORCHRUN])}
        gc.disable()  # a collection would take a core from what is measured
        if args.first_step:
            return measure_first_step(args, machine, versions, programs, temporary)
        gaps = restart_rounds(programs, args, temporary)
        gc.enable()
        training, broke = training_rounds(programs, args, temporary) if args.training else ({}, {})
    goals = judge(gaps)
    report(args, machine, versions, gaps, (training, broke), goals)
    if args.json:
        common.write_json(args.json, {
            "benchmark": "restart", "machine": machine, "versions": versions, "ranks": args.ranks,
            "restart_ms": gaps, "training_ranks": args.training_ranks,
            "failure_to_step_ms": training, "broken_runs": broke, "goals": [goal.as_json() for goal in goals]})
    return 0


def measure_first_step(args, machine, versions, programs, temporary):
    found = first_step.measure(programs, args, temporary)
    goals = first_step.judge(found)
    say("")
    print(head_line(machine, versions))
    first_step.report(args, found)
    print_end(goals, first_step.NOTES)
    if args.json:
        common.write_json(args.json, {
            "benchmark": "restart --first-step", "machine": machine, "versions": versions,
            "training_ranks": args.training_ranks, "memory_ranks": args.memory_ranks, "round_epochs": args.round_epochs,
            "round_warm_after_s": args.round_warm_after, **first_step.as_json(found),
            "goals": [goal.as_json() for goal in goals]})
    return 0


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench restart", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
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
    parser.add_argument("--training-runs", type=positive, metavar="N",
                        help="of each launcher (3; 9 with --first-step)")
    parser.add_argument("--training-ranks", type=positive, default=4, metavar="N")
    parser.add_argument("--first-step", action="store_true",
                        help="measure instead how soon training goes on with warm workers, and what they cost")
    more = parser.add_argument_group("with --first-step", "also --training-runs, --training-ranks and --json")
    more.add_argument("--only", type=list_of(first_step.PARTS), default=first_step.PARTS, metavar="PART,...",
                      help=f"of {', '.join(first_step.PARTS)}: a failure to the next step; memory; the first round (all)")
    more.add_argument("--data", type=list_of(first_step.DATA), default=list(first_step.DATA), metavar="KIND,...",
                      help="of plain, mapped: how examples/fashion_mnist.py has its data (both)")
    more.add_argument("--example", default=EXAMPLE, metavar="FILE", help="another script that is built like it")
    more.add_argument("--memory-runs", type=positive, default=3, metavar="N", help="warm and fresh (%(default)s)")
    more.add_argument("--memory-ranks", type=positive, default=8, metavar="N", help="at least 2 (%(default)s)")
    more.add_argument("--round-runs", type=positive, default=9, metavar="N", help="with on and with off (%(default)s)")
    more.add_argument("--round-epochs", type=positive, default=40, metavar="N",
                      help="of the first round: it must outlast the imports (%(default)s)")
    more.add_argument("--round-warm-after", type=int, default=30, metavar="SECONDS",
                      help="--warm-after of the first round (%(default)s, elastic-run's own)")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    args = parser.parse_args()
    args.torchrun_runs = min(args.torchrun_runs, args.runs)
    args.training_runs = args.training_runs or (9 if args.first_step else 3)
    if args.first_step and min(args.training_ranks, args.memory_ranks) < 2:
        parser.error("--training-ranks, --memory-ranks: rank 1 is to be killed, so at least 2")
    return args


def list_of(allowed):
    """The type of an option: some of these, with commas between."""
    def parse(text):
        parts = text.split(",")
        if not set(parts) <= set(allowed):
            raise argparse.ArgumentTypeError(f"{text!r} is no list of {', '.join(allowed)}")
        return parts
    return parse


# --- Until all new ranks run ---------------------------------------------------------------------


def command_of(contender, programs, ranks, restarts):
    """The launcher's command line; the worker's path for the marks is to be added."""
    if contender == BARE:
        return [programs[BARE], str(ranks), programs["worker"]]
    more = {NO_LOGS: ["--log-dir=/dev/null"], BOUND: ["--numa-binding=node", "--numa-affinity"],
            TORCHRUN_QUICK: ["--monitor-interval=0.001"]}
    launcher = programs[OURS if contender in (OURS, NO_LOGS, BOUND) else TORCHRUN]
    return [launcher, "--standalone", "--no-python", f"--nproc-per-node={ranks}",
            f"--max-restarts={restarts}", *more.get(contender, []), programs["worker"]]


def restart_rounds(programs, args, temporary):
    """{contender: {round: [ms of each restart]}}; in each round another contender comes first."""
    without_torchrun = [OURS, NO_LOGS, BOUND, BARE]
    all_kinds = [*without_torchrun, TORCHRUN, TORCHRUN_QUICK]
    measured = {contender: {} for contender in all_kinds}
    for contender in all_kinds:
        restarts_of_one_run(contender, programs, args.ranks, 1, temporary)
    with_torchrun = {index * args.runs // args.torchrun_runs for index in range(args.torchrun_runs)}
    for number in range(args.runs):
        say(f"restarts: round {number + 1} of {args.runs}")
        turns = all_kinds if number in with_torchrun else without_torchrun
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
    measured = {OURS: {}, TORCHRUN: {}}
    broke = dict.fromkeys(measured, 0)
    contenders = list(measured)
    for number in range(args.training_runs):
        say(f"training: round {number + 1} of {args.training_runs}")
        for contender in contenders if number % 2 == 0 else reversed(contenders):
            measured[contender][number], broken = unless_broken(
                contender, lambda contender=contender: failure_to_step(
                    programs[contender], args.training_ranks, temporary))
            broke[contender] += broken
    return measured, broke


def failure_to_step(launcher, ranks, temporary):
    """Milliseconds in which a job that lost a rank does not train."""
    directory = pathlib.Path(temporary) / "training"
    directory.mkdir()
    command = [launcher, "--standalone", f"--nproc-per-node={ranks}", "--max-restarts=1", str(EXAMPLE),
               "--checkpoint", str(directory / "checkpoint.pt"), f"--crash-at={CRASH_AT}",
               f"--checkpoint-every={CHECKPOINT_EVERY}", "--log-every=1"]
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, directory)
        reader, writer = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, reader)
        try:
            launch = common.Launch(command, temporary, variables=variables_of(), output=writer)
        finally:
            os.close(writer)
        stack.callback(launch.stop)
        lines = TimedLines(reader)
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
        raise NotDone(f"line with {text!r}", command, lines.read.decode(errors="replace"))


# --- Report --------------------------------------------------------------------------------------


def medians(rounds):
    return {number: Spread.of(found).median for number, found in rounds.items()}


def judge(gaps):
    ratio = Spread.of(common.pairs(medians(gaps[OURS]), medians(gaps[BARE])))
    bound = Spread.of(common.pairs(medians(gaps[BOUND]), medians(gaps[OURS])))
    return [Goal("restart: times the bare loop", 1.3, False, ratio),
            Goal("restart, bound: times that without a binding", 1.02, False, bound)]


def report(args, machine, versions, gaps, training_and_broke, goals):
    training, broke = training_and_broke
    say("")
    print(head_line(machine, versions))
    print(f"\nRANK 0 OF {args.ranks} DIES, UNTIL ALL {args.ranks} NEW RANKS RUN, ms; ratio: to the bare "
          "loop in the same round")
    common.print_table(["<launcher", "runs", "restarts", "median", "min", "max", "ratio",
                        "min to max"], list(restart_table(gaps)))
    if training:
        print(f"\nA RANK OF {args.training_ranks} DIES, UNTIL THE NEXT STEP OF TRAINING IS DONE, ms; ratio: "
              "to elastic-run in the same round")
        common.print_table(["<launcher", "runs", "broke", "median", "min", "max", "ratio", "min to max"],
                           list(training_table(training, broke)))
    print_end(goals, NOTES)


def head_line(machine, versions):
    return f"{versions[OURS]}; {versions[TORCHRUN]}; {common.describe(machine)}"


def print_end(goals, notes):
    print("\nGOALS")
    common.print_goals(goals)
    print(f"\n{notes}")


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
