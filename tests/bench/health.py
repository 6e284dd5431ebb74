"""The node check: what --network-check costs, phase by phase, and what it adds to a launch."""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

import common
import crowd
from common import BenchError, Spread, positive, say

NOTES = """\
All N elastic-runs are on this machine, started by a C program that does nothing else, with one worker each, a static
C program that ends at once; all on 127.0.0.1, log directories in a directory that is named. All share the machine's
cores, which the nodes of a real job do not.
Phases: phase_ms of health.json, by the coordinator's clock; all phases is their sum. Start to the end of the check:
from before the first elastic-run is started to wall_ms of health.json, so with all nodes that have to meet before.
Launch: from before the first start to the end of the last elastic-run. Those with and those without the check take
turns; ratio and what is added are taken between the two of a turn. Told slow: nodes that are not, on one machine.
dlrover-run: two agents on this machine, without GPU, each with directories of its own in place of /tmp/dlrover; its
job master is started before and not counted. All phases: from the first agent's "starting node-check workers" to the
last one's "Network check result is True", in their logs, so the meeting for it is within. One Python worker that does
nothing; it has no --no-python, with which the check would run the worker's program instead of the test."""

PHASES = ["phase 0, each by itself", "stage 1 of pairs", "stage 2 of pairs", "stage 3 of pairs"]
GOALS_MS = {2: 500, 64: 10_000}  # start to the end of the check
PEER_NODES = 2
NOT_INSTALLED = "not installed: docs/health.md has the recipe; --dlrover-run names it"


@dataclasses.dataclass
class Run:
    """One launch with the check and one without, in ms."""

    phase_ms: list
    over_ms: float     # from the first start to the end of the check
    checked_ms: float  # the whole launch
    plain_ms: float    # that without the check
    slow: int          # nodes that are told to be slow

    @property
    def phases_ms(self):
        return sum(self.phase_ms)


@dataclasses.dataclass
class PeerRun:
    phases_ms: float
    over_ms: float
    checked_ms: float
    plain_ms: float


