"""A thousand restarts by warm workers, and SIGKILLs at random moments: nothing grows, nothing is left, no rank is there twice."""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import random
import re
import select
import signal
import sys
import tempfile
import time

import common
import crowd
import restarts
from common import BenchError, positive, say

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from warm_torch import make_python  # noqa: E402

RANKS = 4
KILLS_OF_JOB = 10   # then another job is started
MOST_SERVERS = 4    # of a job that are killed: it starts five in all
WHO = ["the launcher", "the guardian", "the server", "a worker that waits", "a middle process"]
LIMIT_S = 60        # for what must come
END_S = 10          # for all processes to go when launcher or guardian was killed
COLD_S = 2          # without a server for so long a job has given it up; no more come to wait if none has for so long

# Notes when it comes, and holds a lock for its rank as long as it lives: whoever comes while it is held tells the holder.
# A round's rank 0 fails when it is told to.
WORKER = """
import os, sys, time, fcntl
import torch
place, rank = sys.argv[1], int(os.environ["RANK"])
lock = os.open(f"{place}/lock{rank}", os.O_RDWR | os.O_CREAT, 0o600)
conflict = 0
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    conflict = 1
marks = os.open(f"{place}/marks", os.O_WRONLY | os.O_APPEND)
count = os.environ["TORCHELASTIC_RESTART_COUNT"]
os.write(marks, f"{count} {rank} {os.getpid()} {conflict}\\n".encode())
if rank == 0:
    go = os.open(f"{place}/go", os.O_RDONLY)
    os.read(go, 1)
    os._exit(3)
while True:
    time.sleep(1000)
"""

NOTES = f"""\
{RANKS} workers of the standard library, whose torch is a stand-in. First: rank 0 of each round fails as soon as the workers
of the next one wait, so that each restart is warm. Memory is from smaps, without the pages of the program's file, while
the ranks of a round run and others wait. Second: one process is killed by SIGKILL at a random moment, of the time in which modules are imported and workers
forked, or of a failure and the order that follows: one of {', '.join(WHO)}
(which forks a worker that waits, and ends). Then, if launcher and guardian live, rank 0 fails, and all ranks must come once,
all fresh or all warm, with one restart charged; if not, all processes must have gone within {END_S} s. A rank holds a lock
as long as it lives. Which start a round was is what elastic-run's events say."""


class Wrong(Exception):
    """What was promised was not kept."""


@dataclasses.dataclass(frozen=True)
class Mark:
    """A worker has come."""

    count: int
    rank: int
    pid: int
    conflict: bool


