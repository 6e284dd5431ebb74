"""--numa-binding, --numa-affinity and --membind-policy in running workers, and what happens where the kernel refuses.

Where a test needs NUMA nodes and GPUs that this machine has not, a mount namespace shows elastic-run files that have
them; the CPUs are the machine's own."""

import ast
import json
import os
import pathlib
import platform

import harness
import numa_trees
import pytest

GET_MEMPOLICY = {"x86_64": 239, "aarch64": 236}.get(platform.machine())
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}.get(platform.machine())
SCHED_SETAFFINITY = {"x86_64": 203, "aarch64": 122}.get(platform.machine())
DEFAULT, PREFERRED, BIND = 0, 1, 2  # the kernel's MPOL_*

# Prints (restart, rank, CPUs, memory policy, its NUMA nodes, CPUs of the launcher). In the rounds before the last, rank 0
# fails when the others have printed theirs.
WORKER = f"""
import ctypes, os, pathlib, re, signal, sys, time
def cpus(pid):
    return re.search(r"Cpus_allowed_list:\\t(.*)", open(f"/proc/{{pid}}/status").read())[1]
policy, nodes = ctypes.c_int(-1), (ctypes.c_ulong * 16)()
ctypes.CDLL(None).syscall({GET_MEMPOLICY}, ctypes.byref(policy), nodes, 1024, None, 0)
restart = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
place = (restart, int(os.environ["RANK"]), cpus("self"), policy.value,
         [node for node in range(1024) if nodes[node // 64] >> node % 64 & 1], cpus(os.getppid()))
os.write(1, f"{{place}}\\n".encode())  # at once: the ranks share a pipe
if restart < int(os.environ["TORCHELASTIC_MAX_RESTARTS"]):
    pathlib.Path(f"{{restart}}.{{os.environ['RANK']}}").touch()
    while os.environ["RANK"] != "0":
        signal.pause()
    while not all(os.path.exists(f"{{restart}}.{{rank}}") for rank in range(int(os.environ["WORLD_SIZE"]))):
        time.sleep(0.01)
    sys.exit(1)
"""
QUIET = {"OMP_NUM_THREADS": "1"}

ALLOWED = sorted(os.sched_getaffinity(0))


@pytest.fixture
def worker(script):
    return script("worker.py", WORKER)


def told(result):
    """By restart and rank: (CPUs, memory policy, NUMA nodes, CPUs of the launcher)."""
    lines = [ast.literal_eval(line) for line in result.stdout.splitlines() if line.startswith("(")]
    return {line[:2]: line[2:] for line in lines}


def warnings(result):
    return [line for line in result.stderr.splitlines() if ": warning: " in line]


@pytest.fixture
def on(tmp_path, elastic_run):
    """on(host): the command line of elastic-run on a host with these files."""
    if os.geteuid() != 0:
        pytest.skip("only root makes namespaces and mounts")

    def see(made):
        root = tmp_path / "host"
        numa_trees.write(root, made)
        mounts = {"sys/devices/system/node": "/sys/devices/system/node", "sys/devices/system/cpu": "/sys/devices/system/cpu",
                  "sys/bus/pci/devices": "/sys/bus/pci/devices", "proc/driver": "/proc/driver"}
        if missing := [place for place in mounts.values() if not os.path.isdir(place)]:
            pytest.skip(f"this kernel has no {', '.join(missing)}")
        mount = " && ".join(f"mount --bind '{root}/{files}' {place}" for files, place in mounts.items())
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{mount} && exec "$@"', "sh",
                elastic_run.binary]
    return see


@pytest.fixture
def two_nodes():
    """A host of two NUMA nodes, each with one of the CPUs that there are, and with the GPUs 0 and 1 at the nodes 1 and 0."""
    if len(ALLOWED) < 2:
        pytest.skip("needs two CPUs")
    made = numa_trees.host(2, 1, 1, 2, 1)
    made.cpus = {node: [ALLOWED[node]] for node in (0, 1)}
    made.siblings = {ALLOWED[node]: [ALLOWED[node]] for node in (0, 1)}
    made.socket = {ALLOWED[node]: node for node in (0, 1)}
    made.caches = {ALLOWED[node]: [("Unified", 3, [ALLOWED[node]])] for node in (0, 1)}
    made.gpus = [1, 0]
    return made


