"""Started by srun: what is taken from SLURM_*, how nodes meet by it, and who gets which signal.

There is no Slurm here: its environment is replayed as it was seen in a real step. test_slurm.py runs a real one.
"""
# ctest: clock

import contextlib
import json
import os
import random
import re
import signal
import socket
import threading

import pytest

from harness import PATIENCE, PATIENT, HarnessError, wait_until

TERM, USR1 = signal.SIGTERM, signal.SIGUSR1

# Says who it is and writes down each signal; ends by SIGTERM, or with the argument.
WORKER = """
import os, signal, sys
names = ["RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"]
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
os.write(1, f"env {' '.join(os.environ[name] for name in names)} {os.getpid()}\\n".encode())
if len(sys.argv) > 1:
    sys.exit(int(sys.argv[1]))
ends = False
while True:
    # What has come already is told before the end.
    got = signal.sigtimedwait([signal.SIGTERM, signal.SIGUSR1], 1.5) if ends else \
        signal.sigwaitinfo([signal.SIGTERM, signal.SIGUSR1])
    if got is None:
        break
    os.write(1, f"got {signal.Signals(got.si_signo).name}\\n".encode())
    ends = ends or got.si_signo == signal.SIGTERM
"""


class Step:
    """A step of Slurm, each of whose nodes is this host."""

    def __init__(self, elastic_run, script):
        self.elastic_run = elastic_run
        self.worker = script("worker.py", WORKER)
        self.job = random.randrange(1000, 1_000_000)
        self.nodes = 3

    def environment(self, node=0, **changed):
        hosts = "localhost" if self.nodes == 1 else f"localhost,n[02-{self.nodes:02}]"
        found = {"SLURM_JOB_ID": self.job, "SLURM_STEP_ID": 0, "SLURM_STEP_NUM_NODES": self.nodes,
                 "SLURM_STEP_NODELIST": hosts, "SLURM_STEP_TASKS_PER_NODE": f"1(x{self.nodes})", "SLURM_NODEID": node,
                 "SLURM_LOCALID": 0, "SLURM_PROCID": node, "SLURM_NNODES": 8, "SLURM_JOB_NODELIST": "wrong[1-8]",
                 "OMP_NUM_THREADS": 1} | changed
        return {name: None if value is None else str(value) for name, value in found.items()}

    def ports(self):
        return [20000 + (self.job * 37 + i * 2048) % 8192 for i in range(4)]

    def start(self, *arguments, node=0, script_arguments=(), **changed):
        return self.elastic_run.start("--log-level=info", *arguments, self.worker, *script_arguments,
                                      env=self.environment(node, **changed))

    def start_all(self, *arguments, **options):
        return [self.start(*arguments, node=node, **options) for node in range(self.nodes)]


@pytest.fixture
def step(elastic_run, script):
    return Step(elastic_run, script)


def said(node):
    """What a worker said of itself: rank, world size, workers on the node, node rank, id, restarts, pid."""
    return node.wait_for_line(r"^env (.*)", stream="stdout").group(1).split()


def statuses(nodes):
    return [node.wait().returncode for node in nodes]


def signal_every_process(number, *nodes):
    """As Slurm does on each node: workers first, then the launcher, then the outer process. All are looked up before
    the first is signalled, so that the nodes get their signals at one time, however slow this machine is. A launcher may
    have ended because its worker has."""
    pids = []
    for running in nodes:
        processes = running.processes()
        launchers = [process.pid for process in processes if process.parent == running.pid]
        pids += [process.pid for process in processes if process.parent in launchers] + launchers + [running.pid]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def count(result, number):
    return result.stdout.count(f"got {number.name}\n")


# --- What is taken

def plan(elastic_run, step, *arguments, **changed):
    result = elastic_run("--dry-run=json", *arguments, "--no-python", "true", env=step.environment(1, **changed))
    assert result.returncode == 0, result
    return json.loads(result.stdout)


def test_the_plan_says_what_came_from_where(elastic_run, step):
    step.job = 1234
    entries = plan(elastic_run, step, SLURM_GPUS_ON_NODE=2)["plan"]
    assert entries["nodes"] == {"value": "3", "origin": "Slurm: SLURM_STEP_NUM_NODES=3"}
    assert entries["node rank"] == {"value": "1", "origin": "Slurm: SLURM_NODEID=1"}
    assert entries["endpoint"]["value"] == f"localhost:{step.ports()[0]}"
    assert entries["endpoint"]["origin"].startswith("Slurm: first host of SLURM_STEP_NODELIST=localhost,n[02-03]")
    assert entries["job id"] == {"value": "slurm-1234.0", "origin": "Slurm: SLURM_JOB_ID=1234 SLURM_STEP_ID=0"}
    assert entries["workers on this node"] == {"value": "2", "origin": "Slurm: SLURM_GPUS_ON_NODE=2"}
    assert entries["coordinator"]["value"].startswith("another node: this is node 1 of the step")


