"""10 to 10,000 nodes form a round in one process, and again after one dies: messages and bytes of each, network hops."""

import argparse
import json
import subprocess
import sys

import common
from common import BenchError, positive

# The share of each node among the most and among the fewest.
FLAT = 1.10
NODES = (10, 100, 1000, 10_000)

NOTES = """\
The real coordinator, sessions and agents of tests/simulation on a virtual clock, where each way takes 100 ms
and nothing else counts. form: from the start of all nodes at once until the last worker has started. again: from
the death of one agent, whose guardian says that its workers are gone. Messages and bytes are what goes over the
network in both directions, by the number of nodes; a hop is one way. CPU and memory are this process's: the
coordinator, all nodes, and the invariants that watch them."""


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench simulation", description=__doc__, epilog=NOTES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=positive, nargs="+", default=list(NODES), metavar="N")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, too")
    args = parser.parse_args()
    program = common.built_program(common.elastic_run_binary(), "simulation_scale")
    results = [measure(program, nodes) for nodes in args.nodes]
    rows = []
    for result in results:
        form, again = result["form"], result["again"]
        rows.append([f"{result['nodes']:,}", f"{form['messages']:.1f}", f"{form['bytes']:,}", f"{form['hops']:.1f}",
                     f"{again['messages']:.1f}", f"{again['bytes']:,}", f"{again['hops']:.1f}",
                     f"{(form['cpu_ms'] + again['cpu_ms']) / 1000:.2f}",
                     f"{result['memory_kib'] / result['nodes']:.0f}"])
    common.print_table(["nodes", "form: messages", "bytes", "hops", "again: messages", "bytes", "hops",
                        "CPU s", "KiB/node"], rows)
    if args.json:
        print(json.dumps(results, indent=1))
    return 0 if is_flat(results) else 1


def measure(program, nodes):
    done = subprocess.run([program, str(nodes)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(done.stderr.strip() or f"{program} {nodes} ended with {done.returncode}")
    return json.loads(done.stdout)


def is_flat(results):
    """Says which share of a node grows with their number."""
    first, last = results[0], results[-1]
    flat = True
    for part in ("form", "again"):
        for what in ("messages", "bytes", "hops"):
            ratio = last[part][what] / first[part][what]
            if ratio > FLAT:
                print(f"NOT FLAT: {what} to {part} are {ratio:.2f} times as many with {last['nodes']:,} nodes as with "
                      f"{first['nodes']:,}", file=sys.stderr)
                flat = False
    return flat


common.run_main(main)
