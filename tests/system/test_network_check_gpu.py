"""--network-check with GPUs, for which the tests' libraries stand in: what fails there is found and named."""
# ctest: long
# ctest: release-only
# ctest: clock
# ctest: computes

import json
import os
import re
import sys

import gpu_probe
import pytest

from test_many_nodes import job  # noqa: F401 (a fixture)
from test_network_check import codes

SHARE = 65536  # bytes of each GPU


@pytest.fixture
def gpus(job, tmp_path):  # noqa: F811
    """gpus(count, faults={node: faults}, ...): so many nodes of a check, of two GPUs each, run to their end. Each step may
    take `limit_s`: less is for what hangs."""
    def run(count, *arguments, faults=None, facts=None, env=None, two=True, nnodes=None, limit_s=60):
        told = facts or {}
        logs = tmp_path / "logs"
        nodes = []
        for node in range(count):
            devices = {"devices": 2 if two else 1} | told.get(node, told.get("all", {}))
            variables = {"LD_LIBRARY_PATH": str(gpu_probe.libraries(job.elastic_run)),
                         "ELASTIC_RUN_PROBE_GPUS": "2" if two else "1", "ELASTIC_RUN_PROBE_PRODUCT": "128",
                         "ELASTIC_RUN_PROBE_BYTES": str(SHARE), "NETWORK_CHECK_TIMEOUT": str(limit_s),
                         "STAND_IN_GPU_FACTS": str(gpu_probe.facts_file(tmp_path, **devices)),
                         "STAND_IN_GPU_FAULTS": (faults or {}).get(node)} | (env or {}).get(node, {})
            more = ["--log-dir", str(logs)] if node == 0 else ["--log-dir=/dev/null"]
            # Workers without Python, whose own packages would come first.
            nodes.append(job.node("--network-check", *more, *arguments, "--no-python", nnodes=nnodes or f"{count}",
                                  nproc=2 if two else 1, script="true", conf="last_call_timeout=30", env=variables))
            if node == 0 and count > 1:
                nodes[0].wait_for_line("this node hosts the coordinator")
        run.codes = codes(nodes, timeout=220)
        run.nodes = nodes
        run.told = nodes[0].stderr.text
        written = list(logs.glob("*/health.json"))
        run.report = json.loads(written[0].read_text()) if written else None
        return run

    return run


def rank_of(node):
    return int(re.search(r"this is node (\d)", node.stderr.text).group(1))


def of_node(report, node):
    return report["nodes"][rank_of(node)]


def test_gpus_compute_and_gather_within_nodes_and_between_them(gpus):
    found = gpus(2)
    assert found.codes == [0, 0], found.told
    for node in found.report["nodes"]:
        gpu = node["gpu"]
        assert gpu["gpus"] == 2 and "libnccl" in gpu["nccl_path"] and gpu["nccl"], gpu
        for figure in ["product_ms", "tflops", "memory_gbps", "host_to_device_gbps", "device_to_host_gbps", "node_ms"]:
            assert gpu[figure] > 0, (figure, gpu)
        assert node["compute_ms"] == gpu["product_ms"]
    first = found.report["pairs"][0]
    assert (first["gpu_ranks"], first["gpu_bytes"]) == (4, SHARE)
    assert first["gpu_busbw_gbps"] == pytest.approx(3 * SHARE / first["gpu_ms"] / 1e6)
    assert found.report["judged_by"] == "nccl"


def test_without_a_driver_nothing_is_wrong_with_a_node_and_one_line_says_why(gpus, tmp_path):
    """On one of two nodes: there is no libcuda.so.1, and the exchange over TCP takes the place of NCCL's."""
    (tmp_path / "empty").mkdir()
    found = gpus(2, "--check-policy=first", env={1: {"LD_LIBRARY_PATH": str(tmp_path / "empty")}}, nnodes="2")
    assert found.codes == [0, 0], found.told
    finding, = [each for each in of_node(found.report, found.nodes[1])["findings"] if "GPUs are not tested" in each["what"]]
    assert finding["severity"] == "note" and "libcuda.so.1" in finding["what"], finding
    assert all(pair["gpu_ms"] is None and pair["passed"] for pair in found.report["pairs"])


