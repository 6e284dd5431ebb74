"""A worker, a launcher, a node, a cable fails, a node comes late: how long until the others know and go on."""

import argparse
import dataclasses
import os
import pathlib
import signal
import sys
import tempfile
import time

import common
import crowd
from common import BenchError, Spread, positive, say

NOTES = """\
All nodes are on this machine, with one worker each, a static C program that ends as soon as it gets SIGTERM: the
time that workers take to stop is not in these times.
Worker fails: from the SIGKILL of a worker on one node to SIGTERM in the worker of another. Round: from the first
SIGTERM of the old workers to the first line of main of the last new one, where a node has joined (scale_up=now).
Launcher dies: SIGKILL to it; its guardian lives. Node dies: SIGKILL to all its processes in one call, by their cgroup
(without one, one after the other). Both until the last survivor's worker of the next round is in main; of the
second, what was left of the node's lease (3130 ms after it last sent something, by ss) is taken off. Node falls
silent: the port of its host's cable goes down, in network namespaces; less the loss timeout of 5 s after it last sent
something. The coordinator's: that of four nodes with failover=majority, in network namespaces, as soon as they run. Alone: SIGKILL
to a coordinator that runs on a host of its own and is not started again, until one of the four nodes acts as the
coordinator; training is untouched if that is before the leases are over, in 3 s, and this is checked.
Late: from the start of an elastic-run to the last worker of the round with it, less the second of scale_up=after=1.
Goals are for the median. torchrun stands beside the first, once; the others are not measured with it."""

LOSS_MS = 5000


@dataclasses.dataclass
class Figure:
    what: str
    goal_ms: float | None
    ours_ms: list
    torchrun: str = ""  # or why there is none

    @property
    def reached(self):
        return self.goal_ms is None or Spread.of(self.ours_ms).median <= self.goal_ms


class Setting:
    """What every measurement needs, and what it leaves to be ended."""

    def __init__(self, binary, worker, temporary):
        self.binary, self.worker, self.temporary = binary, worker, temporary
        self.nodes, self.marks = [], None

    def begin(self):
        self.marks = crowd.Marks(f"{self.temporary}/marks")
        self.port = crowd.free_port()

    def node(self, nodes, *arguments, conf="", binary=None, **options):
        program = crowd.command(binary or self.binary, nodes, self.port, [self.worker, self.marks.path], *arguments,
                                conf=conf, host=options.pop("host", "127.0.0.1"))
        self.nodes.append(crowd.Node(program, self.temporary, **options))
        return self.nodes[-1]

    def first_nodes(self, count, nodes, *arguments, conf="last_call_timeout=1", **options):
        """The first of them has the coordinator."""
        first = self.node(nodes, *arguments, conf=conf, **options)
        crowd.wait_for_listener(first, self.port)
        return [first, *(self.node(nodes, *arguments, conf=conf, **options) for _ in range(count - 1))]

    def end(self):
        crowd.stop_all(reversed(self.nodes))
        self.nodes.clear()
        if self.marks:
            self.marks.close()
            self.marks = None


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine = common.machine()
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        setting = Setting(common.elastic_run_binary(), common.compile_c("crowd_worker", temporary), temporary)
        figures = []
        for name, measure in MEASURES.items():
            if args.only and name not in args.only:
                continue
            say(name)
            found = repeated(setting, measure, args)
            if found:
                figures.append(found)
        if args.torchrun and not args.only:
            say("torchrun")
            beside_torchrun(setting, figures)
        version = common.elastic_run_version(setting.binary)
    say("")
    report(machine, version, figures)
    if args.json:
        common.write_json(args.json, {"benchmark": "failures", "machine": machine, "version": version,
                                      "figures": [dataclasses.asdict(one) | {"reached": one.reached}
                                                  for one in figures]})