@pytest.mark.parametrize("conf, waits", [((), False), (("--rdzv-conf=join_timeout=40",), True)], ids=["default", "told"])
def test_a_lost_node_is_not_waited_for_unless_the_user_says_so(elastic_run, step, conf, waits):
    entries = plan(elastic_run, step, *conf)["plan"]
    assert entries["waits"]["value"].startswith("40 s for the minimum" if waits else "600 s for the minimum")
    assert ("wait below the minimum" in entries) is not waits
    if not waits:
        assert entries["wait below the minimum"]["origin"].startswith("Slurm"), entries


def test_explicit_flags_win_each_by_itself(elastic_run, step):
    entries = plan(elastic_run, step, "--nnodes=2:3", SLURM_GPUS_ON_NODE=2, PET_NPROC_PER_NODE=5)["plan"]
    assert entries["nodes"] == {"value": "2:3", "origin": "command line: --nnodes=2:3"}
    assert entries["workers on this node"] == {"value": "5", "origin": "environment: PET_NPROC_PER_NODE"}
    assert entries["endpoint"]["origin"].startswith("Slurm")


def test_a_rendezvous_of_the_users_own_goes_on_as_ever(elastic_run, step):
    entries = plan(elastic_run, step, "--nnodes=3", "--node_rank=1", "--rdzv_backend=c10d", "--rdzv_id=7",
                   "--rdzv_endpoint=localhost:29501", SLURM_GPUS_ON_NODE=2, SLURM_HET_SIZE=2)["plan"]
    assert not [name for name, entry in entries.items() if entry["origin"].startswith("Slurm") and name != "signals for the workers"]
    assert entries["workers on this node"] == {"value": "1", "origin": "default"}
    assert "ports" not in entries


@pytest.mark.parametrize("step_id", [None, "4294967290"], ids=["batch script", "shell of salloc"])
def test_without_a_step_nothing_is_taken_and_one_line_says_so(elastic_run, step, step_id):
    result = elastic_run("--no-python", "true", env=step.environment(SLURM_STEP_ID=step_id))
    assert result.returncode == 0, result
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and f"Slurm job {step.job}: this is its batch script or a shell of salloc" in lines[0], result


def test_a_heterogeneous_job_is_refused_with_the_reason(elastic_run, step):
    result = elastic_run("--no-python", "true", env=step.environment(SLURM_HET_SIZE=2))
    assert result.returncode == 2 and "it is a heterogeneous job" in result.stderr, result


# --- How nodes meet

def test_a_step_of_three_nodes_just_works(step):
    nodes = list(reversed([step.start(node=node, script_arguments=["0"]) for node in (2, 1, 0)]))
    found = [said(node)[:5] for node in nodes]
    assert statuses(nodes) == [0, 0, 0]
    assert found == [[str(rank), "3", "1", str(rank), f"slurm-{step.job}.0"] for rank in range(3)]


def test_a_port_that_a_stranger_has_is_passed_over_by_all(step, stranger):
    taken = stranger(step.ports()[0])
    nodes = [step.start(node=1, script_arguments=["0"]), step.start(node=2, script_arguments=["0"])]
    assert taken.visited.wait(PATIENCE)
    nodes.append(step.start(node=0, script_arguments=["0"]))
    nodes[-1].wait_for_line(f"hosts the coordinator at port {step.ports()[1]}")
    assert statuses(nodes) == [0, 0, 0]


@pytest.fixture
def stranger():
    """Listens at a port, and says to each visitor what no coordinator would."""
    opened = []

    class Listener:
        def __init__(self, port):
            self.socket = socket.create_server(("", port))
            self.visited = threading.Event()
            self.thread = threading.Thread(target=self.serve)
            self.thread.start()
            opened.append(self)

        def serve(self):
            while True:
                try:
                    visitor, _ = self.socket.accept()
                except OSError:  # the end
                    return
                with visitor:
                    visitor.sendall(b"SSH-2.0-nobody\r\n")
                self.visited.set()

    yield Listener
    for listener in opened:
        listener.socket.shutdown(socket.SHUT_RDWR)
        listener.thread.join()
        listener.socket.close()


