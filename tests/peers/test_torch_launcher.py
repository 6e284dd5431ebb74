"""The tests of PyTorch's own launcher that do not mock Python, as scenarios from outside: the names are those of PyTorch's
tests (test_run.py, local_elastic_agent_test.py, multiprocessing/api_test.py, c10d_rendezvous_backend_test.py), whose text
no package has. What they ask of a store is tests/system/test_store_*.py."""

import dataclasses
import json
import os
import signal
import socket

from launchers import EVERYTHING, OURS, TORCHRUN
import harness
from ports import free_port
import pytest

# bin/test_script.py: the environment is whole; a file by the name of the rank, or an error.
SCRIPT = """\
import os, sys
for name in ["LOCAL_RANK", "RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "LOCAL_WORLD_SIZE", "WORLD_SIZE",
             "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS",
             "TORCHELASTIC_RUN_ID", "OMP_NUM_THREADS", "TEST_SENTINEL_PARENT", "TORCHELASTIC_ERROR_FILE"]:
    os.environ[name]
if "--fail" in sys.argv:
    raise RuntimeError("--fail")
open(os.path.join(os.environ["OUT"], os.environ["RANK"]), "x").close()
"""
BASH = '#!/bin/bash\ntouch "$OUT/$RANK"\n'
# Ranks of one round agree over gloo: the sum has each of them once.
SUM = """\
import os, sys
import torch, torch.distributed as dist
method = sys.argv[1] if len(sys.argv) > 1 else "env://"
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=method, rank=rank, world_size=world)
assert dist.is_torchelastic_launched()
total = torch.tensor([rank + 1])
dist.all_reduce(total)
assert total.item() == world * (world + 1) // 2
open(os.path.join(os.environ["OUT"], str(rank)), "x").close()
sys.stdout.flush()
dist.barrier()
os._exit(0)
"""
# What a rank is told of its place.
PLACE = """\
import json, os
names = ["GROUP_RANK", "LOCAL_RANK", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE", "LOCAL_WORLD_SIZE", "WORLD_SIZE"]
with open(os.path.join(os.environ["OUT"], os.environ["RANK"]), "x") as file:
    json.dump([os.environ[name] for name in names], file)
"""
NEEDS_AN_ENTRY = "import sys; sys.exit('started')"
CREATING = "import os, sys\nprint('creating', os.environ['RANK'])\nprint('warning', file=sys.stderr)\n" + SCRIPT
NCCL = """\
import os
assert os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == os.environ.get("EXPECTED", "1")
open(os.path.join(os.environ["OUT"], os.environ["RANK"]), "x").close()
"""
BIPOLAR = """\
import os, sys
rank, count = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
open(os.path.join(os.environ["OUT"], f"{count}.{rank}"), "x").close()
sys.exit(int(rank) % 2)
"""
DRIFT = """\
import os, time
out, rank = os.environ["OUT"], os.environ["RANK"]
if rank == "1":  # node 0 has nothing left to do long before this one
    while not os.path.exists(os.path.join(out, "0")):
        time.sleep(0.01)
open(os.path.join(out, rank), "x").close()
"""
C10D = "--rdzv-backend=c10d"


@dataclasses.dataclass(frozen=True)
class Case:
    """One job: the same command line on each node. {port} is a free port, {node} the node's number."""

    options: list
    script: str = SCRIPT
    arguments: list = dataclasses.field(default_factory=list)
    nodes: list = dataclasses.field(default_factory=lambda: [[]])  # what each node has besides
    env: dict = dataclasses.field(default_factory=dict)
    status: int = 0
    files: int | None = None  # so many, by the names 0, 1, ...; None where the job fails
    elastic_run_status: int | None = None  # where it is another one: 2 for a wrong command line, which torchrun has for some
    tells: tuple = ()  # texts in what is printed
    elastic_run_tells: tuple = ()  # and in what elastic-run prints, whose words are its own


def multi(nodes, nproc):
    return [f"--nnodes={nodes}", f"--nproc-per-node={nproc}", C10D, "--rdzv-endpoint=localhost:{port}", "--rdzv-id=job"]


