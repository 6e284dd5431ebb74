"""The simulator for an hour on all cores: faults by the states that they met, and nothing broken."""

import argparse
import os
import pathlib
import subprocess
import sys
import time

import common
from common import BenchError, positive

NOTES = """\
A seed decides a job of some nodes, and everything that goes wrong in it. A faulty round is one in which a
fault struck while it was formed, checked, prepared, stopped, rebuilt or ended. The last lines say with which seed
to go on another time. What breaks an invariant is printed with the command that shows it."""


def main():
    parser = argparse.ArgumentParser(prog="scripts/soak simulation", description=__doc__, epilog=NOTES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", type=positive, default=1_000_001, dest="first", metavar="SEED",
                        help="the first seed (1000001: behind those of the tests)")
    parser.add_argument("--minutes", type=positive, default=60)
    parser.add_argument("--jobs", type=positive, default=os.cpu_count(), metavar="N")
    parser.add_argument("--faulty-rounds", type=positive, metavar="N", help="end after so many, if that is sooner")
    args = parser.parse_args()
    program = pathlib.Path(common.elastic_run_binary()).parent / "tests/simulation/simulate"
    if not os.access(program, os.X_OK):
        raise BenchError(f"no {program}: build everything (cmake --build --preset release)")
    command = [str(program), "--seed", str(args.first), "--seconds", str(60 * args.minutes), "--jobs", str(args.jobs),
               "--table", "--progress"]
    if args.faulty_rounds:
        command += ["--faulty-rounds", str(args.faulty_rounds)]
    print(" ".join(command), file=sys.stderr)
    began = time.monotonic()
    status = subprocess.run(command, check=False).returncode
    print(f"{time.monotonic() - began:.0f} s by the wall clock, {args.jobs} processes; go on behind the last seed "
          "with --from")
    return status


common.run_main(main)