class Job:
    def __init__(self, binary, python, directory, most_restarts):
        self._place = pathlib.Path(directory)
        self._place.mkdir()
        self._worker = self._place / "worker.py"
        self._worker.write_text(WORKER)
        (self._place / "marks").touch()
        os.mkfifo(self._place / "go")
        self._go = os.open(self._place / "go", os.O_RDWR | os.O_CLOEXEC)  # opening blocks nobody
        self._told = open(self._place / "told", "wb+")  # pylint: disable=consider-using-with
        self._read = 0
        self._heard = 0
        self._marks = []
        self._events_read = 0
        self._starts = {}
        self.launch = common.Launch(
            [binary, "--standalone", f"--nproc-per-node={RANKS}", f"--max-restarts={most_restarts}", "--warm-workers=on",
             "--warm-after=0", "--log-level=info", "--log-dir=/dev/null", f"--events={self._place}/events", str(self._worker), str(self._place)],
            directory, variables={"PYTHON_EXEC": str(python)}, output=self._told.fileno())
        self.outer = self.launch.pid
        self.launcher = None

    def close(self):
        self.launch.stop()
        self._told.close()
        os.close(self._go)

    def told(self):
        return os.pread(self._told.fileno(), 1 << 24, 0).decode(errors="replace")

    def hears(self, line):
        """It has told that since it was asked last."""
        data = os.pread(self._told.fileno(), 1 << 24, self._heard)
        at = data.rfind(line.encode())
        self._heard += max(at + 1, 0)
        return at >= 0

    def wait(self, what, condition):
        """The first true value of the condition."""
        until = time.monotonic() + LIMIT_S
        while True:
            if value := condition():
                return value
            if self.has_ended():
                raise Wrong(f"{what}: it has ended: {self.told()[-2000:]}")
            if time.monotonic() > until:
                raise Wrong(f"{what}: not within {LIMIT_S} s: {self.told()[-2000:]}")
            time.sleep(0.001)

    def has_ended(self):
        return bool(select.select([self.launch.pidfd], [], [], 0)[0])

    def marks(self):
        lines = whole_lines(self._place / "marks", self._read)
        self._read += len(lines)
        for line in lines.splitlines():
            count, rank, pid, conflict = map(int, line.split())
            self._marks.append(Mark(count, rank, pid, bool(conflict)))
        return self._marks

    def starts(self):
        """{restart: "fresh" or "warm"}, by the events."""
        lines = whole_lines(self._place / "events", self._events_read)
        self._events_read += len(lines)
        for event in map(json.loads, lines.splitlines()):
            if event["event"] != "workers_started":
                continue
            if event["restart_count"] in self._starts:
                raise Wrong(f"the workers of restart {event['restart_count']} were started twice: {event}")
            self._starts[event["restart_count"]] = event["start"]
        return self._starts

    def was_warm(self, found):
        """How the workers of a round that round() has found were started."""
        count = found[0].count
        return self.wait(f"how round {count} was started", lambda: self.starts().get(count)) == "warm"

    def look(self):
        """Raises if a rank was there twice."""
        came = collections.Counter((mark.count, mark.rank) for mark in self.marks())
        twice = [place for place, times in came.items() if times > 1]
        if twice or any(mark.conflict for mark in self._marks):
            raise Wrong(f"ranks {twice} (restart, rank) came twice, or while others held their locks: {self._marks[-8:]}")

    def round(self, count, most=None):
        """The workers of the round when all have come, or of a later one, up to that number."""
        def complete():
            for later in range(count, (most or count) + 1):
                found = [mark for mark in self.marks() if mark.count == later]
                if len(found) >= RANKS:
                    return found
            return None
        found = self.wait(f"round {count}", complete)
        self.look()
        if sorted(mark.rank for mark in found) != list(range(RANKS)):
            raise Wrong(f"round {count} is {found}")
        self.launcher = self.launcher or self.wait("the launcher", lambda: crowd.launcher_of(self.outer))
        return found

    def last(self):
        return max((mark.count for mark in self.marks()), default=-1)

    def fail(self):
        os.write(self._go, b".")

    def processes(self):
        """[(pid, parent, session)] of the import server and all that it has forked and that has no rank yet."""
        found = []
        for pid in children_of(self.launcher):
            if is_of_server(pid):
                found += [(pid, self.launcher)] + [(each, pid) for each in children_of(pid) if is_of_server(each)]
        return found

    def server(self):
        return next((pid for pid, parent in self.processes() if parent == self.launcher and session_of(pid) == pid), None)

    def waiting(self):
        server = self.server()
        return [pid for pid, parent in self.processes()
                if parent == self.launcher and server is not None and pid != server and session_of(pid) == server]

    def wait_until_others_wait(self):
        """All of them, but for one that was killed. False if they never will, since the job has given its server up."""
        seen, since = None, 0.0

        def are_there():
            nonlocal seen, since
            now = (self.server(), self.waiting())
            if now != seen:
                seen, since = now, time.monotonic()
            return len(now[1]) >= RANKS or time.monotonic() > since + COLD_S
        self.wait("others that wait", are_there)
        return self.server() is not None

    def left(self):
        return [pid for pid in all_processes() if str(self._worker) in command_of(pid).split("\0")]


def whole_lines(path, begin):
    try:
        with open(path, "rb") as file:
            file.seek(begin)
            data = file.read()
    except FileNotFoundError:
        return b""
    return data[:data.rfind(b"\n") + 1]


