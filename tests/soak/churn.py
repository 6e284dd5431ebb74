"""Nodes of one job are killed and started again, one every 2 s: the living go on, no rank is ever there twice."""

import argparse
import dataclasses
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

import common
import crowd
from common import BenchError, Spread, positive, say

NODES, LEAST = 6, 3
LEASE_MS = crowd.lease_over_ms()
QUIET_S = 10        # after every tenth kill: all are back within it
KEEP_OUT_S = 8      # of the second run
HOSTS_AGAIN_MS = 14_000  # of the third run: promises, a candidate that stood in vain, and a lease
KILLS = {"both processes": ("launcher", "outer"), "the launcher": ("launcher",), "the outer process": ("outer",)}

NOTES = f"""\
{NODES} nodes with --nnodes={LEAST}:{NODES}, one worker each, and the coordinator alone. Every 2 s a node is killed,
or one that was is started again; never more than two are down. After every tenth kill all are started, and
nothing is killed for {QUIET_S} s. The living train on: from the last loss until all workers of the next round are in
main, no longer than the lease that the lost node may have ({LEASE_MS:.0f} ms) and --grace. No rank twice: a worker
holds a lock for its round and one for its rank, which the kernel takes from it when it dies, and looks for others'
when it begins. Second run: the default budgets, but keep_out={KEEP_OUT_S}: one node is lost three times, is kept out
while the others train, and let in again. Third run, for as long as the first: each node is on a host of its own, in a
network namespace, and one of them has the coordinator (failover=majority). It is hit as often as any other; a node may
also vanish with its host, of which nobody hears. So many are lost before the next round that more than half of the last one
are left; then all train again within {HOSTS_AGAIN_MS} ms and --grace. A node that is started again knows all hosts."""


class Wrong(Exception):
    """What was promised was not kept."""


@dataclasses.dataclass
class Counted:
    kills: int = 0
    coordinators: int = 0  # of them, nodes that had the coordinator
    starts: int = 0
    quiet: int = 0
    rounds: int = 0
    workers: int = 0
    again_ms: list = dataclasses.field(default_factory=list)
    back_ms: list = dataclasses.field(default_factory=list)
    kept_out_ms: float = 0


class Job:
    kills = list(KILLS)
    again_ms = LEASE_MS
    quiet_s = QUIET_S

    def __init__(self, binary, worker, directory, conf, capacity, grace_ms):
        self.again_ms += grace_ms
        self._binary, self._worker, self._directory, self._conf = binary, worker, directory, conf
        self.coordinator = None
        self.marks = crowd.Marks(f"{directory}/marks", 0, capacity)
        self._locks = f"{directory}/locks"
        pathlib.Path(self._locks).touch()
        self._port = crowd.free_port()
        self.nodes = [None] * NODES
        self.ended = []

    def begin(self):
        self.coordinator = crowd.Node(
            [self._binary, "--coordinator-only", f"--rdzv-endpoint=127.0.0.1:{self._port}"], self._directory)
        for index in range(NODES):
            self.start(index)

    def start(self, index):
        self._start(index, f"--local-addr=127.0.0.{index + 1}")

    def _start(self, index, *arguments, host="127.0.0.1", enter=None):
        program = crowd.command(self._binary, f"{LEAST}:{NODES}", self._port,
                                [self._worker, self.marks.path, self._locks], *arguments, host=host,
                                conf=f"last_call_timeout=2,{self._conf}")
        self.nodes[index] = crowd.Node(program, self._directory, enter=enter)

    def may_kill(self, _killed):
        """So many nodes were killed since the last round was complete: another one may be."""
        return True

    def has_coordinator(self, _index):
        return False

    def living(self):
        return [index for index, node in enumerate(self.nodes) if node is not None]

    def kill(self, index, how):
        node = self.nodes[index]
        if not node.runs():
            raise Wrong(f"node {index} has ended by itself: {node.told()}")
        launcher = crowd.launcher_of(node.pid)
        killed_ns = time.monotonic_ns()
        for which in KILLS[how]:
            pid = launcher if which == "launcher" else node.pid
            if pid is not None:
                crowd.kill(pid, signal.SIGKILL)
        node.process.wait(20)
        self.nodes[index] = None
        self.ended.append(node)
        return killed_ns

    def look(self):
        """Raises if a rank was there twice, or a node has ended by itself."""
        for one in self.marks.entries():
            if one.conflict:
                raise Wrong(f"rank {one.rank} of round {one.round:08x} (process {one.pid}) began while process "
                            f"{one.conflict} of its rank or of another round was there")
        for index in self.living():
            if not self.nodes[index].runs():
                raise Wrong(f"node {index} has ended by itself: {self.nodes[index].told()}")

    def complete(self, since_ns, world=None):
        """The end of the forming of the first complete round that began since then; None if there is none yet."""
        for workers in self.marks.rounds():
            is_it = workers[0].came_ns >= since_ns and len(workers) == workers[0].world
            if is_it and world in (None, workers[0].world):
                return max(one.came_ns for one in workers)
        return None

    def wait(self, since_ns, limit_ms, what, world=None):
        """Milliseconds since then until a round was complete."""
        while True:
            self.look()
            done_ns = self.complete(since_ns, world)
            if done_ns is not None and done_ns <= since_ns + limit_ms * 1e6:
                return (done_ns - since_ns) / 1e6
            if time.monotonic_ns() > since_ns + (limit_ms + 200) * 1e6:
                late = "" if done_ns is None else f", but after {(done_ns - since_ns) / 1e6:.0f}"
                rounds = [(workers[0].world, len(workers)) for workers in self.marks.rounds()][-4:]
                raise Wrong(f"{what}: no round within {limit_ms:.0f} ms{late}; the last (world, came): {rounds}; " +
                            "; ".join(self.nodes[index].told()[-300:] for index in self.living()[:2]))
            time.sleep(0.01)

    def end(self):
        """Ends all; raises if anything is left."""
        crowd.stop_all([self.nodes[index] for index in self.living()])
        if self.coordinator is not None:
            crowd.stop_all([self.coordinator])
        deadline = time.monotonic() + 10
        while left := [pid for pid in processes_with(self.marks.path)]:
            if time.monotonic() > deadline:
                for pid in left:
                    crowd.kill(pid, signal.SIGKILL)
                raise Wrong(f"processes {left} were left")
            time.sleep(0.05)