@dataclasses.dataclass
class Figure:
    nodes: int
    what: str
    values: list
    goal: float | None = None  # at most
    peer: list = dataclasses.field(default_factory=list)

    @property
    def reached(self):
        return self.goal is None or Spread.of(self.values).median <= self.goal


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine = common.machine()
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        binary = common.elastic_run_binary()
        programs = {name: common.compile_c(name, temporary) for name in ("noop", "crowd")}
        runs = {nodes: [measure(binary, programs, nodes, temporary, turn) for turn in range(args.runs)]
                for nodes in args.nodes}
        peer = beside_dlrover(args, temporary) if PEER_NODES in args.nodes else {"runs": [], "missing": "", "version": ""}
        version = common.elastic_run_version(binary)
    say("")
    figures = [one for nodes, of_nodes in runs.items()
               for one in figures_of(nodes, of_nodes, peer["runs"] if nodes == PEER_NODES else [])]
    report(machine, version, figures, peer)
    if args.json:
        common.write_json(args.json, {
            "benchmark": "health", "machine": machine, "version": version,
            "runs": {nodes: [dataclasses.asdict(run) for run in of_nodes] for nodes, of_nodes in runs.items()},
            "dlrover-run": peer | {"runs": [dataclasses.asdict(run) for run in peer["runs"]]},
            "figures": [dataclasses.asdict(one) | {"reached": one.reached} for one in figures]})


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench health", description=__doc__)
    parser.add_argument("--nodes", type=common.counts, default=[2, 8, 64], metavar="N,...", help="2,8,64")
    parser.add_argument("--runs", type=positive, default=5, metavar="N", help="at each number of nodes (%(default)s)")
    parser.add_argument("--dlrover-run", metavar="PATH", help="the one to stand beside it, of 2 nodes; else that on PATH")
    parser.add_argument("--peer-runs", type=positive, default=1, metavar="N", help="of dlrover-run (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    args = parser.parse_args()
    if not args.nodes:
        parser.error("--nodes: 1 at least")
    if args.dlrover_run and not os.access(args.dlrover_run, os.X_OK):
        parser.error(f"--dlrover-run={args.dlrover_run}: no program")
    return args


# --- One launch ----------------------------------------------------------------------------------


def measure(binary, programs, nodes, temporary, turn):
    say(f"{nodes} nodes, run {turn + 1}")
    took = {}
    for check in ([], ["--network-check"]) if turn % 2 else (["--network-check"], []):
        with tempfile.TemporaryDirectory(dir=temporary, prefix="logs.") as logs:
            total_ms, began_unix_ms = launch(binary, programs, nodes, temporary, f"--log-dir={logs}", *check)
            reports = list(pathlib.Path(logs).glob("*/health.json"))
            if len(reports) != len(check):
                raise BenchError(f"{len(reports)} files health.json of a launch with {check}")
            if check:
                told = json.loads(reports[0].read_text())
                took |= {"checked_ms": total_ms, "phase_ms": told["phase_ms"], "slow": len(told["slow"]),
                         "over_ms": told["wall_ms"] - began_unix_ms}
            else:
                took["plain_ms"] = total_ms
    return Run(**took)


def launch(binary, programs, nodes, temporary, *arguments):
    """(ms from the first start to the last end, Unix time of the first start in ms)"""
    marks = crowd.Marks(f"{temporary}/marks", nodes, 1)
    program = crowd.command(binary, f"{nodes}", crowd.free_port(), [programs["noop"]], *arguments)
    started = common.Launch([programs["crowd"], marks.path, str(nodes), *program], temporary, 60 + nodes)
    try:
        started.wait()
        _, began_ns, _, ended_ns = marks.head()
        return (ended_ns - began_ns) / 1e6, (began_ns + time.time_ns() - time.monotonic_ns()) / 1e6
    finally:
        started.stop()
        marks.close()


# --- dlrover-run ---------------------------------------------------------------------------------

PLACES = "/tmp/dlrover", "/tmp/ckpt_sock"  # of every agent on a host, by fixed names
OWN_PLACES = 'for place in %s; do mount -t tmpfs dlrover "$place" || exit; done; exec "$@"' % " ".join(PLACES)
STEPS = re.compile(r"^\[([-\d]+ [:\d]+,\d+)\] .*(starting node-check workers|Network check result is True)", re.MULTILINE)


def beside_dlrover(args, temporary):
    """The runs, or why there is none."""
    program = args.dlrover_run or shutil.which("dlrover-run")
    if program is None:
        return {"runs": [], "missing": NOT_INSTALLED, "version": ""}
    program = os.path.abspath(program)
    worker = pathlib.Path(temporary) / "worker.py"
    worker.write_text("")
    found = {"runs": [], "missing": "", "version": common.package_version(program, "dlrover")}
    try:
        for number in range(args.peer_runs):
            say(f"dlrover-run, run {number + 1}")
            with places():
                checked = peer_launch(program, temporary, worker, "--network-check")
                plain = peer_launch(program, temporary, worker)
            found["runs"].append(PeerRun(**checked, plain_ms=plain["checked_ms"]))
    except (BenchError, OSError) as error:
        found["missing"] = f"not measured: {error}"
    return found


@contextlib.contextmanager
def places():
    """What agents mount their own directories on."""
    made = []
    for place in PLACES:
        with contextlib.suppress(FileExistsError):
            os.mkdir(place)
            made.append(place)
    try:
        yield
    finally:
        for place in made:
            with contextlib.suppress(OSError):
                os.rmdir(place)


def apart(*command):
    """With files of its own in the places that the agents of one host would share."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--mount", *user, "sh", "-c", OWN_PLACES, "sh", *map(str, command)]


def peer_launch(program, temporary, worker, *arguments):
    port = crowd.free_port()
    variables = {"DLROVER_MASTER_ADDR": f"127.0.0.1:{port}", "POD_IP": "127.0.0.1", "ELASTIC_JOB_NAME": "bench",
                 "CUDA_VISIBLE_DEVICES": "", "TZ": "UTC"}
    master = crowd.Node(apart(pathlib.Path(program).parent / "python3", "-m", "dlrover.python.master.main",
                              "--platform=local", f"--port={port}", f"--node_num={PEER_NODES}", "--job_name=bench"),
                        temporary, variables)
    agents = []
    try:
        crowd.wait_for_listener(master, port)
        began_unix_ms = time.time_ns() / 1e6
        for rank in range(PEER_NODES):
            agents.append(crowd.Node(apart(program, f"--nnodes={PEER_NODES}", "--nproc-per-node=1", *arguments, worker),
                                     temporary, variables | {"NODE_RANK": f"{rank}", "NODE_ID": f"{rank}"}))
        wait_for(agents, master)
        took = {"checked_ms": time.time_ns() / 1e6 - began_unix_ms}
        if arguments:
            steps = [steps_of(agent.output.read_text(errors="replace")) for agent in agents]
            over_unix_ms = max(end for _, end in steps)
            took |= {"phases_ms": over_unix_ms - min(begin for begin, _ in steps),
                     "over_ms": over_unix_ms - began_unix_ms}
        return took
    finally:
        crowd.stop_all([*agents, master])


def wait_for(agents, master, timeout_s=300):
    """Until all have ended, and well: one that fails leaves the other waiting for minutes."""
    deadline = time.monotonic() + timeout_s
    while True:
        running = [agent for agent in agents if agent.runs()]
        for agent in agents:
            if agent not in running and agent.process.returncode != 0:
                raise BenchError(f"an agent has failed: {agent.told()}")
        if not running:
            return
        if not master.runs():
            raise BenchError(f"the job master has ended: {master.told()}")
        if time.monotonic() > deadline:
            raise BenchError(f"an agent still runs after {timeout_s} s: {running[0].told()}")
        time.sleep(0.01)


def steps_of(log):
    """Unix times in ms: when the agent began its check, and when it had the result."""
    found = [datetime.datetime.strptime(f"{when} +0000", "%Y-%m-%d %H:%M:%S,%f %z").timestamp() * 1000
             for when, _ in STEPS.findall(log)]
    if len(found) != 2:
        raise BenchError(f"an agent's log does not tell begin and end of one check: {log[-2000:]}")
    return found


# --- What it comes to ----------------------------------------------------------------------------


def figures_of(nodes, runs, peers):
    def figure(what, value, peer=None, goal=None):
        return Figure(nodes, what, [value(run) for run in runs], goal, [peer(run) for run in peers] if peer else [])

    yield from (Figure(nodes, f"{name}, ms", values) for number, name in enumerate(PHASES)
                if (values := [run.phase_ms[number] for run in runs if number < len(run.phase_ms)]))
    for what, name, goal in (("all phases, ms", "phases_ms", None),
                             ("start to the end of the check, ms", "over_ms", GOALS_MS.get(nodes)),
                             ("launch with --network-check, ms", "checked_ms", None),
                             ("launch without it, ms", "plain_ms", None)):
        yield figure(what, lambda run, name=name: getattr(run, name), lambda run, name=name: getattr(run, name), goal)
    yield figure("added to the launch, ms", added_ms, added_ms)
    yield figure("launch: times that without it", ratio, ratio)
    yield figure("told slow, nodes", lambda run: run.slow)


def added_ms(run):
    return run.checked_ms - run.plain_ms


def ratio(run):
    return run.checked_ms / run.plain_ms


def report(machine, version, figures, peer):
    print("; ".join(filter(None, [version, peer["version"], common.describe(machine)])) + "\n")
    rows = []
    for one in figures:
        spread = Spread.of(one.values)
        verdict = "" if one.goal is None else "reached" if one.reached else "MISSED"
        rows.append([verdict, f"{one.nodes}", one.what, "" if one.goal is None else f"<= {one.goal:g}",
                     shown(spread.median), f"{shown(spread.min)} to {shown(spread.max)}", f"{spread.count}",
                     shown(Spread.of(one.peer).median) if one.peer else ""])
    common.print_table(["goal", "nodes", "<the check", "bound", "median", "min to max", "runs", "dlrover-run"], rows)
    if peer["runs"] or peer["missing"]:
        print(f"\ndlrover-run: {peer['missing'] or 'medians, runs: %d' % len(peer['runs'])}")
    print(f"\n{NOTES}")


def shown(value):
    return f"{value:.0f}" if value >= 1000 or value == int(value) else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


if __name__ == "__main__":
    common.run_main(main)
