"""Many nodes on one machine: from the first process to the last worker, what a node costs, to form again."""

import argparse
import dataclasses
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time

import common
import crowd
from common import BenchError, Goal, Spread, positive, say

NOTES = """\
Formed: from before the first of N elastic-runs is started, by a C program that does nothing else, to the first
line of main of the last worker, a static C program. One worker to a node, all on 127.0.0.1, log directories
as by default. Spawns: to vfork, exec and reap 3 N static programs that do nothing, right before: as many
processes as the N nodes are (outer process, launcher, worker). Both share the machine's cores, which the nodes of
a real job do not.
Again: a node other than the coordinator's is killed, until the last worker of the round without it is in main. With
its guardian alive that begins at once; with both its processes killed the round waits until the node's
lease must be over, which is not counted: it begins when the first survivor's new worker is there.
Bare restart: one static C program that has N workers, of which one dies, signals and reaps all others and starts N
again by vfork, setsid and execve; the median of 3, right before. No other process has to be woken for it, and nothing
is told to anybody.
CPU: by the scheduler's count, of outer process and launcher up to the round; the coordinator's is that of the launcher
which has it, less a plain one's. Bytes and messages: of the agent's connection, both ways, until the round stands;
messages are TCP segments with data; the renewals of each second that it took are among them.
Memory: RSS and PSS with the round standing, in KiB.
Failover: the same jobs with failover=majority and with failover=off, in turns, in pairs. A renewal is that of each lease
once a second: the CPU time of a node's two processes and of the coordinator, by the scheduler's count, in the
seconds of --steady after the round has stood for one, by the renewals in that time."""

PROGRAMS = "noop", "spawn_wait", "respawn", "restart_worker", "crowd", "crowd_worker"
BARE_RESTARTS = 3
LAUNCHER_MB = 500  # what torchrun takes for each node, which is why there are no more of it


@dataclasses.dataclass
class Steady:
    """A job that has formed, and goes on."""

    formed_ms: float
    agent_us: float        # of CPU time, for a renewal
    coordinator_us: float  # for a renewal of one agent


@dataclasses.dataclass
class Run:
    nodes: int
    spawns_ms: float
    bare_restart_ms: float
    formed_ms: float
    started_ms: float          # until the last elastic-run was started
    again_guardian_ms: float   # its launcher killed
    again_killed_ms: float     # both, from the first new worker on
    killed_ms: float           # all of it, the lease included
    agent_cpu_ms: float        # outer process and launcher, without the coordinator's part
    coordinator_cpu_ms: float  # for each agent
    bytes_per_agent: float
    messages_per_agent: float
    coordinator_kib: tuple
    agent_kib: tuple
    stolen: float              # of the machine's time by others on its host


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell that runs this in the background has SIGINT ignored, and so would the nodes, which it is to end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    machine = common.machine()
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        binary = common.elastic_run_binary()
        programs = {name: common.compile_c(name, temporary) for name in PROGRAMS}
        runs = {nodes: [measure(binary, programs, nodes, temporary) for _ in range(args.runs)] for nodes in args.nodes}
        pairs = {nodes: [failover_pair(binary, programs, nodes, temporary, number, args.steady)
                         for number in range(args.failover_pairs)]
                 for nodes in args.nodes} if args.failover_pairs else {}
        torchrun = torchrun_rounds(programs, args.torchrun_nodes, temporary) if args.torchrun_nodes else {}
        version = common.elastic_run_version(binary)
    say("")
    goals = judge(runs) + judge_failover(pairs)
    report(machine, version, runs, pairs, torchrun, goals)
    if args.json:
        common.write_json(args.json, {
            "benchmark": "rendezvous", "machine": machine, "version": version,
            "runs": {nodes: [dataclasses.asdict(run) for run in of_nodes] for nodes, of_nodes in runs.items()},
            "failover": {nodes: [{name: dataclasses.asdict(one) for name, one in pair.items()} for pair in of_nodes]
                         for nodes, of_nodes in pairs.items()},
            "torchrun_formed_ms": torchrun, "goals": [goal.as_json() for goal in goals]})


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench rendezvous", description=__doc__)
    parser.add_argument("--nodes", type=common.counts, default=[64, 256, 1024], metavar="N,...", help="3 at least")
    parser.add_argument("--runs", type=positive, default=3, metavar="N", help="at each number of nodes (%(default)s)")
    parser.add_argument("--failover-pairs", type=lambda text: 0 if text == "0" else positive(text), default=3, metavar="N",
                        help="at each number of nodes; 0: none (%(default)s)")
    parser.add_argument("--steady", type=positive, default=10, metavar="SECONDS", help="of each of them (%(default)s)")
    parser.add_argument("--torchrun-nodes", type=common.counts, default=[2, 4], metavar="N,...",
                        help="its launcher takes %s MB each; 0: none (2,4)" % LAUNCHER_MB)
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    args = parser.parse_args()
    if min(args.nodes) < 3:
        parser.error("--nodes: one is killed, and two at least go on")
    return args