STATIC = ["--nnodes=1", "--nproc-per-node=4", "--monitor-interval=1", "--start-method=spawn",
          "--master-addr=localhost", "--master-port={port}", "--node-rank=0"]
MANY_VARIABLES = {"PET_NNODES": "1", "PET_NPROC_PER_NODE": "4", "PET_RDZV_ID": "job", "PET_MONITOR_INTERVAL": "1",
                  "PET_START_METHOD": "spawn"}

CASES = {
    "launch_user_script_python": Case([*multi(1, 4), "--monitor-interval=1", "--start-method=spawn"], files=4),
    "launch_user_script_python_caffe2_bc": Case(STATIC, files=4),
    "launch_user_script_bash": Case([*multi(1, 4), "--no-python"], BASH, files=4),
    "launch_user_script_bash_as_module": Case([*multi(1, 4), "--module", "--no-python"], BASH, status=1, elastic_run_status=2),
    "launch_user_script_default_nproc": Case(["--nnodes=1"], files=1),
    "launch_with_env_vars": Case([], env=MANY_VARIABLES | {"PET_MODULE": "0"}, files=4),
    "launch_with_env_vars_no_python": Case([], BASH, env=MANY_VARIABLES | {"PET_NO_PYTHON": "1"}, files=4),
    "launch_with_env_vars_module_without_python": Case(
        [], BASH, env=MANY_VARIABLES | {"PET_NO_PYTHON": "1", "PET_MODULE": "1"}, status=1, elastic_run_status=2),
    "nproc_launch_auto_configurations": Case(
        [*multi(1, "auto")], env={"CUDA_VISIBLE_DEVICES": ""}, files=len(os.sched_getaffinity(0))),
    "nproc_launch_number_configurations": Case(multi(1, 3), files=3),
    "nproc_launch_unknown_configurations": Case(multi(1, "unknown"), status=1, elastic_run_status=2),
    "launch_elastic": Case([*multi("1:2", 4), "--rdzv-conf='join_timeout=5,last_call_timeout=1,timeout=5'"], files=4),
    "launch_elastic_worker_raise_exception": Case(
        [*multi("1:2", 4), "--max-restarts=0", "--rdzv-conf=last_call_timeout=1"], arguments=["--fail"], status=1,
        tells=("RuntimeError: --fail",)),
    "launch_elastic_multiple_agents": Case(multi("2:2", 4), nodes=[[], []], files=8),
    "launch_standalone": Case(["--standalone", "--nproc-per-node=4"], files=4),
    "launch_run_path": Case(["--run-path", "--nproc-per-node=4"], files=4),
    "logs_logs_spec_entrypoint_must_be_defined": Case(["--logs-specs=none-such"], NEEDS_AN_ENTRY, status=1, elastic_run_status=2),
    "init_method_env_with_torchelastic": Case(STATIC, SUM, files=4),
    "init_method_tcp_with_torchelastic": Case(STATIC, SUM, ["tcp://localhost:{port}"], files=4),
    "capture_logs_using_default_logs_specs": Case(
        [*multi(1, 4), "--redirect=3", "--tee=3"], CREATING, files=4,
        env={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank${rank}]: "},
        tells=tuple(f"[rank{rank}]: {what}" for rank in range(4) for what in ("creating ", "warning"))),
    "run_distributed_sum_heterogeneous": Case(
        ["--nnodes=2", C10D, "--rdzv-endpoint=localhost:{port}"], SUM,
        nodes=[["--nproc-per-node=1"], ["--nproc-per-node=2"]], files=3),
    "run_bipolar_function": Case([*multi(1, 4), "--max-restarts=2"], BIPOLAR, status=1,
                                 elastic_run_tells=("restart 2 of 2", "exited with code 1")),
    "run_check_nccl_async_error_handling_env": Case(
        ["--nproc-per-node=2"], NCCL, env={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "EXPECTED": "0"}, files=2),
    "run_check_nccl_async_error_handling_env_default": Case(["--nproc-per-node=2"], NCCL, files=2),
    "workers_drift_success": Case(multi(2, 1), DRIFT, nodes=[[], []], files=2),
    "no_exit_barrier_on_failure": Case(multi(2, 1), "import sys; sys.exit(1)\n", nodes=[[], []], status=1),
    "binary_exit": Case(["--nproc-per-node=2"], "import os, sys\nsys.exit(138 * (os.environ['RANK'] == '0'))\n",
                        status=1, tells=("138",)),
    "binary_raises": Case([], "raise RuntimeError('raised by the worker')\n", status=1, tells=("raised by the worker",)),
    "binary_signal": Case([], "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\n", status=1, tells=("SIGSEGV",)),
    "binary_incorrect_entrypoint": Case(["--no-python"], "", ["nothing"], status=1, elastic_run_status=2,
                                        tells=("no-such-program",)),
}


