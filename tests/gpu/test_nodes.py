"""--network-check on a real GPU: several nodes use one GPU, over the loopback interface, and faults are found and named."""

import json
import os
import re
import signal

import gpu_probe
import pytest
from harness import read_process, wait_until
from test_many_nodes import Job

GIB = 1 << 30


@pytest.fixture
def nodes(gpu, elastic_run, script, facts, tmp_path):
    """nodes(count, env={node: changes}, nnodes=...): starts so many nodes on GPU 0, the first with the coordinator. Returns
    `codes`, `told` and `report` when they have ended."""
    job = Job(elastic_run, script)
    # The workers' Python says which NCCL is used; the stand-ins are found by the loader.
    worker = {"script": "true"} if gpu.is_stand_in else {"script": script("nothing.py", "")}
    arguments = ["--no-python"] if gpu.is_stand_in else []

    class Nodes:
        def __init__(self, count, env=None, nnodes=None):
            self.logs = tmp_path / "logs"
            self.running = []
            for number in range(count):
                logs = self.logs if number == 0 else "/dev/null"
                variables = gpu.node(number) | facts() | {"ELASTIC_RUN_PROBE_GPUS": "1"} | (env or {}).get(number, {})
                self.running.append(job.node("--network-check", f"--log-dir={logs}", *arguments, nnodes=nnodes or f"{count}",
                                             conf="last_call_timeout=30", env=variables, **worker))
                if number == 0 and count > 1:
                    self.running[0].wait_for_line("this node hosts the coordinator")

        def end(self):
            self.codes = [node.wait(110).returncode for node in self.running]
            self.told = "\n".join(node.stderr.text for node in self.running)
            written = list(self.logs.glob("*/health.json"))
            self.report = json.loads(written[0].read_text()) if written else None
            return self

    return Nodes


@pytest.mark.parametrize("count", [2, 4])
def test_nodes_on_one_gpu_compute_and_gather_over_nccl(gpu, nodes, count):
    found = nodes(count).end()
    assert found.codes == [0] * count, found.told
    assert found.report["faulty"] == found.report["undetermined"] == [], found.report
    for node in found.report["nodes"]:
        told = node["gpu"]
        assert (told["gpus"], told["model"]) == (1, gpu.name) and "libnccl" in told["nccl_path"], told
        for figure in ("product_ms", "tflops", "memory_gbps", "host_to_device_gbps", "device_to_host_gbps"):
            assert told[figure] > 0, (figure, told)
    assert len(found.report["pairs"]) >= count // 2
    for pair in found.report["pairs"]:
        assert pair["passed"] and pair["gpu_ranks"] == 2 and pair["gpu_ms"] > 0, pair


def test_settings_of_nccl_reach_it_by_nccl_settings_too(nodes):
    """NCCL_SETTINGS works as in DLRover: without it both nodes would be one host for NCCL."""
    env = {number: {"NCCL_HOSTID": None, "NCCL_SETTINGS": f"NCCL_HOSTID=by-settings-{number}"} for number in range(2)}
    found = nodes(2, env=env).end()
    assert found.codes == [0, 0], found.told
    assert all(pair["gpu_ms"] for pair in found.report["pairs"]), found.report


def test_nodes_that_are_one_host_to_nccl_may_not_share_a_gpu_and_its_words_say_so(nodes):
    found = nodes(2, env={number: {"NCCL_HOSTID": "the-same"} for number in range(2)}).end()
    assert "Duplicate GPU detected" in found.told, found.told


def descendants(pid, processes):
    """The process and all its descendants."""
    found = {pid}
    while more := {process.pid for process in processes if process.parent in found} - found:
        found |= more
    return found


def test_a_node_that_dies_in_the_middle_of_its_check_does_not_stop_the_others(nodes):
    """All processes of a node are killed at once, as soon as its probe uses the GPU."""
    found = nodes(3, nnodes="2:3", env={2: {"STAND_IN_GPU_FAULTS": "hang_in_product"}})  # only the stand-ins read it
    dying = found.running[2]

    def with_probe():
        all_of_it = descendants(dying.pid, dying.processes())
        return all_of_it if any((process := read_process(pid)) and process.command.startswith("elastic-gpu-probe")
                                for pid in all_of_it) else None

    # The outer process is killed first, since it would report that the others died.
    for pid in sorted(wait_until(with_probe, timeout=60, what="a probe"), key=lambda pid: pid != dying.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    found.end()
    assert found.codes[:2] == [0, 0], found.told
    assert found.codes[2] == -signal.SIGKILL


@pytest.mark.parametrize("moment", ["initialisation", "gather"])
def test_a_rank_that_dies_in_nccl_is_an_error_of_the_other_which_lives_on(gpu, probe, moment):
    """A gibibyte over sockets takes long enough to be killed meanwhile."""
    options = {"env": {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": "/dev/stderr"}}  # line by line
    if gpu.is_stand_in:
        options = {"faults": "hang_in_gather@r1"}
    first, second = probe(0, **options), probe(1, **options)
    id = first.ask({"do": "id"})["id"]
    size = gpu_probe.SHARE if gpu.is_stand_in else GIB
    deadline_ms = 20000 if moment == "gather" else 4000  # only the deadline notices a rank that never comes
    first.send(gpu_probe.gather(0, 2, id, deadline_ms=deadline_ms, size=size))
    if moment == "gather":
        second.send(gpu_probe.gather(1, 2, id, deadline_ms=20000, size=size))
        if gpu.is_stand_in:
            assert second.is_silent(0.3)
        else:
            second.running.wait_for_line("Init COMPLETE", timeout=60)
    second.running.send_signal(signal.SIGKILL)
    second.running.wait()
    reply = first.receive()
    assert re.search("NCCL initialization|the all-gather", reply["failed"]), reply
    assert "devices" in first.ask({"do": "facts"})


def test_a_gpu_that_is_not_there_is_named(gpu, nodes):
    """A node is told to test one GPU more than there are."""
    found = nodes(2, env={1: {"ELASTIC_RUN_PROBE_GPUS": f"{gpu.devices + 1}"}}, nnodes="1:2").end()
    assert found.codes == [0, 0], found.told
    assert sum(f"there is no device {gpu.devices}: the CUDA driver reports {gpu.devices}" in finding["what"]
               for node in found.report["nodes"] for finding in node["findings"]) == 1, found.report


def test_with_no_visible_gpu_nothing_is_wrong_and_a_note_says_why(nodes):
    found = nodes(2, env={1: {"CUDA_VISIBLE_DEVICES": "99"}}, nnodes="2").end()
    assert found.codes == [0, 0], found.told
    assert sum("the CUDA driver reports no device" in finding["what"] for node in found.report["nodes"]
               for finding in node["findings"]) == 1, found.report


def test_a_gpu_whose_memory_is_taken_makes_its_node_faulty(gpu, nodes, facts, hold):
    size = gpu.memory_bytes * 2 // 5
    env = {}
    if gpu.is_stand_in:
        env = facts(memory_used_bytes=size, holders=f"42:{size}:/usr/bin/python3")
    else:
        _, held = hold(size)
        assert held == size
    found = nodes(1, env={0: env}).end()
    assert found.codes == [1], found.told
    assert re.search(r"GiB of memory are in use \(4\d %\)", found.told), found.told


def test_a_product_for_which_there_is_no_memory_fails_by_cudas_name_for_it(gpu, probe, hold):
    device = probe(faults="no_memory" if gpu.is_stand_in else None)
    if not gpu.is_stand_in:
        hold(-(300 << 20))
    assert device.ask({"do": "compute"}) == {"failed": "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"}