# --- One job -------------------------------------------------------------------------------------


def measure(binary, programs, nodes, temporary):
    say(f"{nodes} nodes")
    before = processor_times()
    spawns_ms = common.timed([programs["spawn_wait"], str(3 * nodes), programs["noop"]], temporary)
    bare_restart_ms = bare_restart(programs, nodes, temporary)
    first = job(binary, programs, nodes, temporary, guardian_too=False)
    second = job(binary, programs, nodes, temporary, guardian_too=True)
    after = processor_times()
    stolen = (after[7] - before[7]) / max(1, sum(after[:8]) - sum(before[:8]))
    return Run(nodes=nodes, spawns_ms=spawns_ms, bare_restart_ms=bare_restart_ms, formed_ms=(first["formed_ms"] + second["formed_ms"]) / 2,
               started_ms=(first["started_ms"] + second["started_ms"]) / 2, again_guardian_ms=first["again_ms"],
               again_killed_ms=second["spread_ms"], killed_ms=second["again_ms"], stolen=stolen,
               **{name: first[name] for name in ("agent_cpu_ms", "coordinator_cpu_ms", "bytes_per_agent",
                                                 "messages_per_agent", "coordinator_kib", "agent_kib")})


def bare_restart(programs, workers, temporary):
    marks = common.Marks(pathlib.Path(temporary) / "bare", workers, BARE_RESTARTS)
    common.timed([programs["respawn"], str(workers), programs["restart_worker"], marks.path], temporary)
    return statistics.median(marks.gaps_ms())


def processor_times():
    return [int(one) for one in pathlib.Path("/proc/stat").read_text().partition("\n")[0].split()[1:]]


