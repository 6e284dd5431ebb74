"""The worker store beside PyTorch's own server and a bare one that does the least: its CPU time per operation."""

import argparse
import contextlib
import dataclasses
import gc
import json
import os
import pathlib
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import common
from common import BenchError, Goal, Spread, positive, say

OURS, TORCH, BARE = "elastic-run", "PyTorch", "bare store"
SERVERS = (OURS, TORCH, BARE)
OPERATIONS = ("get", "set-ack", "add", "check", "wait-notify")
PIPELINED = {"get": 8}  # operation: depth; 8 clients, nobody idle
PARTS = (*OPERATIONS, "pipelined", "wake", "connects", "memory", "groups")
# Ratios that are to be reached. CPU is the server's, per operation.
TIMES_BARE, TIMES_TORCH, FLAT, FASTER_PIPELINED = 1.15, 1.0, 1.10, 4.0

NOTES = """\
CPU: what the server's process used (its CPU clock) by the number of operations, taken in slices of 5 ms, of
which the lower quartile counts: a virtual machine charges its processes with the time that its host takes from
it, in bursts. This decides; operations per second, which swing with whatever else goes on, stand beside it.
Servers and load are held on one core: to wake another costs more than to serve, and not the same every time.
So operations per second are those of a server that has half a core; the ranks of groups use all cores.
Order: every server has one process for each number of idle clients, all alive at once; at each point all of
them are measured directly one after the other, some times in each round, another one first each time. New
processes in each round. Ratios are taken between measurements of the same turn; their median counts. A goal
names its worst point.
get, add, check: one request. set-ack: SET and CHECK in one piece. wait-notify: WAIT and PING, and when PING is
answered SET by another client; then WAIT's answer. A busy client asks again when it has been answered.
wake: clients of one WAIT each; the time from the SET to the last one's answer. connects: connect, VALIDATE,
PING and the answer, at most 4,000 under way. memory: growth of Private_* in smaps_rollup by idle clients,
which have said VALIDATE and PING. groups: init_process_group("gloo") of real PyTorch, from the moment when
forked ranks are let go until the last has returned. PyTorch's server listens on IPv4, where its look-up of each
client's name is answered by the hosts file. The bare store is tests/bench/bare_store.cpp."""


@dataclasses.dataclass(frozen=True)
class Point:
    """What store_load does to a server."""

    operation: str
    clients: int
    idle: int = 0
    depth: int = 1

    def name(self):
        return (f"{self.operation}{f' x{self.depth}' if self.depth > 1 else ''}, {self.clients} busy"
                f", {self.idle} idle")

    def options(self, seconds):
        if self.operation in ("wake", "connects"):
            return [f"--scenario={self.operation}", f"--clients={self.clients}"]
        return [f"--operation={self.operation}", f"--clients={self.clients}", f"--depth={self.depth}",
                f"--seconds={seconds}"]


def main():
    args = parse_arguments()
    allow_connections(sum(args.idle) * len(SERVERS))
    machine = common.machine()
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})  # and all that is started from here
    gc.disable()
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary, contextlib.ExitStack() as stack:
        programs = Programs(stack, temporary, cores)
        loads, memory, groups = measure(args, programs)
    goals = judge(loads, memory)
    report(machine, programs.versions(), loads, memory, groups, goals)
    if args.json:
        common.write_json(args.json, as_json(machine, programs.versions(), loads, memory, groups, goals))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench store", description=__doc__)
    parser.add_argument("--only", type=part_list, default=PARTS, metavar="PART,...", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=positive, default=7, metavar="N",
                        help="each with new processes (%(default)s)")
    parser.add_argument("--turns", type=positive, default=3, metavar="N",
                        help="of all servers at each point in one round (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.04, metavar="S",
                        help="of one measurement (%(default)s)")
    parser.add_argument("--clients", type=number_list, default=[1, 8, 32], metavar="N,...",
                        help="busy ones (1,8,32)")
    parser.add_argument("--idle", type=number_list, default=[0, 1000, 4000], metavar="N,...",
                        help="idle ones beside them (0,1000,4000)")
    parser.add_argument("--wake", type=positive, default=4000, metavar="N", help="waiting clients (%(default)s)")
    parser.add_argument("--connects", type=positive, default=10000, metavar="N", help="(%(default)s)")
    parser.add_argument("--ranks", type=number_list, default=[8, 32], metavar="N,...", help="of groups (8,32)")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    return parser.parse_args()


