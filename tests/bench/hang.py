"""A job that hangs: how soon the verdict is there and training goes on, what a rank's stack and what watching cost."""

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import select
import shutil
import statistics
import tempfile
import time

import common
import crowd
import training
from common import BenchError, Goal, Spread, positive, say

REPORT, OFF, TORCHRUN = "--hang=report", "--hang=off", "torchrun"
PARTS = ("verdict", "stop", "next", "watch")
DEPTH = 12          # calls above the function in which a rank stands
STEPS = 10          # of a job that then hangs
PAUSE_S = 0.1       # between two of a rank's step lines
STEADY_S = 2        # after the last rank has begun, until processor time is counted
PATIENCE_S = 300    # for what must come
VERDICT_S, STOPPED_S, STACK_MS, WATCH_PERCENT = 15, 25, 1, 0.5  # the goals

NOTES = f"""\
The workers are plain Python: each writes a step line to stderr every {PAUSE_S:g} s, as Megatron-LM does. In a job that hangs
they then stop: rank 1 stands in load_batch, all others in all_reduce, {DEPTH} calls deep. What is told must be that.
Verdict: from the end of the limit, which is --hang-timeout after the last step line of any rank, until elastic-run has told
the verdict (its event `hang`); 5 s of it is the second look, before which no evidence is collected.
Stop: of other jobs, with --hang=restart, from the end of the limit until no process of the round is left (the event
`workers_gone`), and before that until the verdict is told.
Next step: ranks of PyTorch with gloo, in a job of either launcher in turn. Rank 1 stands in load_batch once, and the
others in all_reduce. elastic-run has --hang=restart and --hang-timeout, and the collective's timeout is PyTorch's own.
torchrun has --max-restarts=1, and init_process_group a timeout as long as that limit: when it is over the collective
fails, the ranks end, and torchrun starts them again. PyTorch's own is 30 minutes with gloo and 10 with NCCL. All times are
from the end of the limit, or of the timeout, which begins with the last step of any rank; the next step is there when the
last of the others has done it. Most of the time to it is the import of PyTorch.
Stacks: of the job that hangs. elastic-run --stacks=PID is run for its launcher, so for all ranks, and for one worker; what a
rank adds is the difference of both by the number of the others, which is free of the start of the program. py-spy dump
--nonblocking reads one rank in a call: the whole call, and the call less py-spy --version in the same turn. The calls take
turns; the median of a job's turns is the job's figure.
Watching: processor time, of elastic-run's two processes or of torchrun's one, from {STEADY_S} s after all ranks have begun;
workers are not in it. Workers write to log files (--redirects=3), in which elastic-run finds the steps in both of its runs:
to pass lines on costs several times as much as to watch, and varies with how they arrive. The launchers take turns, and the
difference is taken between runs of the same round; torchrun is in some rounds only."""


@dataclasses.dataclass(frozen=True)
class Hang:
    """What one job that hangs has shown."""

    verdict_s: float    # from the end of the limit
    suspect_s: float    # of that, until evidence was asked for
    all_ms: list        # elastic-run --stacks of all ranks
    one_ms: list        # of one rank
    py_spy_ms: list     # py-spy dump of one rank
    py_spy_start_ms: list


@dataclasses.dataclass(frozen=True)
class Stop:
    """What one job with --hang=restart has shown, from the end of the limit."""

    suspect_s: float  # until evidence was asked for
    verdict_s: float
    stopped_s: float  # no process of the round is left


