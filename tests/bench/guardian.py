"""What the outer process costs: the time of a launch, and its private memory."""

import argparse
import os
import pathlib
import subprocess
import tempfile

import common
from common import BenchError, Spread, positive

NOTES = """\
Time: a process that ends at once, beside one that splits off a launcher which ends at once (fork, channel,
descriptors closed, the launcher's end seen, nothing left behind found). Taken in pairs, each first in turn.
Memory: Private_Clean and Private_Dirty of the outer process, from smaps_rollup, while a worker runs."""
BOUND_MS, BOUND_KIB = 1.0, 1024


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench guardian", description=__doc__)
    parser.add_argument("--pairs", type=positive, default=500, metavar="N", help="(%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    args = parser.parse_args()
    binary = common.elastic_run_binary()
    machine = common.machine()
    plain, split = measured_times(binary, args.pairs)
    private_kib = private_memory(binary)
    added = Spread.of([(two - one) / 1e6 for one, two in zip(plain, split)])

    print(f"{common.elastic_run_version(binary)}; {common.describe(machine)}\n")
    common.print_table(["<what", "median", "min", "max", "bound", "<goal"], [
        ["ms that the outer process adds to a launch",
         *(f"{value:.3f}" for value in (added.median, added.min, added.max)), f"< {BOUND_MS:g}",
         "reached" if added.median < BOUND_MS else "MISSED"],
        ["KiB of private memory", str(private_kib), "", "", f"< {BOUND_KIB}",
         "reached" if private_kib < BOUND_KIB else "MISSED"]])
    print(f"\n{NOTES}")
    if args.json:
        common.write_json(args.json, {"benchmark": "guardian", "machine": machine, "plain_ns": plain,
                                      "split_ns": split, "private_kib": private_kib})


def measured_times(binary, pairs):
    program = pathlib.Path(binary).parent / "tests/bench/guardian_cost"
    if not program.exists():
        raise BenchError(f"no {program}: build everything (cmake --build --preset release)")
    done = subprocess.run([program, str(pairs)], capture_output=True, text=True, check=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    if done.returncode != 0 or len(lines) != pairs:
        raise BenchError(f"{program} ended with {done.returncode} after {len(lines)} of {pairs} pairs")
    return [int(line[0]) for line in lines], [int(line[1]) for line in lines]


def private_memory(binary):
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        ready, says_ready = os.pipe()
        launch = common.Launch([binary, "--no-python", "sh", "-c", "echo up; exec sleep 1000"], temporary,
                               output=says_ready)
        try:
            os.close(says_ready)
            if b"up" not in os.read(ready, 100):
                raise BenchError("the worker did not come up")
            rollup = pathlib.Path(f"/proc/{launch.pid}/smaps_rollup").read_text()
        finally:
            launch.stop()
            os.close(ready)
    return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))


if __name__ == "__main__":
    common.run_main(main)