def all_processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children_of(pid):
    try:
        return [int(each) for each in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def is_of_server(pid):
    return "_elastic_run_warm" in command_of(pid)


def session_of(pid):
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


# --- A thousand restarts. --------------------------------------------------------------------------------


def many_restarts(binary, python, temporary, args):
    """({process: [Sample]}, seconds): all but the first round are warm, and by one server."""
    every = max(1, args.restarts // args.samples)
    samples = {name: [] for name in ("outer process", "launcher", "import server")}
    job = Job(binary, python, f"{temporary}/restarts", args.restarts)
    began = time.monotonic()
    try:
        servers = set()
        for count in range(args.restarts):
            found = job.round(count)
            if (is_warm := job.was_warm(found)) != (count > 0):
                raise Wrong(f"round {count} is {'warm' if is_warm else 'fresh'}: {job.told()[-2000:]}")
            job.wait("others that wait", lambda: job.hears(f"{RANKS} warm workers wait for the next round"))
            if count % every == 0 and count > 0:
                say(f"restart {count} of {args.restarts}")
                servers.add(job.server())
                for name, pid in zip(samples, (job.outer, job.launcher, job.server())):
                    samples[name].append(restarts.look(pid, count))
            job.fail()
        job.round(args.restarts)  # no restart is left: nobody waits, and there is no end by itself
        if len(servers) != 1:
            raise Wrong(f"there was more than one import server: {servers}")
        os.kill(job.outer, signal.SIGTERM)
        wait_for_end(job)
    finally:
        job.close()
    return samples, time.monotonic() - began


def wait_for_end(job):
    """Nothing is left of it."""
    until = time.monotonic() + END_S
    while not job.has_ended() or job.left():
        if time.monotonic() > until:
            raise Wrong(f"left of a job: {[(pid, command_of(pid)[-300:]) for pid in job.left()]}: {job.told()[-2000:]}")
        time.sleep(0.002)
    job.look()


# --- Kills. ----------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Counted:
    kills: dict = dataclasses.field(default_factory=lambda: dict.fromkeys(WHO, 0))
    missed: int = 0   # there was none to kill at that moment
    became: int = 0   # those that waited and had a rank meanwhile: a worker was killed
    jobs: int = 0
    warm: int = 0     # rounds after a kill
    fresh: int = 0


def many_kills(binary, python, temporary, args, counted):
    chance = random.Random(args.seed)
    while sum(counted.kills.values()) < args.kills:
        job = Job(binary, python, f"{temporary}/kills{counted.jobs}", 1000)
        counted.jobs += 1
        try:
            kill_in(job, chance, args, counted)
        finally:
            job.close()


def kill_in(job, chance, args, counted):
    """Kills processes of one job until it has none, or had enough."""
    servers = 0
    count = 0
    job.round(count)
    for _ in range(KILLS_OF_JOB):
        if sum(counted.kills.values()) >= args.kills:
            break
        say(f"{sum(counted.kills.values())} of {args.kills} kills, {counted.jobs} jobs")
        who = chance.choice([each for each in WHO if each != "the server" or servers < MOST_SERVERS])
        in_order = chance.random() < 0.5
        if in_order:
            if not job.wait_until_others_wait():
                break
            job.fail()
        wait_s = chance.random() * (0.15 if in_order else 0.6)
        place = chance.random()
        time.sleep(wait_s)  # the moment, not a wait for anything
        killed = kill(job, who, place)
        if killed is None:
            counted.missed += 1
        else:
            counted.kills[who] += 1
            servers += who == "the server"
        if who in WHO[:2] and killed is not None:
            wait_for_end(job)
            return
        if not in_order:
            job.fail()
        count += 1
        # One that waited may have its rank when it is killed, and then a worker has failed.
        may_fail = who == WHO[3] and in_order and killed is not None
        found = job.round(count, count + may_fail)
        if may_fail and found[0].count == count and any(mark.pid == killed for mark in found):
            found = job.round(count + 1)
        counted.became += found[0].count - count
        count = found[0].count
        is_warm = job.was_warm(found)
        counted.warm += is_warm
        counted.fresh += not is_warm
    os.kill(job.outer, signal.SIGTERM)
    wait_for_end(job)
    charged = re.findall(r"(\d+) of \d+ restarts were used", job.told())
    if not charged or int(charged[-1]) != count:
        raise Wrong(f"{charged[-1:]} restarts were charged for {count} failures: {job.told()[-2000:]}")
    if job.last() != count:
        raise Wrong(f"{job.last()} restarts instead of {count}: {job.told()[-2000:]}")


def kill(job, who, place):
    """The pid of the process that was killed; None if there was none of that kind."""
    if who == "the launcher":
        return killed_by_number(job.launcher)
    if who == "the guardian":
        return killed_by_number(job.outer)
    if who == "the server":
        return killed_by_number(job.server())
    if who == "a worker that waits":
        waiting = job.waiting()
        return killed_by_number(waiting[int(place * len(waiting))]) if waiting else None
    # It is there for a moment, while the server forks: whoever is the server's child then.
    until = time.monotonic() + 0.5
    while time.monotonic() < until and not job.has_ended():
        server = job.server()
        for pid in children_of(server) if server is not None else []:
            if is_of_server(pid) and children_of(server) == [pid]:
                return killed_by_number(pid)
    return None


def killed_by_number(pid):
    if pid is None:
        return None
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return None
    return pid


# --- The whole. ------------------------------------------------------------------------------------------


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine = common.machine()
    wrong, samples, counted = None, {}, Counted()
    with tempfile.TemporaryDirectory(prefix="elastic-run-soak.") as temporary:
        binary = common.elastic_run_binary()
        print(f"{common.elastic_run_version(binary)}; {common.describe(machine)}; seed {args.seed}")
        python = make_python(pathlib.Path(temporary) / "venv", sys.executable)
        try:
            if args.restarts:
                samples, took_s = many_restarts(binary, python, temporary, args)
                say("")
                wrong = report_restarts(args, samples, took_s)
            if args.kills:
                many_kills(binary, python, temporary, args, counted)
        except (Wrong, BenchError) as error:
            wrong = str(error)
    say("")
    if args.kills:
        print(f"\n{sum(counted.kills.values())} SIGKILLS: " + ", ".join(f"{who} {times}" for who, times in
                                                                     counted.kills.items()))
        print(f"{counted.jobs} jobs; rounds after a kill: {counted.warm} warm, {counted.fresh} fresh; {counted.became} of "
              f"those that waited had their ranks already; {counted.missed} times there was none to kill")
    print(f"\n{NOTES}")
    print("\nverdict: " + (f"WRONG\n{wrong}" if wrong else "nothing grown, nothing left, no rank twice"))
    if args.json:
        common.write_json(args.json, {
            "soak": "warm", "machine": machine, "seed": args.seed, "wrong": wrong, "counted": dataclasses.asdict(counted),
            "samples": {name: [dataclasses.asdict(one) for one in found] for name, found in samples.items()}})
    return 0 if wrong is None else 1


def report_restarts(args, samples, took_s):
    growths = restarts.judge(samples)
    print(f"\n{args.restarts} RESTARTS OF {RANKS} WARM RANKS in {took_s:.0f} s")
    common.print_table(
        ["<process", "<", "first tenth", "last tenth", "grown", "may grow", "<"],
        [[one.process, restarts.NAMES[one.what], f"{one.first:g}", f"{one.last:g}", f"{one.last - one.first:+g}",
          f"{one.allowed:g}", "flat" if one.flat else "NOT FLAT"] for one in growths])
    return None if all(one.flat for one in growths) else "something has grown"


def number(text):
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("less than 0")
    return value


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak warm", description=__doc__)
    parser.add_argument("--restarts", type=number, default=1000, metavar="N", help="%(default)s; 0: none")
    parser.add_argument("--samples", type=positive, default=50, metavar="N",
                        help="looks at the processes, 20 at least (%(default)s)")
    parser.add_argument("--kills", type=number, default=100, metavar="N", help="%(default)s; 0: none")
    parser.add_argument("--seed", type=positive, default=1, metavar="N")
    parser.add_argument("--json", metavar="FILE", help="what was found, as JSON")
    args = parser.parse_args()
    if args.restarts and (args.samples < 20 or args.restarts <= args.samples):
        parser.error("a tenth of the samples is compared: 20 samples at least, and a restart for each")
    return args


if __name__ == "__main__":
    common.run_main(main)