@dataclasses.dataclass(frozen=True)
class Next:
    """What one job of PyTorch has shown, from the end of the limit or of the collective's timeout."""

    known_s: float    # the verdict is told, or the first collective has failed
    stopped_s: float  # no rank of the round is left
    next_s: float     # all but the one that hung have done a step of the next one


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        bench = Bench(args, temporary)
        machine = common.machine()
        hangs = bench.hangs() if "verdict" in args.only else []
        stops = bench.stops() if "stop" in args.only else []
        further = bench.further() if "next" in args.only else {}
        watched = bench.watched() if "watch" in args.only else {}
    say("")
    goals = judge(args, hangs, stops, watched)
    report(args, bench.versions, machine, hangs, stops, further, watched, goals)
    if args.json:
        common.write_json(args.json, {
            "benchmark": "hang", "machine": machine, "versions": bench.versions, "ranks": args.ranks,
            "hangs": [dataclasses.asdict(one) for one in hangs], "stops": [dataclasses.asdict(one) for one in stops],
            "next": {launcher: [dataclasses.asdict(one) for one in found] for launcher, found in further.items()},
            "launcher_cpu_percent": watched,
            "goals": [goal.as_json() for goal in goals]})


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench hang", description=__doc__)
    parser.add_argument("--ranks", type=ranks, default=64, metavar="N", help="(%(default)s)")
    parser.add_argument("--only", type=parts, default=list(PARTS), metavar="PART,...",
                        help=f"of {', '.join(PARTS)} (all)")
    parser.add_argument("--hangs", type=positive, default=5, metavar="N", help="jobs that hang (%(default)s)")
    parser.add_argument("--turns", type=positive, default=9, metavar="N",
                        help="times that the stacks of each are read (%(default)s)")
    parser.add_argument("--limit", type=positive, default=3, metavar="S", help="--hang-timeout of these jobs (%(default)s)")
    parser.add_argument("--torch-ranks", type=ranks, default=4, metavar="N", help="ranks of PyTorch (%(default)s)")
    parser.add_argument("--torch-jobs", type=positive, default=5, metavar="N", help="of each launcher (%(default)s)")
    parser.add_argument("--torch-limit", type=positive, default=10, metavar="S",
                        help="--hang-timeout, and timeout of init_process_group under torchrun (%(default)s)")
    parser.add_argument("--runs", type=positive, default=7, metavar="N", help="rounds of watching (%(default)s)")
    parser.add_argument("--torchrun-runs", type=positive, default=2, metavar="N",
                        help="how many of the rounds it is in (%(default)s)")
    parser.add_argument("--seconds", type=positive, default=20, metavar="N",
                        help="for which processor time is counted (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    args = parser.parse_args()
    args.torchrun_runs = min(args.torchrun_runs, args.runs)
    return args


def ranks(text):
    value = positive(text)
    if value < 3:
        raise argparse.ArgumentTypeError("most ranks must be seen to wait for one: 3 at least")
    return value


def parts(text):
    chosen = text.split(",")
    if not set(chosen) <= set(PARTS):
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(PARTS)}, or several of them")
    return chosen


