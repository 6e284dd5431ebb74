"""A rank dies while status and metrics are asked for again and again: what the load does to the restart."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import common
from common import BenchError, Goal, Marks, Spread, positive, say

sys.path.append(str(common.HERE.parent))
from ports import free_port  # noqa: E402

NOTES = """\
As in scripts/bench restart: from the death of rank 0 until the last new rank is in main(), a job of one node. Loaded: another
process asks --http-port meanwhile for /metrics and /status by turns, so many times a second, ten requests at a time on two
connections; it needs a core of its own, and on a machine without one its work is in the ratio. Quiet and loaded runs take
turns; the ratio is taken between the medians of the same round."""


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        worker = common.compile_c("restart_worker", temporary)
        binary = common.elastic_run_binary()
        machine = common.machine()
        gaps, rates = {"quiet": {}, "loaded": {}}, []
        for number in range(args.runs):
            for kind in ("quiet", "loaded") if number % 2 == 0 else ("loaded", "quiet"):
                say(f"run {number + 1} of {args.runs}, {kind}")
                gaps[kind][number] = one_run(binary, worker, args, temporary, kind == "loaded", rates)
        version = common.elastic_run_version(binary)
    say("")
    medians = {kind: {number: Spread.of(found).median for number, found in runs.items()} for kind, runs in gaps.items()}
    ratio = Spread.of(common.pairs(medians["loaded"], medians["quiet"]))
    goals = [Goal("restart under load / quiet", 1.5, False, ratio)]
    print(f"{version}; {args.ranks} ranks, {args.runs} runs of {args.restarts} restarts each")
    print(common.describe(machine))
    print(f"answered: {Spread.of(rates).median:.0f} requests a second (asked for: {args.rate})\n")
    rows = []
    for kind, runs in gaps.items():
        spread = Spread.of([gap for found in runs.values() for gap in found])
        rows.append([kind, f"{spread.median:.2f}", f"{spread.min:.2f}", f"{spread.max:.2f}", f"{spread.count}"])
    common.print_table(["<restart, ms", "median", "min", "max", "count"], rows)
    print("\nGOALS")
    common.print_goals(goals)
    print("\n" + NOTES)
    if args.json:
        common.write_json(args.json, {"benchmark": "status", "machine": machine, "version": version, "restart_ms": gaps,
                                      "requests_per_s": rates, "goals": [goal.as_json() for goal in goals]})


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench status", description=__doc__)
    parser.add_argument("--ranks", type=positive, default=8, metavar="N")
    parser.add_argument("--runs", type=positive, default=6, metavar="N", help="quiet, and as many loaded (%(default)s)")
    parser.add_argument("--restarts", type=positive, default=20, metavar="N", help="in each run (%(default)s)")
    parser.add_argument("--rate", type=positive, default=1000, metavar="N", help="requests a second (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    return parser.parse_args()


def start_load(port, rate):
    """It is ready before the job begins: a job of few restarts may be over before Python has started."""
    load = subprocess.Popen([sys.executable, common.HERE.parent / "http_load.py", str(port), str(rate)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    load.stdout.readline()
    return load


def one_run(binary, worker, args, temporary, is_loaded, rates):
    """The milliseconds of each restart."""
    port = free_port()
    marks = Marks(pathlib.Path(temporary) / "marks", args.ranks, args.restarts, pause_us=20_000, pause_spread_us=20_000)
    load = start_load(port, args.rate) if is_loaded else None
    launch = common.Launch([binary, "--standalone", "--no-python", f"--nproc-per-node={args.ranks}",
                            f"--max-restarts={args.restarts}", f"--http-port={port}", "--log-dir=/dev/null", worker,
                            marks.path], temporary)
    try:
        launch.wait()
    finally:
        launch.stop()
        if load:
            told, problem = load.communicate("", timeout=60)
    if load:
        if not told:
            raise BenchError(f"the load has failed: {problem}")
        rates.append(float(told))
    return marks.gaps_ms()


if __name__ == "__main__":
    common.run_main(main)
