"""Eight nodes while the machine is overloaded: none is judged lost, and no lease runs out."""

import argparse
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import common
import crowd
from common import BenchError, positive, say
from hogs import HOG

NODES = 8
# What a node says of a loss, of its lease, or of a coordinator that it can't hear.
FALSE_ALARM = re.compile(rb"was lost|is lost|the lease|no message from the coordinator|is left behind|does not answer")

NOTES = f"""\
{NODES} nodes with one worker each, and as many processes that do nothing but compute. All nodes must be in one round
from the start to the end, and none may say that it, another or the coordinator is lost or a lease is over."""


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine = common.machine()
    with tempfile.TemporaryDirectory(prefix="elastic-run-soak.") as temporary:
        binary = common.elastic_run_binary()
        worker = common.compile_c("crowd_worker", temporary)
        print(f"{common.elastic_run_version(binary)}; {common.describe(machine)}")
        marks = crowd.Marks(f"{temporary}/marks")
        port = crowd.free_port()
        nodes, hogs, wrong, most = [], [], None, 0.0
        try:
            for _ in range(NODES):
                nodes.append(crowd.Node(crowd.command(binary, str(NODES), port, [worker, marks.path]), temporary))
            marks.wait_for_round(NODES)
            hogs += [subprocess.Popen(["sh", "-c", HOG]) for _ in range(args.hogs)]
            began = time.monotonic()
            while wrong is None and time.monotonic() < began + args.seconds:
                time.sleep(1)
                most = max(most, common.machine()["load"])
                say(f"{time.monotonic() - began:.0f} of {args.seconds} s, load {most:.0f}")
                wrong = false_alarm(nodes, marks)
        except BenchError as error:
            wrong = str(error)
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
            crowd.stop_all(nodes)
            marks.close()
    say("")
    print(f"{args.seconds} s with {args.hogs} processes that compute, load average up to {most:.0f}\n\n{NOTES}")
    print("\nverdict: " + (f"WRONG\n{wrong}" if wrong else "no node judged lost, no lease over"))
    if args.json:
        common.write_json(args.json, {"soak": "load", "machine": machine, "seconds": args.seconds, "hogs": args.hogs,
                                      "load": most, "wrong": wrong})
    return 0 if wrong is None else 1


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak load", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=600, metavar="N")
    parser.add_argument("--hogs", type=positive, default=50, metavar="N", help="processes that compute (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="what was found, as JSON")
    return parser.parse_args()


def false_alarm(nodes, marks):
    for node in nodes:
        if not node.runs():
            return f"a node has ended: {node.told()}"
        if FALSE_ALARM.search(pathlib.Path(node.output).read_bytes()):
            return f"a node says: {node.told()}"
    if len(rounds := marks.rounds()) != 1:
        return f"{len(rounds)} rounds instead of one: {nodes[0].told()}"
    return None


if __name__ == "__main__":
    common.run_main(main)