def number_list(text):
    numbers = text.split(",")
    if not all(part.isascii() and part.isdigit() for part in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of whole numbers")
    return sorted({int(part) for part in numbers})


def part_list(text):
    parts = text.split(",")
    for part in parts:
        if part not in PARTS:
            raise argparse.ArgumentTypeError(f"{part!r} is none of {', '.join(PARTS)}")
    return parts


def allow_connections(count):
    """The idle clients are all this process's own."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < count + 100:
        raise BenchError(f"{count} idle clients need as many descriptors, the hard limit is {hard}: "
                         "raise it (ulimit -Hn), or take fewer by --idle")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# --- The servers ---------------------------------------------------------------------------------


class Programs:
    """What is measured and what measures it. PyTorch is imported once: its servers are forked after that."""

    def __init__(self, stack, temporary, cores):
        self.temporary = temporary
        self.cores = ",".join(map(str, sorted(cores)))
        self.binary = common.elastic_run_binary()
        self.torchrun = common.torchrun()
        self.python = str(pathlib.Path(self.torchrun).with_name("python"))
        self.load = common.built_program(self.binary, "store_load")
        self.bare = common.built_program(self.binary, "bare_store")
        self.torch = TorchPrograms(self)
        stack.callback(self.torch.stop)

    def versions(self):
        return {OURS: common.elastic_run_version(self.binary), TORCH: common.torch_version(self.torchrun)}


def spawn(command, temporary):
    return subprocess.Popen(command, env=common.environment(temporary), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)


def readable(file, timeout_s):
    """select() knows no descriptor above 1,023."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(1000 * timeout_s))


def read_until(file, pattern, timeout_s, who):
    """The first match in what a program says; reads no further than a line."""
    told = b""
    while True:
        if not readable(file, timeout_s):
            raise BenchError(f"{who} says nothing for {timeout_s} s: {told.decode(errors='replace')}")
        piece = os.read(file.fileno(), 1)
        told += piece
        if piece == b"\n" and (found := re.search(pattern, told)):
            return found
        if not piece:
            raise BenchError(f"{who} ended: {told.decode(errors='replace')[-2000:]}")


class TorchPrograms:
    """A process that has imported PyTorch. Asked on stdin, it forks servers and makes process groups."""

    def __init__(self, programs):
        self._process = spawn([programs.python, __file__, "torch-programs"], programs.temporary)

    def ask(self, question, answer, timeout_s=60):
        self._process.stdin.write(f"{question}\n".encode())
        self._process.stdin.flush()
        return read_until(self._process.stdout, answer, timeout_s, f"PyTorch, asked for {question!r},")

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # servers and ranks too
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


class Server:
    """One process that serves one store, and the idle clients it has."""

    def __init__(self, programs, name):
        self.name = name
        self._idle = []
        self._process = None
        if name == TORCH:
            found = programs.torch.ask("server", rb"pid (\d+) port (\d+)\n")
            self.pid, self.port = int(found.group(1)), int(found.group(2))
            return
        self._process = spawn([programs.binary, "--store-only", "--port=0"] if name == OURS else
                              [programs.bare], programs.temporary)
        self.pid = self._process.pid
        self.port = int(read_until(self._process.stdout, rb"port (\d+)\n", 30, name).group(1))

    def connect_idle(self, count):
        """Clients that have said VALIDATE and PING, as PyTorch's do, and nothing more."""
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", self.port), timeout=30)
            self._idle.append(client)
            client.sendall(bytes.fromhex("00cef7853c") + b"\x0dping")
            if client.recv(4) != b"ping":
                raise BenchError(f"{self.name} does not answer PING")

    def private_kib(self):
        rollup = pathlib.Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))

    def stop(self):
        for client in self._idle:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        if self._process is None:
            return
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


@contextlib.contextmanager
def serving(programs, wanted):
    """A Server for each (server's name, idle clients) of `wanted`, still without the idle clients."""
    with contextlib.ExitStack() as stack:
        servers = {}
        for key in wanted:
            servers[key] = Server(programs, key[0])
            stack.callback(servers[key].stop)
        yield servers


# --- What runs in a process that has imported PyTorch -----------------------------------------------


def torch_programs():
    """Obeys lines on stdin: `server` forks PyTorch's server, `group RANKS PORT CORE,...` times a process group
    whose ranks may use those cores."""
    import torch.distributed  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    servers = []
    for number, line in enumerate(sys.stdin):
        order, *arguments = line.split()
        if order == "server":
            servers.append(os.fork())
            if servers[-1] == 0:
                serve_torch()
        else:
            ranks, port, cores = arguments
            took_ms = time_group(int(ranks), int(port), f"group {number}", set(map(int, cores.split(","))))
            print(f"took {took_ms} ms", flush=True)


def serve_torch():
    import torch.distributed as dist

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    listener = socket.create_server(("127.0.0.1", 0), backlog=65535)
    store = dist.TCPStore("127.0.0.1", listener.getsockname()[1], is_master=True, wait_for_workers=False,
                          master_listen_fd=listener.detach())
    print(f"pid {os.getpid()} port {store.port}", flush=True)
    while True:
        signal.pause()


