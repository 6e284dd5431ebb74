"""PyTorch's launcher tests, accelerate, Lightning, transformers, DeepSpeed: each under elastic-run and torchrun."""

import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import common
from common import BenchError

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCHERS = ["elastic-run", "torchrun"]
PACKAGES = ["torch", "accelerate", "lightning", "transformers", "deepspeed"]

NOTES = """\
exit 0, exit 1: how the launcher ended, with seconds. Of elastic-run every outcome is the one that is expected; of torchrun
too, except where it did not end or failed after a process was killed, which is told here and fails nothing."""


def main():
    args = parse_arguments()
    binary = common.elastic_run_binary()
    with tempfile.TemporaryDirectory(prefix="elastic-run-soak.") as temporary:
        table = pathlib.Path(temporary) / "table"
        table.touch()
        environment = os.environ | {"ELASTIC_RUN_PEERS": "all", "ELASTIC_RUN_PEERS_TABLE": str(table)}
        environment.pop("PYTHONPATH", None)
        status = subprocess.run([ROOT / "scripts/pytest", ROOT / "tests/peers", *args.pytest], env=environment,
                                check=False).returncode
        lines = [json.loads(line) for line in table.read_text().splitlines()]
    print(f"\n{common.elastic_run_version(binary)}; {', '.join(versions())}; {common.describe(common.machine())}")
    report(lines)
    print(f"\n{NOTES}\nverdict: " + ("all as expected" if status == 0 else "NOT AS EXPECTED"))
    return 0 if status == 0 else 1


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak peers", description=__doc__)
    parser.add_argument("pytest", nargs="*", metavar="PYTEST", help="more for pytest, after --, such as -k deepspeed")
    return parser.parse_args()


def versions():
    done = subprocess.run(["bash", "-euc", f"source {ROOT}/scripts/lib.sh; peers_directory"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise BenchError(done.stderr)
    peers = pathlib.Path(done.stdout.strip())
    places = [str(place) for venv in (peers, pathlib.Path(str(peers).removesuffix("-peers")))
              for place in venv.glob("lib/python*/site-packages")]
    for name in PACKAGES:
        for found in list(importlib.metadata.distributions(name=name, path=places))[:1]:
            yield f"{name} {found.version}"


def report(lines):
    cases = {}
    for line in lines:
        told = f"{line['outcome']} ({line['seconds']:g} s)"
        cases.setdefault(line["case"], {}).setdefault(line["launcher"], []).append(told)
    common.print_table(["<case", *(f"<{name}" for name in LAUNCHERS)],
                       [[case, *("; ".join(found.get(name, ["-"])) for name in LAUNCHERS)] for case, found in cases.items()])
    sys.stdout.flush()


if __name__ == "__main__":
    common.run_main(main)