class Job:
    """A launcher whose ranks run `script` with `arguments` behind the job's directory."""

    def __init__(self, program, options, temporary, variables, script, *arguments):
        self.directory = pathlib.Path(temporary) / "job"
        self.directory.mkdir()
        self.events = self.directory / "events"
        worker = [str(common.HERE / script), str(self.directory), *map(str, arguments)]
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
            self.launch = common.Launch([program, "--standalone", *options, *worker], self.directory,
                                        variables=variables)
            stack.callback(self.launch.stop)
            self._stack = stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def noted(self, what, count):
        """The numbers that so many ranks have noted: most are times."""
        return self._wait_for(lambda: len(found := self.some_noted(what)) == count and found,
                              f"{count} ranks that have noted '{what}'")

    def some_noted(self, what):
        """The same of those that have noted it by now, in the order of ranks."""
        found = [path for path in self.directory.glob(f"{what}_*") if path.suffix != ".new"]
        return [int(path.read_text()) for path in sorted(found, key=lambda path: int(path.name.partition("_")[2]))]

    def hang_event(self, state):
        return self.event("hang", lambda event: event["state"] == state, f" of the state '{state}'")

    def event(self, name, is_it=lambda event: True, of=""):
        """The first one of that name."""
        def look():
            lines = self.events.read_text().splitlines(keepends=True) if self.events.exists() else []
            told = (json.loads(line) for line in lines if line.endswith("\n"))
            return next((event for event in told if event["event"] == name and is_it(event)), None)
        return self._wait_for(look, f"an event '{name}'{of}")

    def _wait_for(self, condition, what):
        """The condition's first true value."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := condition()):
            has_ended = select.select([self.launch.pidfd], [], [], 0)[0]
            if has_ended or time.monotonic() > deadline:
                told = (self.directory / "output").read_text(errors="replace")
                raise training.NotDone(what + (" before the job ended" if has_ended else f" in {PATIENCE_S} s"),
                                       self.launch.command, told)
            time.sleep(0.01)
        return found


class Bench:
    def __init__(self, args, temporary):
        self.args, self.temporary = args, temporary
        self.binary = common.elastic_run_binary()
        self.torchrun = common.torchrun()
        self.variables = {"PYTHON_EXEC": str(pathlib.Path(self.torchrun).with_name("python3"))}
        self.py_spy = str(pathlib.Path(self.torchrun).with_name("py-spy"))
        if not os.access(self.py_spy, os.X_OK):
            raise BenchError(f"no {self.py_spy}: scripts/test installs it, or name another environment by ELASTIC_RUN_VENV")
        self.versions = [common.elastic_run_version(self.binary), common.torch_version(self.torchrun),
                         common.package_version(self.torchrun, "py_spy")]

    def options(self, *more):
        return [f"--nproc-per-node={self.args.ranks}", f"--log-dir={self.temporary}/job/logs", *more]

    def hangs(self):
        found = []
        for number in range(self.args.hangs):
            say(f"job that hangs: {number + 1} of {self.args.hangs}")
            found.append(self.hang())
        return found

    def job(self, program, options, steps):
        """Ranks of plain Python."""
        return Job(program, options, self.temporary, self.variables, "hang_worker.py", steps, PAUSE_S, DEPTH)

    def stops(self):
        found = []
        for number in range(self.args.hangs):
            say(f"job whose hang ends: {number + 1} of {self.args.hangs}")
            found.append(self.stop())
        return found

    def stop(self):
        options = self.options("--hang=restart", f"--hang-timeout={self.args.limit}s",
                               f"--events={self.temporary}/job/events")
        with self.job(self.binary, options, STEPS) as job:
            limit_ends_ms = max(job.noted("last", self.args.ranks)) / 1e6 + 1000 * self.args.limit
            told = job.hang_event("told")
            if told["ranks_at_fault"] != [1] or not told["action"].startswith("restart"):
                raise BenchError(f"the verdict is not that the round ends for rank 1: {json.dumps(told)}")
            asked, gone = job.hang_event("suspect"), job.event("workers_gone")
        return Stop(*((event["monotonic_ms"] - limit_ends_ms) / 1000 for event in (asked, told, gone)))

    def further(self):
        """{launcher: [Next]}"""
        found = {training.OURS: [], training.TORCHRUN: []}
        for number in range(self.args.torch_jobs):
            for which in found if number % 2 == 0 else reversed(found):
                say(f"until the next step, job {number + 1} of {self.args.torch_jobs}: {which}")
                found[which].append(training.unless_broken(which, functools.partial(self.next_step, which))[0])
        return found

    def next_step(self, which):
        ours, count, limit_s = which == training.OURS, self.args.torch_ranks, self.args.torch_limit
        options = [f"--nproc-per-node={count}", f"--log-dir={self.temporary}/job/logs"]
        options += (["--hang=restart", f"--hang-timeout={limit_s}s", f"--events={self.temporary}/job/events"] if ours
                    else ["--max-restarts=1"])
        with Job(self.binary if ours else self.torchrun, options, self.temporary, training.variables_of(),
                 "hang_torch_worker.py", STEPS, PAUSE_S, 0 if ours else limit_s) as job:
            ends_ms = max(job.noted("last", count)) / 1e6 + 1000 * limit_s
            with contextlib.ExitStack() as stack:
                gone_ms = all_gone_ms([stack.enter_context(ended(pid)) for pid in job.noted("pid", count)])
            next_ms = max(job.noted("next", count)[rank] for rank in range(count) if rank != 1) / 1e6
            if ours:
                told = job.hang_event("told")
                if told["ranks_at_fault"] != [1]:
                    raise BenchError(f"the verdict is not that rank 1 is at fault: {json.dumps(told)}")
            known_ms = told["monotonic_ms"] if ours else min(job.some_noted("raised")) / 1e6
        return Next(*((at_ms - ends_ms) / 1000 for at_ms in (known_ms, gone_ms, next_ms)))

    def hang(self):
        limit_ms = 1000 * self.args.limit
        options = self.options(f"--hang-timeout={self.args.limit}s", f"--events={self.temporary}/job/events")
        with self.job(self.binary, options, STEPS) as job:
            limit_ends_ms = max(job.noted("last", self.args.ranks)) / 1e6 + limit_ms
            asked, told = job.hang_event("suspect"), job.hang_event("told")
            if told["ranks_at_fault"] != [1] or told["limit_ms"] != limit_ms:
                raise BenchError(f"the verdict is not that rank 1 is at fault: {json.dumps(told)}")
            stacks = self.stacks(job)
        return Hang((told["monotonic_ms"] - limit_ends_ms) / 1000, (asked["monotonic_ms"] - limit_ends_ms) / 1000, *stacks)

    def stacks(self, job):
        launcher = crowd.launcher_of(job.launch.pid)
        worker = crowd.launcher_of(launcher)  # the first of its workers
        calls = [[self.binary, f"--stacks={launcher}"], [self.binary, f"--stacks={worker}"],
                 [self.py_spy, "dump", "--nonblocking", f"--pid={worker}"], [self.py_spy, "--version"]]
        took = [[] for _ in calls]
        self.check_page(calls[0])
        for turn in range(self.args.turns):
            for which in range(len(calls)) if turn % 2 == 0 else reversed(range(len(calls))):
                took[which].append(common.timed(calls[which], self.temporary))
        return took

    def check_page(self, call):
        """All ranks must be on it, and with their stacks: else less than that was timed."""
        path = pathlib.Path(self.temporary) / "page"
        with open(path, "wb") as page:
            launch = common.Launch(call, self.temporary, output=page.fileno())
            try:
                launch.wait()
            finally:
                launch.stop()
        text = path.read_text()
        workers, _, threads = text.partition("\n\n")[2].partition("Processes that they have started")
        if f"{self.args.ranks} workers, 2 different stacks" not in text or workers.count("load_batch") != 1 or threads:
            raise BenchError(f"these are not the stacks of {self.args.ranks} ranks:\n{text[:2000]}")

    def watched(self):
        """{launcher: {round: percent of a core}}"""
        found = {REPORT: {}, OFF: {}, TORCHRUN: {}}
        with_torchrun = {index * self.args.runs // self.args.torchrun_runs for index in range(self.args.torchrun_runs)}
        for number in range(self.args.runs):
            turns = [one for one in found if one != TORCHRUN or number in with_torchrun]
            for which in turns if number % 2 == 0 else reversed(turns):
                say(f"watching, round {number + 1} of {self.args.runs}: {which}")
                found[which][number] = self.cpu_percent(which)
        return found

    def cpu_percent(self, which):
        program, more = (self.torchrun, []) if which == TORCHRUN else (self.binary, [which])
        with self.job(program, self.options("--redirects=3", *more), 0) as job:
            job.noted("came", self.args.ranks)
            time.sleep(STEADY_S)
            launcher = None if which == TORCHRUN else crowd.launcher_of(job.launch.pid)
            pids = [pid for pid in (job.launch.pid, launcher) if pid is not None]
            before, began = [cpu_s(pid) for pid in pids], time.monotonic()
            time.sleep(self.args.seconds)
            used, took = sum(cpu_s(pid) for pid in pids) - sum(before), time.monotonic() - began
        return 100 * used / took


@contextlib.contextmanager
def ended(pid):
    """A descriptor that is ready as soon as the process has ended."""
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


def all_gone_ms(handles):
    """When the last of these processes had ended, by CLOCK_MONOTONIC."""
    deadline, left = time.monotonic() + PATIENCE_S, list(handles)
    while left:
        gone, _, _ = select.select(left, [], [], max(0, deadline - time.monotonic()))
        if not gone:
            raise BenchError(f"{len(left)} ranks have not ended in {PATIENCE_S} s")
        left = [handle for handle in left if handle not in gone]
    return time.monotonic_ns() / 1e6


def cpu_s(pid):
    """Of all threads that the process has or had: its own clock (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


# --- Report --------------------------------------------------------------------------------------


def added_ms(args, hang):
    """By each rank, of the stacks of all."""
    return (statistics.median(hang.all_ms) - statistics.median(hang.one_ms)) / (args.ranks - 1)


def judge(args, hangs, stops, watched):
    goals = []
    if hangs:
        goals += [Goal("end of the limit to the verdict, s", VERDICT_S, False, Spread.of([one.verdict_s for one in hangs])),
                  Goal("stack of a rank, ms", STACK_MS, False, Spread.of([added_ms(args, one) for one in hangs]))]
    if stops:
        goals.append(Goal("end of the limit to all stopped, s", STOPPED_S, False, Spread.of([one.stopped_s for one in stops])))
    if watched:
        added = [watched[REPORT][number] - watched[OFF][number] for number in watched[REPORT]]
        goals.append(Goal("watching, % of a core", WATCH_PERCENT, False, Spread.of(added)))
    return goals


def row(what, values, digits):
    spread = Spread.of(values)
    return [what, *(f"{value:.{digits}f}" for value in (spread.median, spread.min, spread.max)), str(spread.count)]


def stop_rows(args, stops):
    if not stops:
        return []
    about = [f"{args.ranks}, plain Python", "elastic-run --hang=restart", f"{args.limit} s"]
    return [about + row("evidence is asked for", [one.suspect_s for one in stops], 2),
            about + row("the verdict is told", [one.verdict_s for one in stops], 2),
            about + row("no process of the round is left", [one.stopped_s for one in stops], 2)]


def next_rows(args, launcher, found):
    about = [f"{args.torch_ranks}, PyTorch with gloo",
             "elastic-run --hang=restart" if launcher == training.OURS else "torchrun, timeout of init_process_group",
             f"{args.torch_limit} s"]
    known = "the verdict is told" if launcher == training.OURS else "the first collective fails"
    return [about + row(known, [one.known_s for one in found], 2),
            about + row("no rank of the round is left", [one.stopped_s for one in found], 2),
            about + row("the next step of the other ranks", [one.next_s for one in found], 2)]


def report(args, versions, machine, hangs, stops, further, watched, goals):
    print(f"{'; '.join(versions)}; {common.describe(machine)}")
    if hangs:
        print(f"\n{args.ranks} RANKS HANG, --hang-timeout={args.limit}s")
        common.print_table(["<from the end of the limit, s", "median", "min", "max", "jobs"], [
            row("until evidence is asked for", [one.suspect_s for one in hangs], 2),
            row("until the verdict is told", [one.verdict_s for one in hangs], 2)])
        print("\nTHEIR STACKS, ms (of each job the median of its turns)")
        medians = [{name: statistics.median(values) for name, values in dataclasses.asdict(one).items()
                    if isinstance(values, list)} for one in hangs]
        common.print_table(["<read by", "median", "min", "max", "jobs"], [
            row(f"elastic-run --stacks, all {args.ranks} ranks", [one["all_ms"] for one in medians], 2),
            row("elastic-run --stacks, one rank", [one["one_ms"] for one in medians], 2),
            row("a rank adds", [added_ms(args, one) for one in hangs], 3),
            row("py-spy dump --nonblocking, one rank", [one["py_spy_ms"] for one in medians], 2),
            row("the same, less its start", [one["py_spy_ms"] - one["py_spy_start_ms"] for one in medians], 2)])
    if stops or further:
        print("\nA HANG ENDS: FROM THE END OF THE LIMIT, OR OF THE COLLECTIVE'S TIMEOUT, s")
        common.print_table(["<ranks", "<launcher", "limit", "<until", "median", "min", "max", "jobs"],
                           [*stop_rows(args, stops), *(line for item in further.items() for line in next_rows(args, *item))])
    if watched:
        print(f"\nPROCESSOR TIME OF THE LAUNCHER, % OF A CORE: {args.ranks} RANKS, {1 / PAUSE_S:g} STEP LINES A SECOND EACH")
        common.print_table(["<launcher", "median", "min", "max", "runs"], [
            row(which if which == TORCHRUN else f"elastic-run {which}", list(found.values()), 2)
            for which, found in watched.items()])
    print("\nGOALS")
    common.print_goals(goals)
    print(f"\n{NOTES}")


if __name__ == "__main__":
    common.run_main(main)