@pytest.mark.parametrize("mode", ["node", "socket", "exclusive", "core-complex"])
def test_each_worker_runs_on_the_cpus_of_its_gpu_in_every_round(elastic_run, on, two_nodes, worker, mode):
    """The launcher itself keeps all CPUs; without --numa-affinity memory is left alone."""
    result = elastic_run(f"--numa-binding={mode}", "--nproc-per-node=2", "--max-restarts=1", worker,
                         program=on(two_nodes), env=QUIET)
    assert result.returncode == 0, result
    all_cpus = numa_trees.ranges(ALLOWED)
    assert told(result) == {(restart, rank): (str(ALLOWED[1 - rank]), DEFAULT, [], all_cpus)
                            for restart in (0, 1) for rank in (0, 1)}
    assert [line for line in warnings(result) if "bound" in line] == []


@pytest.mark.parametrize("named", ["1,0", f"{numa_trees.uuid(1)},{numa_trees.uuid(0)}"])
def test_cuda_visible_devices_says_which_gpu_a_rank_has(elastic_run, on, two_nodes, worker, named):
    result = elastic_run("--numa-binding=node", "--nproc-per-node=2", worker, program=on(two_nodes),
                         env=QUIET | {"CUDA_VISIBLE_DEVICES": named})
    assert [cpus for cpus, *_ in map(told(result).get, [(0, 0), (0, 1)])] == [str(cpu) for cpu in ALLOWED[:2]], result


def test_without_a_gpu_workers_are_bound_by_local_rank(elastic_run, on, two_nodes, worker):
    result = elastic_run("--numa-binding=exclusive", "--nproc-per-node=2", worker, program=on(two_nodes),
                         env=QUIET | {"CUDA_VISIBLE_DEVICES": ""})
    assert result.returncode == 0 and warnings(result) == [], result
    assert {rank: cpus for (_, rank), (cpus, *_) in told(result).items()} == {0: str(ALLOWED[0]), 1: str(ALLOWED[1])}


@pytest.mark.parametrize("policy, wanted", [(None, PREFERRED), ("preferred", PREFERRED), ("bind", BIND), ("none", DEFAULT)])
def test_numa_affinity_sets_the_memory_policy(elastic_run, worker, policy, wanted):
    """On the machine's own NUMA node."""
    if not os.path.isdir("/sys/devices/system/node/node0") or os.path.isdir("/sys/devices/system/node/node1"):
        pytest.skip("needs a kernel with NUMA, and one node")
    options = [f"--membind-policy={policy}"] if policy else []
    result = elastic_run("--numa-affinity", *options, worker, env=QUIET)
    assert result.returncode == 0 and warnings(result) == [], result
    cpus = numa_trees.ranges(ALLOWED)
    assert told(result) == {(0, 0): (cpus, wanted, [] if wanted == DEFAULT else [0], cpus)}


def test_the_dry_run_shows_the_cpus_and_the_memory_of_each_rank(elastic_run, on, two_nodes, worker):
    options = ["--numa-affinity", "--membind-policy=bind", "--nproc-per-node=2", worker]
    program = on(two_nodes)
    result = elastic_run("--dry-run", *options, program=program, env=QUIET)
    assert result.returncode == 0 and result.stderr == "", result
    for rank in (0, 1):
        assert f"  CPU {ALLOWED[1 - rank]}; memory of NUMA node {1 - rank} only\n" in result.stdout.split("\nlocal rank ")[rank + 1]
    planned = json.loads(elastic_run("--dry-run=json", *options, program=program, env=QUIET).stdout)
    assert planned["plan"]["NUMA binding"] == {"value": "node, by GPU", "origin": "command line: --numa-affinity"}
    assert [each["binding"] for each in planned["workers"]] == [
        {"cpus": [ALLOWED[1 - rank]], "memory_policy": "bind", "memory_nodes": [1 - rank]} for rank in (0, 1)]


# --- What cannot be set costs a warning, once, and not the job

@pytest.mark.parametrize("call, what", [(SCHED_SETAFFINITY, "the CPUs of local ranks 0-1 are not bound"),
                                        (SET_MEMPOLICY, "the memory of local ranks 0-1 is not bound")])