def job(binary, programs, nodes, temporary, guardian_too):
    marks = crowd.Marks(f"{temporary}/marks", nodes, 4 * nodes + 64)
    port = crowd.free_port()
    program = crowd.command(binary, f"1:{nodes}", port, [programs["crowd_worker"], marks.path], conf="join_timeout=60")
    launch = common.Launch([programs["crowd"], marks.path, str(nodes), *program], temporary)
    launchers = {}
    try:
        limit_s = 30 + nodes / 10
        workers = marks.wait_for_round(nodes, timeout_s=limit_s, still=lambda: running(launch.pid))
        if len(marks.rounds()) > 1:
            raise BenchError(f"{len(marks.rounds())} rounds were needed for {nodes} nodes")
        _, began_ns, started_ns, _ = marks.head()
        found = {"formed_ms": (workers_came(workers) - began_ns) / 1e6, "started_ms": (started_ns - began_ns) / 1e6}
        host = crowd.listener_of(port)
        outers = marks.launchers()
        launchers = {outer: crowd.launcher_of(outer) for outer in outers}
        found |= costs(launchers, host, port, nodes)
        victim = [outer for outer, launcher in launchers.items() if launcher != host][nodes // 2]
        killed_ns = time.monotonic_ns()
        if guardian_too:
            os.kill(victim, signal.SIGKILL)
        crowd.kill(launchers[victim], signal.SIGKILL)
        workers = marks.wait_for_round(nodes - 1, killed_ns, limit_s, still=lambda: running(launch.pid))
        found["again_ms"] = (workers_came(workers) - killed_ns) / 1e6
        found["spread_ms"] = (workers_came(workers) - min(one.came_ns for one in workers)) / 1e6
        return found
    finally:
        end(marks, launchers, crowd.listener_of(port), launch)
        marks.close()


def running(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def workers_came(workers):
    return max(one.came_ns for one in workers)


def costs(launchers, host, port, nodes):
    """What it has taken until now."""
    cpu = {outer: (crowd.cpu_ms(outer), crowd.cpu_ms(launcher)) for outer, launcher in launchers.items()}
    plain = statistics.median(own for outer, (_, own) in cpu.items() if launchers[outer] != host)
    hosts_own = next(own for outer, (_, own) in cpu.items() if launchers[outer] == host)
    lines = crowd.sockets(f"state established sport = :{port}")
    counted = ["bytes_acked", "bytes_received"], ["data_segs_out", "data_segs_in"]
    count, messages = (sum(crowd.counter(line, name) for line in lines for name in names) for names in counted)
    some = next(launcher for launcher in launchers.values() if launcher != host)
    return {"agent_cpu_ms": plain + statistics.median(outer for outer, _ in cpu.values()),
            "coordinator_cpu_ms": max(0, hosts_own - plain) / nodes,
            "bytes_per_agent": count / max(1, len(lines)), "messages_per_agent": messages / max(1, len(lines)),
            "coordinator_kib": crowd.memory_kib(host)[:2], "agent_kib": crowd.memory_kib(some)[:2]}


def end(marks, launchers, host, launch):
    """The node with the coordinator ends the job, which it does on SIGINT in any case; what does not end is killed."""
    outer = next((outer for outer, launcher in launchers.items() if launcher == host), None)
    if outer is not None:
        crowd.kill(outer, signal.SIGINT)
    deadline = time.monotonic() + (60 if outer is not None else 0)
    while running(launch.pid):
        if time.monotonic() > deadline:
            for left in marks.launchers():
                for pid in filter(None, (crowd.launcher_of(left), left)):
                    crowd.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    launch.stop()


# --- failover ------------------------------------------------------------------------------------


def failover_pair(binary, programs, nodes, temporary, number, steady_s):
    """{"off": Steady, "majority": Steady}; each of them is the first of every other pair."""
    order = ["off", "majority"] if number % 2 == 0 else ["majority", "off"]
    return {failover: steady(binary, programs, nodes, temporary, failover, steady_s) for failover in order}


def steady(binary, programs, nodes, temporary, failover, steady_s):
    say(f"{nodes} nodes, failover={failover}")
    marks = crowd.Marks(f"{temporary}/marks", nodes, 4 * nodes + 64)
    port = crowd.free_port()
    program = crowd.command(binary, f"1:{nodes}", port, [programs["crowd_worker"], marks.path],
                            conf=f"join_timeout=60,failover={failover}")
    launch = common.Launch([programs["crowd"], marks.path, str(nodes), *program], temporary)
    launchers = {}
    try:
        workers = marks.wait_for_round(nodes, timeout_s=30 + nodes / 10, still=lambda: running(launch.pid))
        formed_ms = (workers_came(workers) - marks.head()[1]) / 1e6
        launchers = {outer: crowd.launcher_of(outer) for outer in marks.launchers()}
        host = crowd.listener_of(port)
        time.sleep(1)
        before = {outer: (crowd.cpu_ms(outer), crowd.cpu_ms(launcher)) for outer, launcher in launchers.items()}
        time.sleep(steady_s)
        # One renewal a second: a fifth of the loss timeout.
        took_us = {outer: tuple(1000 * (crowd.cpu_ms(pid) - was) / steady_s
                                for pid, was in zip((outer, launchers[outer]), before[outer])) for outer in launchers}
        if len(marks.rounds()) > 1:
            raise BenchError(f"failover={failover}: the round of {nodes} nodes did not go on")
        plain_us = statistics.median(own for outer, (_, own) in took_us.items() if launchers[outer] != host)
        hosts_us = next(own for outer, (_, own) in took_us.items() if launchers[outer] == host)
        return Steady(formed_ms, plain_us + statistics.median(outer for outer, _ in took_us.values()),
                      max(0, hosts_us - plain_us) / nodes)
    finally:
        end(marks, launchers, crowd.listener_of(port), launch)
        marks.close()


def ratios_of(pairs, name):
    return [getattr(pair["majority"], name) / max(getattr(pair["off"], name), 1e-9) for pair in pairs]


def judge_failover(pairs):
    if not pairs:
        return []
    most = max(pairs)
    return [Goal(f"formed, {most} nodes: failover=majority, times off", 1.25, False,
                 Spread.of(ratios_of(pairs[most], "formed_ms")))]


def report_failover(pairs):
    print("\nFAILOVER: off / majority, medians, and the median of the pairs' ratios")
    rows = []
    for nodes, of_nodes in pairs.items():
        cells = [f"{nodes}"]
        for name, digits in (("formed_ms", 0), ("agent_us", 1), ("coordinator_us", 2)):
            off, majority = (statistics.median(getattr(pair[which], name) for pair in of_nodes)
                             for which in ("off", "majority"))
            cells += [f"{off:.{digits}f} / {majority:.{digits}f}", f"{statistics.median(ratios_of(of_nodes, name)):.2f}"]
        rows.append(cells)
    common.print_table(["nodes", "formed, ms", "ratio", "a renewal: agent, us of CPU", "ratio",
                        "coordinator, us for an agent", "ratio"], rows)


# --- torchrun ------------------------------------------------------------------------------------


def torchrun_rounds(programs, counts_of_nodes, temporary):
    """{nodes: ms}"""
    torchrun = common.torchrun()
    found = {}
    for nodes in counts_of_nodes:
        say(f"torchrun, {nodes} nodes")
        marks = crowd.Marks(f"{temporary}/marks", 0, 4 * nodes)
        program = crowd.command(torchrun, str(nodes), crowd.free_port(), [programs["crowd_worker"], marks.path])
        started = []
        try:
            began_ns = time.monotonic_ns()
            for _ in range(nodes):
                started.append(crowd.Node(program, temporary))
            found[nodes] = (workers_came(marks.wait_for_round(nodes, timeout_s=100)) - began_ns) / 1e6
        finally:
            crowd.stop_all(started)
            marks.close()
    return found


# --- What it comes to ----------------------------------------------------------------------------


def judge(runs):
    most = max(runs)
    ratios = [run.formed_ms / run.spawns_ms for run in runs[most]]
    again = [run.again_guardian_ms / 1000 for run in runs[most]] + [run.again_killed_ms / 1000 for run in runs[most]]
    goals = [Goal(f"formed, {most} nodes: times the spawns of 3 N no-ops", 3, False, Spread.of(ratios)),
             Goal(f"again, {most} nodes: s", 1, False, Spread.of(again))]
    least = min(runs)
    if least != most:
        for what, name in (("CPU of an agent", "agent_cpu_ms"),
                           ("coordinator's CPU for an agent", "coordinator_cpu_ms"),
                           ("bytes of an agent", "bytes_per_agent")):
            few = statistics.median(getattr(run, name) for run in runs[least])
            goals.append(Goal(f"{what}: {most} nodes, times that of {least}", 1.25, False,
                              Spread.of([getattr(run, name) / max(few, 1e-9) for run in runs[most]])))
    return goals


def report(machine, version, runs, pairs, torchrun, goals):
    print(f"{version}; {common.describe(machine)}")
    print("\nMANY NODES ON ONE MACHINE, medians; times in ms")
    rows = []
    for nodes, of_nodes in runs.items():
        middle = lambda name, these=of_nodes: statistics.median(getattr(run, name) for run in these)  # noqa: E731
        rows.append([f"{nodes}", f"{middle('spawns_ms'):.0f}", f"{middle('started_ms'):.0f}",
                     f"{middle('formed_ms'):.0f}",
                     f"{statistics.median(run.formed_ms / run.spawns_ms for run in of_nodes):.2f}",
                     f"{middle('bare_restart_ms'):.0f}", f"{middle('again_guardian_ms'):.0f}", f"{middle('again_killed_ms'):.0f}",
                     f"{middle('killed_ms'):.0f}", f"{100 * max(run.stolen for run in of_nodes):.0f}"])
    common.print_table(["nodes", "spawns", "all started", "formed", "ratio", "bare restart", "again, launcher killed",
                        "again, both killed", "with the lease", "% stolen"], rows)
    print("\nWHAT A NODE COSTS")
    rows = []
    for nodes, of_nodes in runs.items():
        run = of_nodes[-1]
        rows.append([f"{nodes}", f"{run.agent_cpu_ms:.2f}", f"{run.coordinator_cpu_ms:.3f}",
                     f"{run.bytes_per_agent:.0f}", f"{run.messages_per_agent:.1f}",
                     "{} / {}".format(*run.coordinator_kib), "{} / {}".format(*run.agent_kib)])
    common.print_table(["nodes", "agent: CPU ms", "coordinator: CPU ms", "bytes", "messages", "coordinator RSS / PSS",
                        "agent RSS / PSS"], rows)
    if pairs:
        report_failover(pairs)
    if torchrun:
        print(f"\ntorchrun ({LAUNCHER_MB} MB for each launcher), formed, ms: " +
              ", ".join(f"{nodes} nodes {took:.0f}" for nodes, took in torchrun.items()))
    print("\nGOALS")
    common.print_goals(goals)
    if any(run.stolen > 0.05 for of_nodes in runs.values() for run in of_nodes):
        print("\nTHE MACHINE'S HOST GAVE ITS TIME TO OTHERS (% stolen): the times say little")
    print(f"\n{NOTES}")


if __name__ == "__main__":
    common.run_main(main)