def repeated(setting, measure, args):
    figure = None
    for _ in range(args.runs):
        setting.begin()
        try:
            one = measure(setting)
        finally:
            setting.end()
        if one is None:
            return None
        if figure is None:
            figure = one
        else:
            figure.ours_ms += one.ours_ms
    return figure


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench failures", description=__doc__)
    parser.add_argument("--runs", type=positive, default=5, metavar="N", help="of each measurement (%(default)s)")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar=",".join(MEASURES))
    parser.add_argument("--torchrun", type=int, choices=[0, 1], default=1, help="1: one pair beside it (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    args = parser.parse_args()
    if args.only and not set(args.only) <= set(MEASURES):
        parser.error(f"--only: not all of {', '.join(args.only)} are known")
    return args


# --- The measurements ------------------------------------------------------------------------------


def last_came(workers):
    return max(one.came_ns for one in workers)


def until_round(setting, world, since_ns):
    return (last_came(setting.marks.wait_for_round(world, since_ns)) - since_ns) / 1e6


def stopped_ns(setting, pid, timeout_s=60):
    """When this worker got SIGTERM; waits for it."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for one in setting.marks.entries():
            if one.pid == pid and one.stopped_ns:
                return one.stopped_ns
        time.sleep(0.005)
    raise BenchError(f"a worker was not signalled within {timeout_s} s")


def worker_fails(setting, program=None, restarts=5):
    nodes = (setting.first_nodes(2, "2", f"--max-restarts={restarts}") if program is None else
             [setting.node("2", f"--max-restarts={restarts}", binary=program) for _ in range(2)])
    took = []
    since_ns = 0
    for _ in range(restarts):
        workers = setting.marks.wait_for_round(2, since_ns, still=lambda: all(node.runs() for node in nodes))
        victim = next(one for one in workers if one.rank == 1)
        since_ns = time.monotonic_ns()
        os.kill(victim.pid, signal.SIGKILL)
        other = next(one for one in workers if one.rank == 0)
        took.append((stopped_ns(setting, other.pid) - since_ns) / 1e6)
    return Figure("a worker fails: until another node's is signalled", 20, took)


def launcher_dies(setting):
    nodes = setting.first_nodes(3, "2:3")
    setting.marks.wait_for_round(3)
    since_ns = time.monotonic_ns()
    os.kill(nodes[2].launcher(), signal.SIGKILL)
    return Figure("a launcher dies, its guardian lives: until the others' new ranks run", 500,
                  [until_round(setting, 2, since_ns)])


class OwnCgroup:
    """Kills all that is in it by one call; None of it where there is no cgroup of version 2 for us."""

    def __init__(self):
        self.path = None
        for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
            if " - cgroup2 " in line and os.access(line.split()[4], os.W_OK):
                path = pathlib.Path(line.split()[4]) / f"bench-{os.getpid()}"
                try:
                    path.mkdir()
                except OSError:
                    return
                self.path = path
                if not (path / "cgroup.kill").exists():
                    self.remove()
                return

    def enter(self):
        if self.path:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def kill(self, node):
        if self.path:
            (self.path / "cgroup.kill").write_text("1")
        node.kill()

    def remove(self):
        if self.path is None:
            return
        for _ in range(200):
            try:
                for inner in sorted(self.path.glob("**/"), reverse=True):
                    inner.rmdir()
                break
            except OSError:
                time.sleep(0.01)
        self.path = None


def node_dies(setting):
    group = OwnCgroup()
    try:
        setting.first_nodes(2, "2:3")
        victim = setting.node("2:3", conf="last_call_timeout=1", enter=group.enter)
        setting.marks.wait_for_round(3)
        time.sleep(0.3)  # some of its lease is to be left
        age_ms = crowd.silent_for_ms(victim.launcher(), setting.port)
        since_ns = time.monotonic_ns()
        group.kill(victim)
        return Figure("a node dies with all its processes: beyond the rest of its lease", 500,
                      [until_round(setting, 2, since_ns) - (crowd.lease_over_ms(LOSS_MS) - age_ms)])
    finally:
        group.remove()


def node_is_silent(setting):
    networks = crowd.network_namespaces()
    if networks is None:
        print("falls silent: not measured, network namespaces are for root only", file=sys.stderr)
        return None
    network = networks.Network()
    try:
        hosts = [network.add() for _ in range(3)]
        address = hosts[0].address
        setting.port = 29400
        for host in hosts:
            setting.node("2:3", conf=f"last_call_timeout=1,is_host={int(host is hosts[0])}", host=address,
                         enter=host.enter)
        setting.marks.wait_for_round(3)
        hosts[2].silence()
        since_ns = time.monotonic_ns()
        took_ms = until_round(setting, 2, since_ns)
        # Its last renewal was sent up to a second before: not less than so much is beyond the timeout.
        return Figure("a node falls silent: beyond the loss timeout", 500, [took_ms - LOSS_MS])
    finally:
        setting.end()
        network.remove()


def coordinators_node(setting, what, goal_ms, lose):
    """Four nodes with failover=majority, each on a host of its own: until the other three run again."""
    networks = crowd.network_namespaces()
    if networks is None:
        print("the coordinator's node: not measured, network namespaces are for root only", file=sys.stderr)
        return None
    network = networks.Network()
    try:
        hosts = [network.add() for _ in range(4)]
        setting.port = 29400
        nodes = [setting.node("2:4", conf="last_call_timeout=1,failover=majority", host=hosts[0].address,
                              enter=host.enter) for host in hosts]
        setting.marks.wait_for_round(4)
        since_ns = time.monotonic_ns()
        lose(hosts[0], nodes[0])
        return Figure(f"the coordinator's {what}: until the others' new ranks run", goal_ms,
                      [until_round(setting, 3, since_ns)])
    finally:
        setting.end()
        network.remove()


def coordinators_launcher_dies(setting):
    return coordinators_node(setting, "launcher is killed", 300,
                             lambda host, node: os.kill(node.launcher(), signal.SIGKILL))


def coordinators_guardian_dies(setting):
    return coordinators_node(setting, "guardian is killed", 300, lambda host, node: os.kill(node.pid, signal.SIGKILL))


def coordinators_node_dies(setting):
    return coordinators_node(setting, "launcher and guardian are killed", 3500, lambda host, node: node.kill())


def coordinators_host_is_silent(setting):
    return coordinators_node(setting, "host falls silent", 4500, lambda host, node: host.silence())


def coordinator_is_handed_over(setting):
    return coordinators_node(setting, "node gets SIGTERM, and hands over", 50,
                             lambda host, node: os.kill(node.pid, signal.SIGTERM))


def lone_coordinator_dies(setting):
    networks = crowd.network_namespaces()
    if networks is None:
        print("a coordinator alone: not measured, network namespaces are for root only", file=sys.stderr)
        return None
    network = networks.Network()
    try:
        own, *hosts = [network.add() for _ in range(5)]
        setting.port = 29400
        coordinator = crowd.Node([setting.binary, "--coordinator-only", f"--rdzv-endpoint={own.address}:29400"],
                                 setting.temporary, enter=own.enter)
        setting.nodes.append(coordinator)
        nodes = [setting.node("2:4", "--log-level=info", conf="last_call_timeout=1,failover=majority",
                              host=own.address, enter=host.enter) for host in hosts]
        workers = setting.marks.wait_for_round(4)
        time.sleep(0.3)  # all of them have promised their support
        since_ns = time.monotonic_ns()
        coordinator.process.kill()
        while not any("it acts from now on" in node.output.read_text(errors="replace") for node in nodes):
            if time.monotonic_ns() > since_ns + 30 * 10**9:
                raise BenchError("no node has become the coordinator within 30 s")
            time.sleep(0.002)
        took_ms = (time.monotonic_ns() - since_ns) / 1e6
        leases_over_ms = crowd.lease_over_ms(LOSS_MS)
        time.sleep(max(0, (leases_over_ms - took_ms) / 1000))
        now = setting.marks.entries()
        if took_ms < leases_over_ms and (len(now) > len(workers) or any(one.stopped_ns for one in now)):
            raise BenchError("a worker was stopped, though another coordinator acted before the leases were over")
        return Figure("a coordinator alone is killed: until another one acts, and training is untouched", 3000, [took_ms])
    finally:
        setting.end()
        network.remove()


def node_is_late(setting):
    conf = "last_call_timeout=1,scale_up=after=1"
    setting.first_nodes(2, "2:4", conf=conf)
    setting.marks.wait_for_round(2)
    late = setting.node("2:4", conf=conf)
    return Figure("a late node: beyond the delay of scale_up", 500, [until_round(setting, 3, late.began_ns) - 1000])


def new_round(setting):
    conf = "last_call_timeout=1,scale_up=now"
    setting.first_nodes(2, "2:3", conf=conf)
    setting.marks.wait_for_round(2)
    late = setting.node("2:3", conf=conf)
    workers = setting.marks.wait_for_round(3, late.began_ns)
    first_stop_ns = min(one.stopped_ns for one in setting.marks.entries() if one.stopped_ns and one.world == 2)
    return Figure("a new round without faults: from the first signal to the last new rank", None,
                  [(last_came(workers) - first_stop_ns) / 1e6])


MEASURES = {"worker": worker_fails, "launcher": launcher_dies, "node": node_dies, "silent": node_is_silent,
            "late": node_is_late, "round": new_round, "host_launcher": coordinators_launcher_dies,
            "host_guardian": coordinators_guardian_dies, "host": coordinators_node_dies,
            "host_silent": coordinators_host_is_silent, "handover": coordinator_is_handed_over, "alone": lone_coordinator_dies}


# --- torchrun ------------------------------------------------------------------------------------


def beside_torchrun(setting, figures):
    """What it does of this, once: its launchers take seconds to start."""
    by_what = {figure.what.partition(":")[0]: figure for figure in figures}
    setting.begin()
    try:
        took_ms = worker_fails(setting, common.torchrun(), restarts=1).ours_ms[0]
        by_what["a worker fails"].torchrun = f"{took_ms:.0f}"
    except BenchError as error:
        by_what["a worker fails"].torchrun = f"not in time ({error})"[:60]
    finally:
        setting.end()


# --- What it comes to ----------------------------------------------------------------------------


def report(machine, version, figures):
    print(f"{version}; {common.describe(machine)}\n")
    rows = []
    for one in figures:
        spread = Spread.of(one.ours_ms)
        verdict = "" if one.goal_ms is None else "reached" if one.reached else "MISSED"
        rows.append([verdict, one.what, "" if one.goal_ms is None else f"<= {one.goal_ms:g}", f"{spread.median:.1f}",
                     f"{spread.min:.1f} to {spread.max:.1f}", f"{spread.count}", one.torchrun])
    common.print_table(["goal", "<what", "ms", "median", "min to max", "runs", "<torchrun, ms"], rows)
    print(f"\n{NOTES}")


if __name__ == "__main__":
    common.run_main(main)