class JobOfHosts(Job):
    """The nodes are on hosts of their own, and one of them has the coordinator."""

    kills = [*KILLS, "the host"]
    again_ms = HOSTS_AGAIN_MS
    quiet_s = 2 * QUIET_S

    def __init__(self, network, *arguments):
        super().__init__(*arguments)
        self._hosts = [network.add() for _ in range(NODES)]
        self._silent = set()

    def begin(self):
        for index in range(NODES):
            self.start(index)

    def start(self, index):
        if index in self._silent:
            self._silent.remove(index)
            self._hosts[index].restore()
        self._start(index, "--log-level=info", host=",".join(host.address for host in self._hosts),
                    enter=self._hosts[index].enter)

    def kill(self, index, how):
        if how != "the host":
            return super().kill(index, how)
        self._silent.add(index)
        self._hosts[index].silence()
        return super().kill(index, "both processes")

    def may_kill(self, killed):
        last = self.marks.rounds()[-1]
        return len(last) == last[0].world and 2 * (last[0].world - killed - 1) > last[0].world

    def has_coordinator(self, index):
        """As far as the node has told."""
        told = self.nodes[index].output.read_text(errors="replace")
        began = max(told.rfind(f"this node hosts the coordinator at port {self._port}"), told.rfind("it acts from now on"))
        ended = max(map(told.rfind, (" resigns: ", " hands over to another node: ", " has taken over from this one ")))
        return began > ended


def processes_with(text):
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if text in (entry / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                yield int(entry.name)
        except OSError:
            continue


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine = common.machine()
    wrong = None
    counted = {"no budgets": Counted(), "default budgets": Counted(), "on the nodes": Counted()}
    networks = crowd.network_namespaces()
    if networks is None:
        print("the coordinator on a node: not run, network namespaces are for root only", file=sys.stderr)
        del counted["on the nodes"]
    with tempfile.TemporaryDirectory(prefix="elastic-run-soak.") as temporary:
        binary = common.elastic_run_binary()
        worker = common.compile_c("crowd_worker", temporary)
        print(f"{common.elastic_run_version(binary)}; {common.describe(machine)}; seed {args.seed}")
        runs = {"no budgets": lambda found: run(Job, binary, worker, temporary, "node_losses=-1,job_losses=-1", args, found,
                                                lambda job: churn(job, found, args)),
                "default budgets": lambda found: run(Job, binary, worker, temporary, f"keep_out={KEEP_OUT_S}", args, found,
                                                     lambda job: flap(job, found)),
                "on the nodes": lambda found: on_hosts(networks, binary, worker, temporary, args, found,
                                                       lambda job: churn(job, found, args))}
        if args.only:
            counted = {name: found for name, found in counted.items() if name == args.only}
        try:
            for name, found in counted.items():
                runs[name](found)
        except (Wrong, BenchError) as error:
            wrong = str(error)
    say("")
    report(counted, wrong)
    if args.json:
        common.write_json(args.json, {"soak": "churn", "machine": machine, "seed": args.seed, "wrong": wrong,
                                      "runs": {name: dataclasses.asdict(one) for name, one in counted.items()}})
    return 0 if wrong is None else 1


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak churn", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=600, metavar="N",
                        help="of the first run, and of the third (%(default)s)")
    parser.add_argument("--only", choices=["no budgets", "default budgets", "on the nodes"], metavar="RUN",
                        help="one of: %(choices)s")
    parser.add_argument("--every", type=positive, default=2000, metavar="MS", help="a kill or a start (%(default)s)")
    parser.add_argument("--grace", type=positive, default=1000, metavar="MS",
                        help="beyond the lease, until all the living train again (%(default)s)")
    parser.add_argument("--seed", type=positive, default=1, metavar="N")
    parser.add_argument("--json", metavar="FILE", help="what was counted, as JSON")
    return parser.parse_args()