def test_a_binding_that_a_filter_forbids_costs_one_warning(elastic_run, refusing, worker, call, what):
    result = elastic_run("--numa-affinity", "--nproc-per-node=2", "--max-restarts=1", worker, env=QUIET,
                         program=[*refusing(f"1 {call}"), elastic_run.binary])
    assert result.returncode == 0, result
    assert [line for line in warnings(result) if "bound" in line] == [
        f"elastic-run: warning: {what}: Operation not permitted; a filter (seccomp), or the kernel, does not allow "
        f"{'sched_setaffinity' if call == SCHED_SETAFFINITY else 'set_mempolicy'}()"]
    assert len(told(result)) == 4


def test_memory_of_a_node_that_the_cpuset_lacks_costs_one_warning(elastic_run, on, two_nodes, worker):
    """The files have a second NUMA node, and the kernel has none."""
    if os.path.isdir("/sys/devices/system/node/node1"):
        pytest.skip("the kernel has a second NUMA node")
    result = elastic_run("--numa-affinity", "--nproc-per-node=2", "--max-restarts=1", worker, program=on(two_nodes), env=QUIET)
    assert result.returncode == 0, result
    assert [line for line in warnings(result) if "bound" in line] == [
        "elastic-run: warning: the memory of local rank 0 is not bound: Invalid argument; its cpuset has no memory of its "
        "NUMA nodes"]
    assert [told(result)[1, rank][:3] for rank in (0, 1)] == [(str(ALLOWED[1]), DEFAULT, []), (str(ALLOWED[0]), PREFERRED, [0])]


def test_cpus_that_the_cpuset_lacks_cost_one_warning(elastic_run, on, two_nodes, worker):
    result = elastic_run("--numa-binding=node", "--nproc-per-node=2", worker, program=on(two_nodes), env=QUIET,
                         preexec_fn=lambda: os.sched_setaffinity(0, {ALLOWED[0]}))
    assert result.returncode == 0, result
    assert warnings(result) == [
        "elastic-run: warning: --numa-binding=node: the CPUs of local rank 0 are not bound: elastic-run may use CPU "
        f"{ALLOWED[0]} only, and NUMA node 1 has {ALLOWED[1]}"]
    assert [told(result)[0, rank][0] for rank in (0, 1)] == [str(ALLOWED[0])] * 2


@pytest.fixture
def cpuset(elastic_run):
    """The directory of a cpuset of its own, with the CPUs that we have (cgroup v1)."""
    above = pathlib.Path("/sys/fs/cgroup/cpuset")
    if len(ALLOWED) < 2 or not os.access(above / "cpuset.mems", os.W_OK):
        pytest.skip("needs two CPUs and a hierarchy of cpusets in which it may write")
    made = above / f"elastic-run-{elastic_run.marker}"
    made.mkdir()
    (made / "cpuset.cpus").write_text(numa_trees.ranges(ALLOWED))
    (made / "cpuset.mems").write_text((above / "cpuset.mems").read_text())
    yield made
    elastic_run.kill_all()
    harness.wait_until(lambda: not (made / "cgroup.procs").read_text())
    made.rmdir()


def test_cpus_that_the_cpuset_loses_between_two_rounds_cost_one_warning(elastic_run, cpuset, script):
    """What each rank gets is settled at the start; the first round takes one of the CPUs away."""
    losing = script("losing.py", f"open({str(cpuset / 'cpuset.cpus')!r}, 'w').write('{ALLOWED[0]}')\n" + WORKER)
    result = elastic_run("--numa-binding=exclusive", "--nproc-per-node=2", "--max-restarts=2", losing,
                         env=QUIET | {"CUDA_VISIBLE_DEVICES": ""},
                         preexec_fn=lambda: (cpuset / "cgroup.procs").write_text(str(os.getpid())))
    assert result.returncode == 0, result
    lost = told(result)[2, 1][0]
    assert lost == str(ALLOWED[0])
    assert [line for line in warnings(result) if "bound" in line] == [
        "elastic-run: warning: the CPUs of local rank 1 are not bound: Invalid argument; its cpuset has none of them"]