@pytest.mark.parametrize("fault, why", [
    ("product_wrong@d1", "GPU 1: the product is wrong: element .3, 17. is 35, not 33"),
    ("crash_in_product@d0", "GPU 0: its probe was killed by SIGSEGV"),
    ("gather_wrong@d1", "the all-gather of its own GPUs over NCCL failed: GPU [01]: "),
])
def test_what_a_gpu_does_wrong_by_itself_makes_its_node_faulty(gpus, fault, why):
    found = gpus(3, faults={2: fault}, nnodes="2:3")
    assert found.codes == [0, 0, 1], found.told
    assert re.search(why, found.nodes[2].stderr.text), found.nodes[2].stderr.text
    assert of_node(found.report, found.nodes[2])["verdict"] == "faulty"


@pytest.mark.parametrize("fault", ["hang_in_gather", "crash_in_gather"])
def test_what_fails_between_nodes_names_the_one_that_it_fails_with(gpus, fault):
    """With one GPU each, so that NCCL is first used in the tests of pairs."""
    found = gpus(3, faults={2: fault}, nnodes="2:3", two=False, limit_s=10 if "hang" in fault else 60)
    assert found.codes == [0, 0, 1], found.told
    assert "its exchange failed" in found.nodes[2].stderr.text, found.nodes[2].stderr.text


def test_a_failure_in_the_collective_of_two_nodes_is_heard_at_once_by_the_other(gpus):
    """Far before any deadline: those are a day away."""
    found = gpus(3, faults={2: "init_fails"}, nnodes="2:3", two=False,
                 env={node: {"NETWORK_CHECK_TIMEOUT": "86400"} for node in range(3)})
    assert found.codes == [0, 0, 1], found.told
    assert "the all-gather over NCCL failed: GPU 0: NCCL initialization: " in found.nodes[2].stderr.text
    assert all(pair["gpu_ms"] for pair in found.report["pairs"] if rank_of(found.nodes[2]) not in (pair["low"], pair["high"]))


@pytest.mark.parametrize("fault, why", [
    ("driver_fails=802", "GPU 0: .*CUDA_ERROR_SYSTEM_NOT_READY"),
    ("init_fails", "the all-gather of its own GPUs over NCCL failed: GPU [01]: "),
])
def test_a_gpu_test_that_fails_on_all_nodes_is_told_once_and_nobody_is_left_out(gpus, fault, why):
    found = gpus(3, faults=dict.fromkeys(range(3), fault))
    assert found.codes == [0, 0, 0], found.told
    told = re.findall("the GPU test failed on all 3 nodes.*", found.told)
    assert len(told) == 1 and "nodes 0-2" in found.told, found.told
    assert re.search(f"node 0: {why}", told[0]), told
    assert "ELASTIC_RUN_PROBE_GPUS=off" in re.sub(r"\s+", " ", found.told)
    assert all(pair["passed"] and pair["gpu_ms"] is None for pair in found.report["pairs"])
    assert found.report["judged_by"] == "tcp" and found.report["faulty"] == []
    # Their processors were measured in the place of GPUs: on a machine with other work one of them may look slow.
    assert {node["verdict"] for node in found.report["nodes"]} <= {"fit", "slow"}


def test_what_is_the_gpus_own_fault_is_no_excuse_though_all_nodes_have_it(gpus):
    assert gpus(2, faults=dict.fromkeys(range(2), "open_fails=214")).codes == [1, 1]


def test_nccl_that_fails_between_all_nodes_leaves_the_verdict_to_tcp(gpus):
    found = gpus(2, faults={0: "init_fails", 1: "init_fails"}, two=False)
    assert found.codes == [0, 0], found.told
    assert found.told.count("the all-gather over NCCL failed between all 2 nodes") == 1, found.told
    assert all(pair["passed"] and "NCCL initialization" in pair["gpu_why_not"] for pair in found.report["pairs"])


def test_one_node_alone_is_told_how_to_do_without_the_gpu_test(gpus):
    found = gpus(1, faults={0: "init_fails"})
    assert found.codes == [1]
    assert "if training works, set ELASTIC_RUN_PROBE_GPUS=off" in re.sub(r"\s+", " ", found.told)


@pytest.mark.skipif(os.path.exists("/proc/driver/nvidia") or os.path.exists("/dev/nvidia0"), reason="this host has a driver")
def test_without_a_driver_no_gpu_is_tested_unasked_and_nothing_is_said(gpus, tmp_path):
    """Though the libraries are there: nobody looks for them, and the program that would is not started."""
    probe = tmp_path / "probe"
    probe.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    probe.chmod(0o755)
    found = gpus(2, f"--probe-path={probe}", env={node: {"ELASTIC_RUN_PROBE_GPUS": None} for node in range(2)})
    assert found.codes == [0, 0], found.told
    assert not (tmp_path / "started").exists()
    assert not re.search("GPU|NCCL|nvidia", found.told), found.told
    assert [node["gpu"] for node in found.report["nodes"]] == [None, None]


