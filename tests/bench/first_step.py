"""scripts/bench restart --first-step: how soon training goes on with warm workers, and what they cost."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import selectors
import shutil
import signal
import statistics
import sys
import time

import common
from common import BenchError, Goal, Spread, say
from training import EXAMPLE, OURS, TORCHRUN, NotDone, unless_broken, variables_of

WARM, FLOOR = "elastic-run, warm", "floor: all imported"
PLAIN, MAPPED = "as it is", "mapped"
DATA = {"plain": PLAIN, "mapped": MAPPED}
PARTS = ("failure", "memory", "round")

READY_STEPS = 50  # of a round's own, before a rank is killed, or memory is looked at
CHECKPOINT_EVERY = 5
TIMEOUT_S = 600
EPOCHS = 300  # far more than are waited for; a job that nobody could stop ends by itself
WAIT = "for the next round"
IMPORTED = re.compile(r"modules are imported, with (\d+) ms of processor time")

# What a copy of the example tells besides: when each rank is in its first lines and when it has done its first step.
HEAD = """\
import os, sys, time
_MARKS = os.open({marks!r}, os.O_WRONLY | os.O_CLOEXEC)
def _mark(what):
    words = (what, os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"], os.getpid(), time.monotonic_ns(),
             time.process_time_ns())
    os.write(_MARKS, (" ".join(map(str, words)) + "\\n").encode())
_mark("began")
"""
STEP = "        optimizer.step()\n"
AFTER_STEP = f"""\
        if step - first_step in (0, {READY_STEPS - 1}):
            _mark("ready" if step > first_step else "stepped")
"""
WHAT_IS_IMPORTED = """\
            if rank == 0 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "1":
                with open({modules!r}, "w") as _file:
                    _file.write("\\n".join(sys.modules))
                _mark("listed")