@pytest.fixture(params=[OURS, TORCHRUN] if EVERYTHING else [OURS])
def launcher(request):
    return request.param


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.fixture
def start(launchers, launcher, out):
    """start(script, options...): one node of a job under the launcher of this test."""
    return lambda script, *options, env=None: launchers.start(
        launcher, *options, script, env={"OUT": str(out), "TEST_SENTINEL_PARENT": "FOOBAR"} | (env or {}))


@pytest.mark.parametrize("name", CASES)
def test_of_pytorchs_launcher(launchers, launcher, start, script, out, name):
    case, port = CASES[name], free_port()
    launchers.case = name
    path = script("train.py", case.script) if case.script else "no-such-program"
    arguments = [argument.format(port=port) for argument in case.arguments]
    running = [launchers.start(launcher, *(option.format(port=port) for option in [*case.options, *node]), path, *arguments,
                               env={"OUT": str(out), "TEST_SENTINEL_PARENT": "FOOBAR"} | case.env)
               for node in case.nodes]
    results = [launchers.wait(launcher, one) for one in running]
    if launcher == TORCHRUN and None in results:
        return
    ours = case.status if case.elastic_run_status is None else case.elastic_run_status
    expected = ours if launcher == OURS else case.status
    assert [result.returncode for result in results] == [expected] * len(case.nodes), results
    if case.files is not None:
        assert sorted(os.listdir(out)) == sorted(map(str, range(case.files)))
    for text in [*case.tells, *(case.elastic_run_tells if launcher == OURS else [])]:
        assert text in results[0].stdout + results[0].stderr, results


def test_correct_rank_assignment_heterogeneous(launchers, launcher, start, script, out):
    """master, trainer, trainer, ps, ps, ps: ranks follow each other within a node, and those of a role over the nodes."""
    port = free_port()
    roles = [("master", 1), ("trainer", 2), ("trainer", 3), ("ps", 1), ("ps", 2)]
    path = script("train.py", PLACE)
    running = [start(path, *multi(5, count), f"--role={role}", "--rdzv-endpoint=localhost:%d" % port)
               for role, count in roles]
    assert [launchers.wait(launcher, one).returncode for one in running] == [0] * 5
    told = [json.loads((out / str(rank)).read_text()) for rank in range(9)]
    assert [place[6] for place in told] == ["9"] * 9
    in_roles = {}
    nodes = {}
    for group, local, role_rank, role, role_size, local_size, _ in told:
        assert int(role_rank) == in_roles.setdefault(role, 0)
        in_roles[role] += 1
        assert int(local) == nodes.setdefault(group, 0)
        nodes[group] += 1
        assert role_size == {"master": "1", "trainer": "5", "ps": "3"}[role]
        assert (role, int(local_size)) in roles
    assert sorted(nodes.values()) == [1, 1, 2, 2, 3] and in_roles == {"master": 1, "trainer": 5, "ps": 3}


SAD = """\
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    raise RuntimeError("sad because i throw")
main()
"""