def test_a_requeued_job_does_not_meet_its_ghost(step):
    ghost = step.start_all()
    assert [said(node)[4] for node in ghost] == [f"slurm-{step.job}.0"] * 3
    again = step.start_all(script_arguments=["0"], SLURM_RESTART_COUNT=1)
    found = [said(node) for node in again]
    assert {each[4] for each in found} == {f"slurm-{step.job}.0-restart1"} and {each[1] for each in found} == {"3"}
    assert statuses(again) == [0, 0, 0]
    for node in ghost:
        node.send_signal(TERM)
    assert statuses(ghost) == [1, 1, 1]


# --- Several tasks on a node

@pytest.mark.parametrize("code", [0, 1])
def test_of_several_tasks_on_a_node_one_launches_and_all_end_as_it_does(step, code):
    step.nodes = 1
    tasks = [step.start(script_arguments=[str(code)], SLURM_LOCALID=index, SLURM_STEP_TASKS_PER_NODE="3")
             for index in (1, 0, 2)]
    results = [task.wait() for task in tasks]
    assert [result.returncode for result in results] == [code] * 3, results
    assert sum(result.stdout.count("env ") for result in results) == 1
    assert "waits for task 0" in results[0].stderr and "waits for task 0" in results[2].stderr


def test_waiting_tasks_outlast_the_signals_that_the_whole_step_gets(step):
    step.nodes = 1
    first, other = [step.start(SLURM_LOCALID=index, SLURM_STEP_TASKS_PER_NODE="2") for index in (0, 1)]
    said(first)
    other.wait_for_line("waits for task 0")
    other.send_signal(TERM)
    other.send_signal(USR1)
    signal_every_process(TERM, first)
    assert statuses([first, other]) == [1, 1]


# --- Signals

WHOM = pytest.mark.parametrize("whom", ["every process", "the outer process"])


def until_all_are_signalled(whom):
    """Where every process gets the signal, the last one may get it late on a busy machine; the others wait for that."""
    return PATIENT if whom == "every process" else {}


@WHOM
def test_a_warning_reaches_each_worker_exactly_once(step, whom):
    step.nodes = 1
    running = step.start("--nproc-per-node=2", **until_all_are_signalled(whom))
    for _ in range(2):
        said(running)
    if whom == "every process":
        signal_every_process(USR1, running)
    else:
        running.send_signal(USR1)
    for _ in range(2):
        running.wait_for_line("^got SIGUSR1", stream="stdout")
    signal_every_process(TERM, running)  # both come to their end, and what else was to come has come
    result = running.wait()
    assert result.returncode == 1 and count(result, USR1) == 2, result


@WHOM
def test_a_cancelled_step_ends_in_order_and_each_worker_gets_sigterm_once(step, whom):
    nodes = step.start_all(**until_all_are_signalled(whom))
    for node in nodes:
        said(node)
    if whom == "every process":
        signal_every_process(TERM, *nodes)
    else:
        for node in nodes:
            node.send_signal(TERM)
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [1, 1, 1], results
    assert [count(result, TERM) for result in results] == [1, 1, 1], results


def test_one_order_to_stop_leaves_the_whole_time_however_often_it_comes(step, script):
    step.nodes = 1
    step.worker = script("slow.py", """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
os.write(1, b"env up\\n")
signal.sigwaitinfo([signal.SIGTERM])
os.write(1, b"got SIGTERM\\n")
signal.sigwaitinfo([signal.SIGUSR1])
os.write(1, b"ends by itself\\n")
""")
    running = step.start()
    said(running)
    signal_every_process(TERM, running)
    running.wait_for_line("^got SIGTERM", stream="stdout")
    with pytest.raises(HarnessError):
        wait_until(lambda: not running.processes(), timeout=1.5, what="never")
    running.send_signal(TERM)
    signal_every_process(USR1, running)
    result = running.wait()
    assert result.returncode == 1 and "ends by itself" in result.stdout, result


# --- How it ends

def test_a_node_that_is_lost_ends_the_step_at_once_and_is_named(step):
    nodes = step.start_all("--nnodes=3")
    for node in nodes:
        said(node)
    os.kill(nodes[2].launcher(), signal.SIGKILL)
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [1, 1, 1], results
    for result in results[:2]:
        assert re.search(r"node 2 \(.*\) was lost: .*; 2 nodes, 3 required; not waiting for a replacement "
                         r"\(--nnodes=3\)",
                         result.stderr), result


def test_a_worker_can_say_that_a_requeue_is_of_no_use(step):
    step.nodes = 2
    nodes = [step.start("--max-restarts=3", node=0, script_arguments=["93"]), step.start("--max-restarts=3", node=1)]
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [93, 93], results
    assert all("the job is not to be started again" in result.stderr for result in results), results