def test_memory_that_is_in_use_is_told_in_dlrovers_words(gpus):
    found = gpus(2, "--log-level=info", facts={1: {"memory_used_bytes": 60 << 30}}, nnodes="1:2")
    assert found.codes == [0, 1], found.told
    assert found.told.count("The node's GPU basic check failed.") == 1, found.told


def test_a_gpu_that_hangs_in_its_product_is_killed_and_its_node_named(gpus):
    found = gpus(3, faults={2: "hang_in_product@d0"}, nnodes="2:3", limit_s=10)
    assert found.codes == [0, 0, 1], found.told
    assert "GPU 0: its probe did not answer within" in found.nodes[2].stderr.text


def test_a_slow_gpu_makes_a_straggler_by_its_own_product(gpus):
    found = gpus(3, faults={2: "slow=64@d1"})
    assert found.codes == [0, 0, 0], found.told
    slow = of_node(found.report, found.nodes[2])
    assert slow["slow_in_compute"] and slow["verdict"] == "slow", slow
    assert [node["slow_in_compute"] for node in found.report["nodes"]].count(True) == 1


def test_nodes_with_different_nccls_are_told_and_meet_over_tcp(gpus):
    found = gpus(3, facts={2: {"nccl_version": 22105}})
    assert found.codes == [0, 0, 0], found.told
    other = of_node(found.report, found.nodes[2])
    assert any("NCCL" in finding["what"] for finding in other["findings"]), other
    for pair in found.report["pairs"]:
        assert pair["passed"]
        assert (pair["gpu_ms"] is None) == (rank_of(found.nodes[2]) in (pair["low"], pair["high"])), pair


def test_a_library_that_is_named_is_the_one_that_is_tested_with(gpus, job, tmp_path):  # noqa: F811
    """One without a function that is needed: NCCL is not tested, and a note says why."""
    broken = gpu_probe.without(gpu_probe.libraries(job.elastic_run) / "libnccl.so.2", ["ncclAllGather"], tmp_path)
    found = gpus(2, f"--nccl-lib={broken}")
    assert found.codes == [0, 0], found.told
    for node in found.report["nodes"] if found.report else []:
        assert any("NCCL is not tested" in each["what"] and "ncclAllGather" in each["what"] for each in node["findings"]), node
    assert all(pair["gpu_ms"] is None for pair in found.report["pairs"])


def test_nccl_without_dev_shm_says_so_in_its_own_words(gpus, tmp_path):
    found = gpus(2, env={1: {"STAND_IN_GPU_SHM": str(tmp_path / "nowhere")}}, nnodes="1:2")
    assert found.codes == [0, 1], found.told
    assert str(tmp_path / "nowhere") in found.nodes[1].stderr.text, found.nodes[1].stderr.text


def test_a_program_that_is_named_takes_the_place_of_the_probe(gpus, script):
    probe = script("probe", f"#!{sys.executable}\n" + """\
import json, os, socket, sys
with socket.socket(fileno=1) as channel:
    for line in channel.makefile("rb"):
        channel.sendall(json.dumps({"unavailable": "this is " + line.split(b"=")[1].split(b"\\t")[0].decode()}).encode() + b"\\n")
os._exit(0)
""")
    found = gpus(2, f"--probe-path={probe}")
    assert found.codes == [0, 0], found.told
    for node in found.report["nodes"]:
        assert [each["what"] for each in node["findings"] if "GPUs" in each["what"]] == ["GPUs are not tested: GPU 1: this is open"]


def test_what_nvml_knows_stands_among_the_findings(gpus):
    found = gpus(2, facts={1: {"ecc_uncorrectable": 3, "_1_name": "NVIDIA A100"}}, nnodes="1:2")
    assert found.codes == [0, 1], found.told
    assert "ECC" in found.nodes[1].stderr.text, found.nodes[1].stderr.text


def test_no_gpu_is_looked_for_where_an_accelerator_of_another_kind_is_named(job, tmp_path):  # noqa: F811
    node = job.node("--network-check", "--accelerator=ascend-npu", nnodes="1:2", script_arguments=["0"])
    assert codes([node]) == [0]
    assert "such devices are not tested" in node.stderr.text
