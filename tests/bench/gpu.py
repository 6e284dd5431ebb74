"""GPUs in the node check: a cold check of one pair beside the least that it can cost, phase by phase. Needs a GPU."""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import common
import crowd
from common import BenchError, Goal, Spread, positive, say

sys.path.append(str(common.HERE.parent / "gpu"))
from driver import find_gpu  # noqa: E402

NOTES = """\
Both use the first GPU alone, as two nodes (a NCCL_HOSTID of its own each), over the loopback; they take turns, and ratios
are taken between the two of a turn. All start cold, with the libraries in the page cache.
The least (tests/bench/gpu_floor.c): two processes with a context, an id over a pipe, a communicator, one all-gather of as
many bytes, and the end; all of it from before the first process to the end of both. Nothing is verified.
The check: two elastic-runs with --network-check; phases are phase_ms of health.json, by the coordinator's clock. Phase 0 has
what the least has not: NVML, the product of matrices by cuBLASLt, copies. A pair's stages have the exchange over TCP, too,
the look at all bytes, and more all-gathers. Stage 2 is the second round, with processes and contexts that are there.
The probe: two elastic-gpu-probes, asked by this bench for one thing after the other, each time by both."""

PHASES = ["phase 0, each by itself", "stage 1 of pairs", "stage 2 of pairs", "stage 3 of pairs"]
GOAL_MS, GOAL_RATIO = 2000, 1.5
HOSTS = [{"NCCL_HOSTID": f"bench-{number}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"} for number in range(2)]


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    variables = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if os.environ.get(name)}
    if args.stand_ins:
        variables = {"LD_LIBRARY_PATH": os.path.abspath(args.stand_ins), "ELASTIC_RUN_PROBE_PRODUCT": "128"}
    gpu, why_not = find_gpu(variables, bool(args.stand_ins))
    if gpu is None:
        print(f"skipped: {why_not}")
        return
    machine = common.machine()
    binary = common.elastic_run_binary()
    with tempfile.TemporaryDirectory(prefix="elastic-run-bench.") as temporary:
        bench = Bench(binary, temporary, args, variables)
        say("warming up")
        used = bench.check()["gpu"]  # which libraries are used; and they are in the page cache
        if not used["nccl_path"]:
            raise BenchError("elastic-run finds no NCCL: name a Python that has it by --python")
        runs = []
        for turn in range(args.runs):
            say(f"run {turn + 1}")
            steps = [lambda: {"floor": bench.floor(used)}, lambda: {"check": bench.check()}, lambda: {"probe": bench.probe(used)}]
            runs.append({name: value for step in (steps if turn % 2 else steps[::-1]) for name, value in step().items()})
    say("")
    figures, goals = figures_of(runs), goals_of(runs)
    report(machine, common.elastic_run_version(binary), gpu, used, figures, goals, args)
    if args.json:
        common.write_json(args.json, {
            "benchmark": "gpu", "machine": machine, "gpu": gpu, "is_stand_in": bool(args.stand_ins), "libraries": used,
            "bytes": args.bytes, "runs": runs, "goals": [goal.as_json() for goal in goals]})


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench gpu", description=__doc__)
    parser.add_argument("--runs", type=positive, default=5, metavar="N", help="of each (%(default)s)")
    parser.add_argument("--bytes", type=positive, default=64 << 20, metavar="N", help="of each rank (%(default)s)")
    parser.add_argument("--python", metavar="PATH", default=shutil.which("python3"),
                        help="whose packages have NCCL and cuBLASLt, as the workers' (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="every single measurement as JSON")
    parser.add_argument("--stand-ins", metavar="DIR", help="for tests: libraries in the place of NVIDIA's; the figures say nothing")
    args = parser.parse_args()
    if args.bytes % 8 or args.bytes > 1 << 30:
        parser.error("--bytes: a multiple of 8 up to 2^30")
    return args


class Bench:
    def __init__(self, binary, temporary, args, variables):
        self.binary, self.temporary, self.args, self.variables = binary, temporary, args, variables
        self.program = pathlib.Path(binary).parent / "elastic-gpu-probe"
        self.floor_program = common.built_program(binary, "gpu_floor")
        self.worker = pathlib.Path(temporary) / "worker.py"
        self.worker.write_text("")

    def floor(self, used):
        """{step: ms}"""
        done = subprocess.run([self.floor_program, "libcuda.so.1", used["nccl_path"], str(self.args.bytes)],
                              env=common.environment(self.temporary) | self.variables | HOSTS[0], capture_output=True,
                              text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise BenchError(f"gpu_floor ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout)

    def check(self):
        """Of a job of two nodes: its phases in ms, and the GPU of its first node as health.json has it."""
        port = crowd.free_port()
        worker = ["--no-python", "true"] if self.args.stand_ins else [str(self.worker)]
        variables = self.variables | {"ELASTIC_RUN_PROBE_GPUS": "1", "ELASTIC_RUN_PROBE_BYTES": f"{self.args.bytes}"}
        if not self.args.stand_ins:
            variables |= {"PYTHON_EXEC": self.args.python, "PATH": f"{pathlib.Path(self.args.python).parent}:{os.environ['PATH']}"}
        running = []
        with tempfile.TemporaryDirectory(dir=self.temporary, prefix="logs.") as logs:
            try:
                for host in HOSTS:
                    running.append(crowd.Node(
                        [self.binary, "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=bench",
                         f"--rdzv-endpoint=127.0.0.1:{port}", "--network-check", f"--log-dir={logs}", *worker],
                        self.temporary, variables | host))
                for node in running:
                    if node.process.wait(120) != 0:
                        raise BenchError(f"a node has failed: {node.told()}")
            except subprocess.TimeoutExpired:
                raise BenchError(f"a node still runs after 120 s: {running[0].told()}") from None
            finally:
                crowd.stop_all(running)
            reports = list(pathlib.Path(logs).glob("*/health.json"))
            if len(reports) != 1:
                raise BenchError(f"{len(reports)} files health.json: {running[0].told()}")
            told = json.loads(reports[0].read_text())
        gpu = told["nodes"][0]["gpu"]
        if gpu is None or not all(pair["gpu_ms"] for pair in told["pairs"]):
            raise BenchError(f"the check has not tested the GPU: {running[0].told()}")
        return {"phase_ms": told["phase_ms"], "gpu": gpu, "gather_ms": told["pairs"][0]["gpu_ms"]}

    def probe(self, used):
        """{step: ms} of two probes that are asked by us."""
        probes = [Probe(self.program, common.environment(self.temporary) | self.variables | host) for host in HOSTS]
        took = {}

        def ask(name, *requests):
            begin = time.monotonic_ns()
            for probe, request in zip(probes, requests):
                probe.send(request)
            replies = [probe.receive(name) for probe, _ in zip(probes, requests)]
            took[f"{name}_ms"] = (time.monotonic_ns() - begin) / 1e6
            return replies

        try:
            request = {"do": "open", "device": 0, "cuda": ["libcuda.so.1"], "nvml": ["libnvidia-ml.so.1"],
                       "nccl": [used["nccl_path"]], "cublaslt": [path] if (path := used["cublaslt_path"]) else []}
            ask("open", request, request)
            ask("facts", {"do": "facts"})
            ask("compute", {"do": "compute"}, {"do": "compute"})
            for round_ in ("gather", "second gather"):
                id_ = ask("id", {"do": "id"})[0]["id"]
                replies = ask(round_, *({"do": "gather", "id": id_, "rank": rank, "world": 2, "bytes": self.args.bytes,
                                         "deadline_ms": 60_000} for rank in range(2)))
                if round_ == "gather":
                    took |= {f"gather: {name}": max(reply[name] for reply in replies) for name in ("init_ms", "first_ms", "ms")}
        finally:
            for probe in probes:
                probe.end()
        return took


class Probe:
    """An elastic-gpu-probe; docs/gpu-probe.md has its lines."""

    def __init__(self, program, variables):
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(60)
        with theirs:
            self._process = subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=theirs,  # pylint: disable=consider-using-with
                                             stderr=subprocess.DEVNULL, env=variables)
        self._lines = self._socket.makefile("rb")

    def send(self, request):
        values = [(name, value) for name, given in request.items()
                  for value in (given if isinstance(given, list) else [given])]
        self._socket.sendall("\t".join(f"{name}={value}" for name, value in values).encode() + b"\n")

    def receive(self, what):
        reply = json.loads(self._lines.readline() or b'{"failed": "it has ended"}')
        if "ok" not in reply:
            raise BenchError(f"a probe that was asked for {what} says {reply}")
        return reply

    def end(self):
        self._lines.close()
        self._socket.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


# --- What it comes to ----------------------------------------------------------------------------


@dataclasses.dataclass
class Figure:
    part: str
    what: str
    values: list


def pair_ms(run):
    """The cold check of one pair: all until the first round of pairs is over."""
    return sum(run["check"]["phase_ms"][:2])


def figures_of(runs):
    for step in runs[0]["floor"]:
        yield Figure("the least", step.removesuffix("_ms"), [run["floor"][step] for run in runs])
    yield Figure("the check", "cold check of one pair: phase 0 and stage 1", [pair_ms(run) for run in runs])
    for number, name in enumerate(PHASES):
        values = [run["check"]["phase_ms"][number] for run in runs if number < len(run["check"]["phase_ms"])]
        if values:
            yield Figure("the check", name, values)
    yield Figure("the check", "all of it", [sum(run["check"]["phase_ms"]) for run in runs])
    for step in runs[0]["probe"]:
        yield Figure("the probe", step.removesuffix("_ms"), [run["probe"][step] for run in runs])


def goals_of(runs):
    return [Goal("cold check of one pair, s", GOAL_MS / 1000, False, Spread.of([pair_ms(run) / 1000 for run in runs])),
            Goal("cold check of one pair: times the least", GOAL_RATIO, False,
                 Spread.of([pair_ms(run) / run["floor"]["total_ms"] for run in runs]))]


def report(machine, version, gpu, used, figures, goals, args):
    if args.stand_ins:
        print("STAND-INS FOR NVIDIA'S LIBRARIES: these figures say nothing of a GPU.\n")
    print(f"{version}; {common.describe(machine)}")
    print(f"{gpu['name']}, driver {used['driver']}, CUDA {used['cuda']}; NCCL {used['nccl']} ({used['nccl_path']}); cuBLASLt "
          f"{used['cublaslt'] or 'none'}; {args.bytes} bytes of each rank\n")
    rows = []
    for one in figures:
        spread = Spread.of(one.values)
        rows.append([one.part, one.what, f"{spread.median:.1f}", f"{spread.min:.1f} to {spread.max:.1f}", f"{spread.count}"])
    common.print_table(["<part", "<step, ms", "median", "min to max", "runs"], rows)
    print("\nGOALS")
    common.print_goals(goals)
    print(f"\n{NOTES}")


if __name__ == "__main__":
    common.run_main(main)
