"""Tests again and again beside processes that compute; each run is a line of a table, and what is there is not run again."""

import argparse
import csv
import dataclasses
import datetime
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import common
from common import BenchError, positive, say
from hogs import hogs

ROOT = pathlib.Path(__file__).resolve().parents[2]
END_S = 60  # for a test that is interrupted
WHOLE = {"gate": ["scripts/test"], "full": ["scripts/test", "full"]}

NOTES = """\
A test is the id of a pytest case or a file of them, or one of the words `gate` and `full`: scripts/test, and
scripts/test full. The tests take turns: each begins once before one begins a second time. A line of the table is of one
run: when it began, the commit (with a + where files have changed since), the load, the test, its exit status, its seconds,
and its last line. Runs of the same commit, load and test count, so that a soak that was ended goes on where it was; of a
commit with changes they do not. A failed run has its output beside the table, in TABLE.output."""


@dataclasses.dataclass(frozen=True)
class Run:
    began: str
    commit: str
    load: int
    test: str
    status: int
    seconds: float
    said: str


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for test in args.tests:
        if test not in WHOLE and not (ROOT / test.partition("::")[0]).is_file():
            raise BenchError(f"no test {test}: name a file below {ROOT}, FILE::CASE, gate or full")
    table = pathlib.Path(args.table)
    commit = commit_of(ROOT)
    counted = [run for run in read(table) if (run.commit, run.load) == (commit, args.load) and not commit.endswith("+")]
    wanted = [(number, test) for number in range(1, args.times + 1) for test in args.tests
              if sum(run.test == test for run in counted) < number]
    # A shell lets what it starts in the background ignore SIGINT, which tests send.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with hogs(args.load):
        running = []
        try:
            while wanted or running:
                while wanted and len(running) < args.jobs:
                    number, test = wanted.pop(0)
                    say(f"{test}: {number} of {args.times}")
                    running.append(Running(test))
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
                for one in [one for one in running if one.process.poll() is not None]:
                    running.remove(one)
                    counted.append(one.run(commit, args.load, table))
                    append(table, counted[-1])
        finally:
            for one in running:
                one.end()
    say("")
    failed = 0
    rows = []
    for test in args.tests:
        runs = [run for run in counted if run.test == test]
        wrong = sum(run.status != 0 for run in runs)
        failed += wrong
        rows.append([test, str(len(runs)), str(wrong), f"{max(run.seconds for run in runs):.0f}"])
    common.print_table(["test", "runs", "failed", "longest, s"], rows)
    print(f"\ncommit {commit}, {args.load} processes that compute\nverdict: " + (f"{failed} failed" if failed else "none failed"))
    return 1 if failed else 0


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak suite", description=__doc__, epilog=NOTES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="+", metavar="TEST", help="tests/system/test_x.py::test_y, a file, gate, or full")
    parser.add_argument("--times", type=positive, default=20, metavar="N", help="how often each is run (%(default)s)")
    parser.add_argument("--load", type=positive, default=0, metavar="N",
                        help="how many processes compute meanwhile (none)")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="how many tests run at once (%(default)s)")
    parser.add_argument("--table", default=str(ROOT / "build/suite-runs.tsv"), metavar="FILE", help="where the lines go (%(default)s)")
    return parser.parse_args()


def commit_of(root):
    """What is tested; with a + it is more than that commit."""
    def git(*words):
        return subprocess.run(["git", "-C", root, *words], check=True, capture_output=True, text=True).stdout
    return git("rev-parse", "--short=9", "HEAD").strip() + ("+" if git("status", "--porcelain").strip() else "")


class Running:
    """A test that has begun."""

    def __init__(self, test):
        self.test = test
        self.began, self.start = datetime.datetime.now().isoformat(timespec="seconds"), time.monotonic()
        self.output = tempfile.TemporaryFile()
        command = WHOLE.get(test) or ["scripts/pytest", test]
        self.process = subprocess.Popen([ROOT / command[0], *command[1:]], cwd=ROOT, stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True)

    def end(self):
        """Before its time: as by Ctrl-C, so that it leaves nothing behind."""
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def run(self, commit, load_now, table):
        """The row of it, now that it has ended."""
        seconds, status = round(time.monotonic() - self.start, 1), self.process.returncode
        with self.output:
            self.output.seek(0)
            text = self.output.read().decode(errors="replace")
        if status:
            with open(f"{table}.output", "a") as file:
                file.write(f"=== {self.began} {commit} {load_now} {self.test}: {status}\n{text}\n")
        lines = [line for line in text.splitlines() if line.strip()]
        return Run(self.began, commit, load_now, self.test, status, seconds, re.sub(r"\s+", " ", lines[-1]) if lines else "")


def read(table):
    """The runs of the table; a line that was cut off is none."""
    if not table.exists():
        return []
    kinds = [field.type for field in dataclasses.fields(Run)]
    with open(table, newline="") as file:
        return [Run(*(kind(text) for kind, text in zip(kinds, row, strict=True)))
                for row in csv.reader(file, delimiter="\t") if len(row) == len(kinds) and row[0] != "began"]


def append(table, run):
    table.parent.mkdir(parents=True, exist_ok=True)
    new = not table.exists()
    with open(table, "a", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        if new:
            writer.writerow([field.name for field in dataclasses.fields(Run)])
        writer.writerow(dataclasses.astuple(run))


if __name__ == "__main__":
    common.run_main(main)