"""

WARM_AFTER_S = 5  # elastic-run takes 10 s for the second round and later, if it is not less

NOTES = f"""\
First step: rank 1 gets SIGKILL from outside when all ranks have done {READY_STEPS} steps and those that are to wait do; the
figure is from there until the last rank has done the first step of the next round. Measured is a copy of
examples/fashion_mnist.py that notes CLOCK_MONOTONIC and its processor time in its first lines and after its first step.
Mapped: with --mapped, its data unpacked before.
CPU: user and system time of a rank's process until then, all threads; the mean of a run's ranks, and the rank that took
most. Of the floor it counts from the order on.
Order: when elastic-run tells that it begins to start the round's workers (its event round_began, whole ms, rounded down):
the old ones are gone, the store is open. Lines: from there until the last rank runs the script's first lines.
Floor: tests/bench/waiting.py has one interpreter per rank that has imported all modules of a real restarted run, and waits:
no fork, no page is copied. It sees the death, sends SIGTERM to the others' groups, waits until all are gone, opens a new
store (elastic-run --store-only, while they die) and orders the ranks. It keeps no logs and has no guardian.
Warm: --warm-workers=on --warm-after={WARM_AFTER_S}: the workers for the round after are not forked during the first step.
torchrun has TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1; a run that its own mistake ends is made again (broke). The launchers take turns, in turned order every other round; one run before is not counted. Ratios
are taken between runs of the same round, and their median counts.
Memory: PSS of all processes of the job, {READY_STEPS} steps after a restart: launcher, ranks, and where workers are warm the
import server and those that wait for the next round. Ranks: theirs alone.
First round: a whole job without a failure, from its start to its end, --max-restarts=1. Its CPU: as the import server tells
it when it is ready; the forks of the workers that wait come to it."""


# --- One job. ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mark:
    what: str
    rank: int
    attempt: int
    pid: int
    at_ns: int  # CLOCK_MONOTONIC
    cpu_ns: int

    @classmethod
    def of(cls, line):
        what, *numbers = line.split()
        return cls(what, *map(int, numbers))


class Place:
    """A directory for the runs: the copy of the example, its data, what a run imports."""

    def __init__(self, temporary, example=EXAMPLE):
        self.directory = pathlib.Path(temporary) / "first_step"
        self.directory.mkdir()
        self.temporary = temporary
        self.marks, self.modules = self.directory / "marks", self.directory / "modules"
        self.script, self.listing_script = self.directory / "fashion_mnist.py", self.directory / "listing.py"
        self.mapped = self.directory / "mapped"
        os.mkfifo(self.marks)
        try:
            text = pathlib.Path(example).read_text()
        except OSError as error:
            raise BenchError(f"can't read {example}: {error.strerror}") from None
        if text.count("\nimport argparse\n") != 1 or text.count(STEP) != 1:
            raise BenchError(f"{example} is not as this benchmark knows it")
        text = text.replace("\nimport argparse\n", f"\n{HEAD.format(marks=str(self.marks))}import argparse\n")
        self.script.write_text(text.replace(STEP, STEP + AFTER_STEP))
        listing = WHAT_IS_IMPORTED.format(modules=str(self.modules))
        self.listing_script.write_text(text.replace(STEP, STEP + AFTER_STEP + listing))

    def options(self, data, epochs=EPOCHS):
        """Of the example."""
        more = ["--mapped", str(self.mapped)] if data == MAPPED else []
        return ["--checkpoint", str(self.directory / "run" / "checkpoint.pt"), "--log-every=1000000",
                f"--checkpoint-every={CHECKPOINT_EVERY}", f"--epochs={epochs}", *more]


class Job:
    """A run of the example in `place`. What it prints, and what its ranks mark, is read while one waits for some of it."""

    def __init__(self, command, place):
        self.command, self.printed, self.marks = command, "", []
        self.events = place.directory / "run" / "events"
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            self.events.parent.mkdir()
            stack.callback(shutil.rmtree, self.events.parent)
            self._fifo = os.open(place.marks, os.O_RDWR | os.O_CLOEXEC)
            stack.callback(os.close, self._fifo)
            self._output, writer = os.pipe2(os.O_CLOEXEC)
            stack.callback(os.close, self._output)
            try:
                self.launch = common.Launch(command, place.temporary, variables=variables_of(), output=writer,
                                            timeout_s=TIMEOUT_S)
            finally:
                os.close(writer)
            stack.callback(self.launch.stop)
            self._stack = stack.pop_all()
        self._selector = self._stack.enter_context(selectors.DefaultSelector())
        for descriptor in (self._fifo, self._output):
            self._selector.register(descriptor, selectors.EVENT_READ)
        self._left = {self._fifo: b"", self._output: b""}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def wait_for(self, what, is_there):
        """Reads until `is_there()`; an error if all output has ended before, or it takes too long."""
        deadline = time.monotonic() + TIMEOUT_S
        while not is_there():
            for key, _ in self._selector.select(max(0, deadline - time.monotonic())):
                self._read(key.fd)
            if self._output not in self._selector.get_map() and not is_there() or time.monotonic() > deadline:
                raise NotDone(what, self.command, self.printed)

    def _read(self, descriptor):
        piece = os.read(descriptor, 65536)
        if not piece:
            self._selector.unregister(descriptor)
        if descriptor == self._output:
            self.printed += piece.decode(errors="replace")
            return
        *lines, self._left[descriptor] = (self._left[descriptor] + piece).split(b"\n")
        self.marks += [Mark.of(line.decode()) for line in lines]

    def marked(self, what, attempt):
        return [mark for mark in self.marks if (mark.what, mark.attempt) == (what, attempt)]

    def wait_for_ranks(self, what, attempt, ranks):
        self.wait_for(f"{ranks} marks '{what}'", lambda: len(self.marked(what, attempt)) == ranks)

    def wait_for_those_that_wait(self, times=1):
        self.wait_for(f"'{WAIT}'", lambda: self.printed.count(WAIT) >= times)

    def lose_rank_1(self):
        """By SIGKILL; when, by CLOCK_MONOTONIC."""
        victim = next(mark for mark in self.marked("ready", 0) if mark.rank == 1)
        now_ns = time.monotonic_ns()
        os.kill(victim.pid, signal.SIGKILL)
        return now_ns

    def wait_until_end(self):
        """Milliseconds from its start."""
        self.wait_for("end of the output", lambda: self._output not in self._selector.get_map())
        return self.launch.wait()

    def ordered_ns(self):
        """When the ranks of the second round were ordered; None if the launcher does not tell."""
        told = [mark.at_ns for mark in self.marked("ordered", 1)]
        if self.events.exists():
            events = [json.loads(line) for line in self.events.read_text().splitlines()]
            told = [event["monotonic_ms"] * 1_000_000 for event in events
                    if event["event"] == "round_began" and event["round"] == 1]
        return told[0] if told else None


def command_of(contender, programs, place, ranks, script, options, restarts=1, warm_after=WARM_AFTER_S):
    python = variables_of()["PYTHON_EXEC"]
    if contender == FLOOR:
        return [sys.executable, str(common.HERE / "waiting.py"), programs[OURS], python, str(ranks), str(place.modules),
                str(place.marks), str(script), *options]
    command = [programs[TORCHRUN if contender == TORCHRUN else OURS], "--standalone", f"--nproc-per-node={ranks}",
               f"--max-restarts={restarts}"]
    if contender != TORCHRUN:
        command += ["--log-level=info", f"--events={place.directory / 'run' / 'events'}"]
    if contender == WARM:
        command += ["--warm-workers=on", f"--warm-after={warm_after}"]
    return [*command, str(script), *options]


def record_imports(programs, place):
    """A run that is not counted: it unpacks the data to be mapped, and lists what a restarted rank has imported."""
    with Job(command_of(OURS, programs, place, 2, place.listing_script, place.options(MAPPED)), place) as job:
        job.wait_for_ranks("ready", 0, 2)
        job.lose_rank_1()
        job.wait_for_ranks("listed", 1, 1)


# --- From the failure to the first step. ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Restart:
    """Of one run."""

    step_ms: float  # from the failure to the end of the first step on the last rank
    cpu_s: list  # of each rank until then
    gone_ms: float | None  # from the failure to the order; None if the launcher does not tell of the order
    lines_ms: float | None  # from the order to the first lines on the last rank


def failure_rounds(programs, args, place):
    """{(contender, data): {round: Restart}}, {(contender, data): how many runs torchrun's own mistake has ended}"""
    kinds = [(contender, DATA[data]) for data in args.data for contender in (FLOOR, WARM, OURS, TORCHRUN)]
    measured, broke = {kind: {} for kind in kinds}, dict.fromkeys(kinds, 0)
    for number in range(args.training_runs):
        say(f"first step: round {number + 1} of {args.training_runs}")
        for kind in kinds if number % 2 == 0 else reversed(kinds):
            measured[kind][number], broken = unless_broken(
                kind[0], lambda kind=kind: restart_of(*kind, programs, args.training_ranks, place))
            broke[kind] += broken
    return measured, broke


def restart_of(contender, data, programs, ranks, place):
    with Job(command_of(contender, programs, place, ranks, place.script, place.options(data)), place) as job:
        job.wait_for_ranks("ready", 0, ranks)
        if contender in (WARM, FLOOR):
            job.wait_for_those_that_wait()
        died_ns = job.lose_rank_1()
        job.wait_for_ranks("stepped", 1, ranks)
        check_warmth(job, contender == WARM)
        stepped, ordered_ns = job.marked("stepped", 1), job.ordered_ns()
        before_ns = {mark.rank: mark.cpu_ns for mark in job.marked("taken", 1)}
        cpu_s = [(mark.cpu_ns - before_ns.get(mark.rank, 0)) / 1e9 for mark in stepped]
        began_ns = max(mark.at_ns for mark in job.marked("began", 1))
        between = [None, None] if ordered_ns is None else [(ordered_ns - died_ns) / 1e6, (began_ns - ordered_ns) / 1e6]
        return Restart((max(mark.at_ns for mark in stepped) - died_ns) / 1e6, cpu_s, *between)


def check_warmth(job, is_to_be_warm):
    if is_to_be_warm and "taken by warm workers" not in job.printed:
        raise BenchError(f"workers were not warm: {' '.join(job.command)}\n{job.printed[-2000:]}")


# --- What it costs. -----------------------------------------------------------------------------------


def memory_rounds(programs, args, place):
    """{contender: {round: (KiB of the job, KiB of its ranks)}}"""
    measured = {WARM: {}, OURS: {}}
    for number in range(args.memory_runs):
        say(f"memory: round {number + 1} of {args.memory_runs}")
        for contender in measured if number % 2 == 0 else reversed(measured):
            measured[contender][number] = memory_of(contender, programs, args.memory_ranks, place)
    return measured


def memory_of(contender, programs, ranks, place):
    command = command_of(contender, programs, place, ranks, place.script, place.options(PLAIN), restarts=2)
    with Job(command, place) as job:
        job.wait_for_ranks("ready", 0, ranks)
        if contender == WARM:
            job.wait_for_those_that_wait()
        job.lose_rank_1()
        job.wait_for_ranks("ready", 1, ranks)
        check_warmth(job, contender == WARM)
        if contender == WARM:
            job.wait_for_those_that_wait(times=2)
        of_ranks = {mark.pid for mark in job.marked("ready", 1)}
        kib = {pid: common.memory_kib(pid, ["Pss"])["Pss"] for pid in common.tree_of(job.launch.pid)}
        return sum(kib.values()), sum(kib[pid] for pid in of_ranks)


def first_rounds(programs, args, place):
    """{contender: {round: ms of the job}}, {round: ms of the import server's processor time, None if it was not ready}"""
    measured, server_ms = {WARM: {}, OURS: {}}, {}
    for number in range(args.round_runs):
        say(f"first round: {number + 1} of {args.round_runs}")
        for contender in measured if number % 2 == 0 else reversed(measured):
            command = command_of(contender, programs, place, args.training_ranks, place.script,
                                 place.options(PLAIN, args.round_epochs), warm_after=args.round_warm_after)
            with Job(command, place) as job:
                measured[contender][number] = job.wait_until_end()
                if contender == WARM:
                    told = IMPORTED.search(job.printed)
                    server_ms[number] = int(told[1]) if told else None
    return measured, server_ms


# --- Report. ------------------------------------------------------------------------------------------


def measure(programs, args, temporary):
    """What is measured, and the goals."""
    place = Place(temporary, args.example)
    record_imports(programs, place)
    restarts, broke = failure_rounds(programs, args, place) if "failure" in args.only else ({}, {})
    memory = memory_rounds(programs, args, place) if "memory" in args.only else {}
    rounds, server_ms = first_rounds(programs, args, place) if "round" in args.only else ({}, {})
    return {"restarts": restarts, "broke": broke, "memory": memory, "rounds": rounds, "server_ms": server_ms}


def steps(of_kind):
    return {number: one.step_ms for number, one in of_kind.items()}


def mean_cpu(of_kind):
    return {number: statistics.mean(one.cpu_s) for number, one in of_kind.items()}


def lines(of_kind):
    return [one.lines_ms for one in of_kind.values() if one.lines_ms is not None]


def judge(found):
    goals, restarts = [], found["restarts"]
    for data, times in ((PLAIN, 5), (MAPPED, 12)):
        if (WARM, data) not in restarts:
            continue
        warm, fresh, floor = (restarts[contender, data] for contender in (WARM, OURS, FLOOR))
        goals += [
            Goal(f"{data}: warm, times the floor", 1.25, False, Spread.of(common.pairs(steps(warm), steps(floor)))),
            Goal(f"{data}: times faster than fresh workers", times, True,
                 Spread.of(common.pairs(steps(fresh), steps(warm)))),
            Goal(f"{data}: warm, CPU of a rank, s", 0.4, False, Spread.of(list(mean_cpu(warm).values()))),
            Goal(f"{data}: warm, order to first lines, ms", 50, False, Spread.of(lines(warm))),
        ]
    if found["memory"]:
        jobs = [{number: job for number, (job, _) in found["memory"][contender].items()} for contender in (WARM, OURS)]
        goals.append(Goal("memory: warm, times fresh workers", 0.5, False, Spread.of(common.pairs(*jobs))))
    if found["rounds"]:
        ratio = Spread.of(common.pairs(found["rounds"][WARM], found["rounds"][OURS]))
        goals.append(Goal("first round: on, times off", 1.02, False, ratio))
    return goals


def report(args, found):
    if found["restarts"]:
        print(f"\nRANK 1 OF {args.training_ranks} DIES, UNTIL ALL RANKS HAVE DONE THE NEXT STEP OF TRAINING, ms; ratios: to the "
              "floor, to fresh workers;\nCPU of a rank, s; failure to order, order to first lines, ms")
        common.print_table(["<data", "<launcher", "runs", "broke", "median", "min", "max", "floor", "fresh", "CPU", "most",
                            "order", "lines", "max"], list(step_table(found["restarts"], found["broke"])))
    if found["memory"]:
        print(f"\nMEMORY (PSS) OF A JOB OF {args.memory_ranks} RANKS AFTER A RESTART, MiB")
        common.print_table(["<launcher", "runs", "job", "ranks", "ratio"], list(memory_table(found["memory"])))
    if found["rounds"]:
        print(f"\nFIRST ROUND OF {args.training_ranks} RANKS, {args.round_epochs} EPOCHS, --warm-after={args.round_warm_after}, ms")
        common.print_table(["<--warm-workers", "runs", "median", "min", "max", "ratio", "server ready", "its CPU, ms"],
                           list(round_table(found["rounds"], found["server_ms"])))


def step_table(restarts, broke):
    for (contender, data), runs in restarts.items():
        took, cpu, began = Spread.of(list(steps(runs).values())), mean_cpu(runs), lines(runs)
        ratios = ["" if contender == other else f"{Spread.of(common.pairs(steps(runs), steps(restarts[other, data]))).median:.2f}"
                  for other in (FLOOR, OURS)]
        most = statistics.median(max(one.cpu_s) for one in runs.values())
        yield [data, "elastic-run, fresh" if contender == OURS else contender, str(took.count), str(broke[contender, data]),
               f"{took.median:.0f}", f"{took.min:.0f}", f"{took.max:.0f}", *ratios,
               f"{statistics.median(cpu.values()):.3f}", f"{most:.3f}",
               *([f"{statistics.median(one.gone_ms for one in runs.values()):.0f}", f"{statistics.median(began):.1f}",
                  f"{max(began):.1f}"] if began else ["", "", ""])]


def memory_table(memory):
    for contender, runs in memory.items():
        job, ranks = (statistics.median(kib[which] for kib in runs.values()) / 1024 for which in (0, 1))
        ratio = statistics.median(kib[0] / memory[OURS][number][0] for number, kib in runs.items())
        yield ["elastic-run, fresh" if contender == OURS else contender, str(len(runs)), f"{job:.0f}", f"{ranks:.0f}",
               "" if contender == OURS else f"{ratio:.2f}"]


def round_table(rounds, server_ms):
    for contender, runs in rounds.items():
        took = Spread.of(list(runs.values()))
        row = ["on" if contender == WARM else "off", str(took.count), *(f"{ms:.0f}" for ms in (took.median, took.min, took.max))]
        ready = [ms for ms in server_ms.values() if ms is not None]
        yield row + ([f"{Spread.of(common.pairs(runs, rounds[OURS])).median:.3f}", str(len(ready)),
                      f"{statistics.median(ready):.0f}" if ready else ""] if contender == WARM else ["", "", ""])


def as_json(found):
    return {
        "first_step": [{"launcher": contender, "data": data, "broken_runs": found["broke"][contender, data],
                        "runs": {number: dataclasses.asdict(one) for number, one in runs.items()}}
                       for (contender, data), runs in found["restarts"].items()],
        "memory_kib": {contender: {number: {"job": job, "ranks": ranks} for number, (job, ranks) in runs.items()}
                       for contender, runs in found["memory"].items()},
        "first_round_ms": {contender: dict(runs) for contender, runs in found["rounds"].items()},
        "import_server_cpu_ms": found["server_ms"],
    }