def time_group(ranks, port, name, cores):
    """Milliseconds from the moment when the ranks are let go until the last has its process group."""
    go, let_go = os.pipe()
    hear, done = os.pipe()
    pids = []
    for rank in range(ranks):
        pid = os.fork()
        if pid == 0:
            os.sched_setaffinity(0, cores)
            os._exit(be_a_rank(rank, ranks, port, name, go, done))
        pids.append(pid)
    os.close(done)
    began = time.perf_counter_ns()
    os.write(let_go, b"." * ranks)
    came = 0
    while came < ranks and (told := os.read(hear, ranks)):
        came += len(told)
    took_ms = (time.perf_counter_ns() - began) / 1e6
    os.write(let_go, b"." * ranks)
    for fd in (go, let_go, hear):
        os.close(fd)
    statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    if came != ranks or any(statuses):
        sys.exit(1)
    return took_ms


def be_a_rank(rank, ranks, port, name, go, done):
    try:
        import torch.distributed as dist

        os.read(go, 1)
        # As env:// does where a launcher serves the store; but one store serves several groups here.
        store = dist.TCPStore("127.0.0.1", port, ranks, is_master=False)
        dist.init_process_group("gloo", store=dist.PrefixStore(name, store), rank=rank, world_size=ranks)
        os.write(done, b".")
        os.read(go, 1)  # nobody leaves before all have come
        return 0
    except BaseException as error:  # noqa: BLE001  this is the end of the process
        print(error, file=sys.stderr)
        return 1


# --- Measuring -----------------------------------------------------------------------------------


def measure(args, programs):
    """({Point: {server: {turn: figures}}}, {server: {round: KiB}}, {ranks: {server: {round: ms}}})"""
    points = points_of(args)
    loads = {point: {name: {} for name in SERVERS} for point in points}
    memory = {name: {} for name in SERVERS} if "memory" in args.only else {}
    groups = {ranks: {OURS: {}, TORCH: {}} for ranks in args.ranks} if "groups" in args.only else {}
    idle_counts = sorted({0, *(point.idle for point in points), *(args.idle if memory else ())})
    for number in range(args.rounds):
        with serving(programs, [(name, idle) for idle in idle_counts for name in SERVERS]) as servers:
            for (name, idle), server in servers.items():
                say(f"round {number + 1} of {args.rounds}: {idle} idle clients of {name}")
                before = server.private_kib()
                server.connect_idle(idle)
                if memory and idle == max(idle_counts) > 0:
                    memory[name][number] = (server.private_kib() - before) / idle
            measure_loads(args, programs, servers, number, loads)
            measure_groups(programs, servers, number, groups)
    return loads, memory, groups


def points_of(args):
    points = [Point(operation, clients, idle) for operation in OPERATIONS if operation in args.only
              for clients in args.clients for idle in args.idle]
    if "pipelined" in args.only:
        points += [Point(operation, 8, 0, depth) for operation, depth in PIPELINED.items()]
    if "wake" in args.only:
        points.append(Point("wake", args.wake))
    if "connects" in args.only:
        points.append(Point("connects", args.connects))
    return points


def measure_loads(args, programs, servers, number, loads):
    """Points that differ by their idle clients alone are measured together."""
    together = {}
    for point in loads:
        together.setdefault(dataclasses.replace(point, idle=0), []).append(point)
    for alike in together.values():
        order = [(point, name) for point in alike for name in SERVERS]
        for turn in range(args.turns if alike[0].operation in OPERATIONS else 1):
            key = number * args.turns + turn
            first = key * len(order) // (args.rounds * args.turns)
            for point, name in order[first:] + order[:first]:
                say(f"round {number + 1} of {args.rounds}: {point.name()}, {name}")
                loads[point][name][key] = run_load(programs, servers[name, point.idle], point, args.seconds)