def test_run_sad_function(launchers, launcher, start, script, tmp_path):
    """The error that a worker recorded reaches the file of whoever runs the launcher, as it was."""
    parents = tmp_path / "parents-error.json"
    running = start(script("train.py", SAD), "--max-restarts=0", f"--log-dir={tmp_path / 'logs'}",
                    env={"TORCHELASTIC_ERROR_FILE": str(parents)})
    assert launchers.wait(launcher, running).returncode == 1
    workers, = (tmp_path / "logs").glob("*/attempt_0/0/error.json")
    recorded, handed_on = (json.loads(path.read_text())["message"] for path in (workers, parents))
    assert handed_on["message"] == recorded["message"] == "RuntimeError: sad because i throw"
    assert handed_on["extraInfo"]["timestamp"] == recorded["extraInfo"]["timestamp"]


# In the first round each rank waits to be ended; whoever comes later finds the files of the round before, and succeeds.
FIRST_ROUND_WAITS = """\
import os, signal, sys
try:
    open(os.path.join(os.environ["OUT"], os.environ["RANK"]), "x").close()
except FileExistsError:
    sys.exit(0)
print("waits", flush=True)
signal.pause()
"""


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) == 0


@pytest.mark.parametrize("nodes, replaced", [("2:2", True), ("1:2", False)],
                         ids=["double_agent_fault_tolerance", "double_agent_elastic"])
def test_an_agent_is_killed(launchers, launcher, start, script, nodes, replaced):
    """With a replacement where two are needed, without one where one is enough: all others end well."""
    if launcher == TORCHRUN and not replaced:
        pytest.skip("PyTorch's agent may leave the survivor as it is for minutes")
    port = free_port()
    path = script("train.py", FIRST_ROUND_WAITS)
    options = [*multi(nodes, 1), "--max-restarts=2", "--rdzv-endpoint=localhost:%d" % port]
    keeps = start(path, *options)
    harness.wait_until(lambda: listens(port), timeout=30, what="who hosts the rendezvous")
    lost = start(path, *options)
    for node in (keeps, lost):
        node.wait_for_line("^waits", stream="stdout")
    children = [process.pid for process in lost.processes() if process.parent == lost.pid]
    lost.send_signal(signal.SIGKILL)
    if launcher == TORCHRUN:  # its workers live on without it
        for child in children:
            os.kill(child, signal.SIGKILL)
    lost.wait()
    others = [keeps] + ([start(path, *options)] if replaced else [])
    results = [launchers.wait(launcher, one) for one in others]
    if launcher == OURS:
        assert [result.returncode for result in results] == [0] * len(others), results


# What PyTorch asks of a rendezvous backend over a store: test_c10d_rendezvous_backend's TCPStoreBackendTest.
BACKEND = """\
import datetime, sys
import torch.distributed as dist
from torch.distributed.elastic.rendezvous import RendezvousStateError
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
store = dist.TCPStore("localhost", int(sys.argv[1]), is_master=False, timeout=datetime.timedelta(seconds=20))
backend = C10dRendezvousBackend(store, "job")
assert backend.get_state() is None
state, token, is_set = backend.set_state(b"x")
assert (state, is_set) == (b"x", True)
assert backend.get_state() == (b"x", token)
second, newer, is_set = backend.set_state(b"y", token)
assert (second, is_set) == (b"y", True) and newer != token
assert backend.set_state(b"z", token) == (b"y", newer, False)
assert backend.set_state(b"z") == (b"y", newer, False)
store.set("torch.rendezvous.job", "no base64 at all, with a blank at the end! ")
try:
    backend.get_state()
except RendezvousStateError:
    print("corrupt state is refused", flush=True)
import os; os._exit(0)
"""


def test_the_c10d_backend_over_a_store_of_elastic_run(elastic_run, script):
    served = elastic_run.start("--store-only", "--port=0")
    port = served.wait_for_line(r"port (\d+)").group(1)
    result = elastic_run.start(script("backend.py", BACKEND), port, program=["python3"]).wait()
    assert (result.returncode, result.stdout) == (0, "corrupt state is refused\n"), result
    served.send_signal(signal.SIGTERM)
    assert served.wait().returncode == 0