def run(make, binary, worker, temporary, conf, args, counted, what):
    with tempfile.TemporaryDirectory(dir=temporary) as directory:
        job = make(binary, worker, directory, conf, 100_000, args.grace)
        try:
            began_ns = time.monotonic_ns()
            job.begin()
            counted.back_ms.append(job.wait(began_ns, 30_000, "at the start", NODES))
            what(job)
            job.look()
        finally:
            rounds = job.marks.rounds()
            counted.rounds, counted.workers = len(rounds), sum(map(len, rounds))
            job.end()
            job.marks.close()


def on_hosts(networks, binary, worker, temporary, args, counted, what):
    network = networks.Network()
    try:
        run(lambda *arguments: JobOfHosts(network, *arguments), binary, worker, temporary,
            "failover=majority,node_losses=-1,job_losses=-1", args, counted, what)
    finally:
        network.remove()


def churn(job, counted, args):
    chance = random.Random(args.seed)
    end_s = time.monotonic() + args.seconds
    pending_ns = None  # the last loss after which not all the living train yet
    killed = 0         # since they last did
    while time.monotonic() < end_s:
        say(f"{counted.kills} kills, {counted.starts} starts, {max(0, end_s - time.monotonic()):.0f} s to go")
        down = [index for index in range(NODES) if job.nodes[index] is None]
        if down and (len(down) == 2 or chance.random() < 0.5):
            job.start(chance.choice(down))
            counted.starts += 1
        elif job.may_kill(killed):
            # A short run hits the coordinator once at least.
            hosts = [index for index in job.living() if job.has_coordinator(index)] if counted.kills == 0 else []
            victim = chance.choice(hosts or job.living())
            counted.coordinators += job.has_coordinator(victim)
            pending_ns = job.kill(victim, chance.choice(job.kills))
            counted.kills += 1
            killed += 1
        if counted.kills >= 10 * (counted.quiet + 1):
            rest(job, counted)
            pending_ns, killed = None, 0
            continue
        until_s = time.monotonic() + args.every / 1000
        while time.monotonic() < until_s:
            job.look()
            if pending_ns is not None:
                done_ns = job.complete(pending_ns)
                took_ms = ((done_ns or time.monotonic_ns()) - pending_ns) / 1e6
                if took_ms > job.again_ms:
                    job.wait(pending_ns, job.again_ms, "after a loss")  # it raises
                if done_ns is not None:
                    counted.again_ms.append(took_ms)
                    pending_ns, killed = None, 0
            time.sleep(0.02)


def rest(job, counted):
    counted.quiet += 1
    began_ns = time.monotonic_ns()
    for index in range(NODES):
        if job.nodes[index] is None:
            job.start(index)
            counted.starts += 1
    counted.back_ms.append(job.wait(began_ns, job.quiet_s * 1000, "in the quiet time, with all nodes", NODES))
    while time.monotonic_ns() < began_ns + job.quiet_s * 10**9:
        job.look()
        time.sleep(0.1)


def flap(job, counted):
    """The last node is lost until it is kept out, and then stays."""
    flapping = NODES - 1
    for loss in range(3):
        say(f"a node flaps: loss {loss + 1}")
        killed_ns = job.kill(flapping, "both processes")
        counted.kills += 1
        counted.again_ms.append(job.wait(killed_ns, job.again_ms, "after a loss", NODES - 1))
        job.start(flapping)
        counted.starts += 1
        if loss < 2:
            counted.back_ms.append(job.wait(killed_ns, LEASE_MS + 8000, "after a start", NODES))
    kept_until_ns = killed_ns + KEEP_OUT_S * 10**9
    while time.monotonic_ns() < kept_until_ns:
        job.look()
        if job.complete(killed_ns, NODES) is not None:
            raise Wrong("a node that was lost three times was let in while it is to be kept out")
        time.sleep(0.05)
    counted.kept_out_ms = job.wait(killed_ns, (KEEP_OUT_S + QUIET_S) * 1000 + LEASE_MS, "let in again", NODES)


def report(counted, wrong):
    rows = []
    for name, one in counted.items():
        again = Spread.of(one.again_ms) if one.again_ms else None
        back = Spread.of(one.back_ms) if one.back_ms else None
        rows.append([name, f"{one.kills}", f"{one.coordinators}", f"{one.starts}", f"{one.rounds}", f"{one.workers}",
                     f"{again.median:.0f} (at most {again.max:.0f})" if again else "",
                     f"{back.median:.0f} (at most {back.max:.0f})" if back else "",
                     f"{one.kept_out_ms:.0f}" if one.kept_out_ms else ""])
    common.print_table(["<run", "kills", "of the coordinator", "starts", "rounds", "workers", "the living train again, ms",
                        "all are back, ms", "kept out, ms"], rows)
    print(f"\n{NOTES}\n\nverdict: " + (f"WRONG\n{wrong}" if wrong else "the living went on, no rank was there twice"))


if __name__ == "__main__":
    common.run_main(main)