def run_load(programs, server, point, seconds):
    command = [programs.load, f"--port={server.port}", f"--server-pid={server.pid}", *point.options(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{point.name()}, {server.name}: {done.stderr or done.stdout}")
    found = json.loads(done.stdout)
    return {name: found[name] for name in ("operations", "seconds", "ops_per_s", "server_cpu_us_per_op",
                                           "quiet_cpu_us_per_op", "p50_us", "p99_us", "p99.9_us")}


def cpu(figures):
    return {number: found["quiet_cpu_us_per_op"] for number, found in figures.items()}


def rate(figures):
    return {number: found["ops_per_s"] for number, found in figures.items()}


def measure_groups(programs, servers, number, groups):
    for ranks, measured in groups.items():
        for name in (OURS, TORCH) if number % 2 == 0 else (TORCH, OURS):
            say(f"round {number + 1}: process group of {ranks} ranks, {name}")
            order = f"group {ranks} {servers[name, 0].port} {programs.cores}"
            found = programs.torch.ask(order, rb"took ([\d.]+) ms\n", 120)
            measured[name][number] = float(found.group(1))


# --- Report --------------------------------------------------------------------------------------


def judge(loads, memory):
    goals = []

    def worst(what, bound, ratios):
        """The goal at that of {point: ratios} which is farthest from it."""
        if not ratios:
            return
        point, of_rounds = max(ratios.items(), key=lambda item: Spread.of(item[1]).median)
        goals.append(Goal(f"{what} ({point.name()})", bound, False, Spread.of(of_rounds)))

    kinds = {}
    for point in loads:
        kinds.setdefault((point.operation, point.depth), []).append(point)
    for (operation, depth), points in kinds.items():
        for other, bound in ((BARE, TIMES_BARE), (TORCH, TIMES_TORCH)):
            worst(f"CPU, times {other}'s", bound,
                  {point: common.pairs(cpu(loads[point][OURS]), cpu(loads[point][other])) for point in points})
        worst("CPU, times that without idle", FLAT,
              {point: common.pairs(cpu(loads[point][OURS]), cpu(loads[alone][OURS])) for point in points
               if point.idle > 0 and (alone := dataclasses.replace(point, idle=0)) in loads})
        if depth > 1:
            ratio = common.pairs(rate(loads[points[0]][OURS]), rate(loads[points[0]][TORCH]))
            goals.append(Goal(f"op/s, times PyTorch's ({points[0].name()})", FASTER_PIPELINED, True,
                              Spread.of(ratio)))
    if memory:
        goals.append(Goal("memory of an idle client, times PyTorch's", 1.0, False,
                          Spread.of(common.pairs(memory[OURS], memory[TORCH]))))
    return goals


def report(machine, versions, loads, memory, groups, goals):
    say("")
    print(f"{versions[OURS]}; {versions[TORCH]}; {common.describe(machine)}")
    if loads:
        print("\nCPU OF THE SERVER PER OPERATION, us, and operations per second, thousands (medians); "
              "ratios: CPU of elastic-run to the others'")
        common.print_table(
            ["<operation", "busy", "idle", *(f"us {name}" for name in SERVERS), "to bare", "to PyTorch",
             *(f"k/s {name}" for name in SERVERS), "p50 us", "p99 us"], list(load_rows(loads)))
    if memory:
        print("\nPRIVATE MEMORY OF AN IDLE CLIENT, KiB")
        common.print_table(["<server", "median", "min", "max"], [spread_row(name, rounds)
                                                                for name, rounds in memory.items() if rounds])
    if groups:
        print('\ninit_process_group("gloo"), ms')
        common.print_table(["<ranks, server", "median", "min", "max"],
                           [spread_row(f"{ranks}, {name}", rounds) for ranks, measured in groups.items()
                            for name, rounds in measured.items()])
    print("\nGOALS")
    common.print_goals(goals)
    print(f"\n{NOTES}")


def spread_row(name, rounds):
    found = Spread.of(list(rounds.values()))
    return [name, *(f"{value:.2f}" for value in (found.median, found.min, found.max))]


def load_rows(loads):
    for point, measured in loads.items():
        used = {name: Spread.of(list(cpu(rounds).values())).median for name, rounds in measured.items()}
        rates = {name: Spread.of(list(rate(rounds).values())).median for name, rounds in measured.items()}
        late = [Spread.of([found[name] for found in measured[OURS].values()]).median
                for name in ("p50_us", "p99_us")]
        ratios = [Spread.of(common.pairs(cpu(measured[OURS]), cpu(measured[other]))).median
                  for other in (BARE, TORCH)]
        yield [f"{point.operation}{f' x{point.depth}' if point.depth > 1 else ''}", str(point.clients),
               str(point.idle), *(f"{used[name]:.2f}" for name in SERVERS), *(f"{one:.2f}" for one in ratios),
               *(f"{rates[name] / 1000:.1f}" for name in SERVERS), *(f"{one:.0f}" for one in late)]


def as_json(machine, versions, loads, memory, groups, goals):
    return {"benchmark": "store", "machine": machine, "versions": versions,
            "loads": [{**dataclasses.asdict(point), "servers": measured} for point, measured in loads.items()],
            "idle_client_kib": memory, "init_process_group_ms": groups,
            "goals": [goal.as_json() for goal in goals]}


if __name__ == "__main__":
    if sys.argv[1:] == ["torch-programs"]:
        torch_programs()
    else:
        common.run_main(main)
