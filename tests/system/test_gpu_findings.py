"""Every finding about GPUs through the whole program: stand-in libraries, a made sysfs and a file in the place of the
kernel log cause each of them once."""
# ctest: release-only

import pathlib
import re
import time

import pytest

from test_many_nodes import job  # noqa: F401 (a fixture)
from test_network_check_gpu import gpus, of_node  # noqa: F401 (a fixture)

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOW_US = 10**6 * 60  # after the end of a test that begins now

# What is found in each test here, by its name in the table; `gpu-drivers` no NVML can cause: it has one driver for all.
WORN_OUT = {"gpu-remap", "gpu-pcie-width", "gpu-pcie-gen", "nvlink-down", "nvlink-some", "nvlink-errors", "nvlink-errors-old",
            "gpu-hot", "gpu-power-brake", "gpu-slowdown", "gpu-persistence", "gpu-mig", "gpu-fabric", "gpu-models",
            "gpu-xid-suspect", "gpu-xid-old", "gpu-xid-other", "gpu-nic-sys", "gpu-nic-far"}
OTHER_NODE = {"gpu-few", "nodes-gpu", "nodes-driver", "nodes-cuda", "nodes-nccl", "nodes-cublaslt"}
BROKEN = {"gpu-lost", "gpu-reset", "gpu-ecc", "gpu-remap-failed", "gpu-memory", "gpu-fabric-failed", "gpu-xid"}
NOT_BY_NVML = {"gpu-drivers"}


def rows():
    """The names of the table's rows by severity and remedy, which are what a finding has of them."""
    text = (ROOT / "health/gpu/gpu_thresholds.h").read_text()
    found = re.findall(r'GpuThreshold\{\s*GpuRule::\w+,\s*"([^"]+)",.*?Severity::k(\w+),\s*((?:"[^"]*"\s*)+)\}', text, re.DOTALL)
    names = {(severity.lower(), "".join(re.findall('"([^"]*)"', remedy))): name for name, severity, remedy in found}
    assert len(names) == len(found), "two rows have the same severity and remedy"
    return names


def named(findings):
    """What is found by name; findings of the host itself are others."""
    table = rows()
    return {table[key]: each for each in findings if (key := (each["severity"], each["remedy"])) in table}


@pytest.fixture
def root(tmp_path):
    """root(name, xids, gpus, ports): a directory in the place of "/", with lines of the kernel log and a sysfs."""
    def make(name, xids=(), gpus=(), ports=()):
        made = tmp_path / name
        (made / "dev").mkdir(parents=True)
        (made / "dev/kmsg").write_text("".join(
            f"3,{number},{time_us},-;NVRM: Xid (PCI:{device}): {xid}, pid=7, name=python3, x\n"
            for number, (time_us, device, xid) in enumerate(xids)))
        for bus_id, above, numa in gpus:
            device = made / "sys/devices" / above / bus_id
            device.mkdir(parents=True)
            (device / "numa_node").write_text(f"{numa}\n")
            links = made / "sys/bus/pci/devices"
            links.mkdir(parents=True, exist_ok=True)
            (links / bus_id).symlink_to(device)
        for port, above, numa, rate in ports:
            device = made / "sys/devices" / above
            device.mkdir(parents=True, exist_ok=True)
            (device / "numa_node").write_text(f"{numa}\n")
            place = made / "sys/class/infiniband" / port
            (place / "ports/1").mkdir(parents=True)
            (place / "device").symlink_to(device)
            (place / "ports/1/state").write_text("4: ACTIVE\n")
            (place / "ports/1/link_layer").write_text("InfiniBand\n")
            (place / "ports/1/rate").write_text(f"{rate}\n")
            (device / "vendor").write_text("0x15b3\n")
            (device / "device").write_text("0x1021\n")
        return {"ELASTIC_RUN_PROBE_ROOT": str(made)}
    return make


def since_boot_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) // 1000


def test_every_finding_with_which_a_node_trains_is_told(gpus, root):
    """Of five GPUs of two models; what of theirs shows only in work is so only once their device is open."""
    switch = "pci0000:17/0000:17:01.0/0000:18:00.0"
    own = root("ill", xids=[(1, "0000:1a:00", 94), (since_boot_us() + NOW_US, "0000:1b:00", 63),
                            (since_boot_us() + NOW_US, "0000:1b:00", 999), (since_boot_us() + NOW_US, "0000:77:00", 79)],
               gpus=[("0000:1a:00.0", f"{switch}/0000:19:00.0", 0), ("0000:1b:00.0", f"{switch}/0000:19:01.0", 0),
                     ("0000:1c:00.0", f"{switch}/0000:19:02.0", 0), ("0000:1d:00.0", "pci0000:30/0000:30:01.0", 0),
                     ("0000:1e:00.0", "pci0000:80/0000:80:01.0", 1)],
               ports=[("mlx5_0", f"{switch}/0000:19:04.0/0000:20:00.0", 0, "400 Gb/sec (4X NDR)"),
                      ("mlx5_1", f"{switch}/0000:19:05.0/0000:21:00.0", 0, "400 Gb/sec (4X NDR)"),
                      ("mlx5_2", f"{switch}/0000:19:06.0/0000:22:00.0", 0, "200 Gb/sec (2X NDR)")])
    facts = {"devices": 5, "name": "NVIDIA A100", "_0_name": "NVIDIA H100", "_1_name": "NVIDIA H100",
             "driver_version": "570.1", "cuda_version": 12080, "nccl_version": 22105, "cublaslt_version": 130100,
             "_0_remap_pending": 1, "_0_opened.nvlinks": "up:7 up:0", "nvlinks": "up:0 down:0", "_0_nvlinks": "up:0 up:0",
             "_1_opened.throttle_reasons": 0x40, "_1_opened.temperature_c": 92, "_2_throttle_reasons": 0x80,
             "_2_nvlinks": "up:3 down:0", "_3_throttle_reasons": 0x08, "_3_pcie_width": 8, "_3_persistence": 0, "_4_mig": 1,
             "_4_fabric_state": 2, "_4_opened.pcie_gen": 3, "opened.memory_used_bytes": 70 * 2**30}
    found = gpus(2, facts={1: facts}, env={0: {"ELASTIC_RUN_PROBE_GPUS": "1"}, 1: own | {"ELASTIC_RUN_PROBE_GPUS": "5"}})
    assert found.codes == [0, 0], found.told
    ill = of_node(found.report, found.nodes[1])
    told = named(ill["findings"])
    assert set(told) == WORN_OUT | (OTHER_NODE - {"gpu-few"}), ill["findings"]
    other = named(of_node(found.report, found.nodes[0])["findings"])
    assert set(other) == OTHER_NODE, found.report
    assert told["nvlink-errors"]["what"] == "NVLink 0 counted errors during the check"
    assert told["gpu-hot"] | {"remedy": ""} == {"severity": "warning", "what": "its clocks are throttled by heat, at 92 °C",
                                                "where": "GPU 1 (0000:1b:00.0)", "remedy": "", "name": "gpu-hot"}
    assert told["gpu-pcie-gen"]["what"] == "right after load its PCIe link was at generation 3, wanted 5"
    lanes = [each["where"] for each in ill["findings"] if "2X NDR" in each["what"]]
    assert lanes == ["/sys/class/infiniband/mlx5_2/ports/1"]
    assert (told["gpu-nic-far"]["where"], told["gpu-nic-sys"]["where"]) == ("GPU 0000:1d:00.0", "GPU 0000:1e:00.0")
    assert ill["gpu"]["nearest_ports"] == [
        {"gpu": f"0000:1{digit}:00.0", "distance": distance, "port": "mlx5_0 port 1"}
        for digit, distance in zip("abcde", ["PIX", "PIX", "PIX", "NODE", "SYS"])]


def test_every_finding_with_which_no_node_can_train_makes_its_node_faulty(gpus, root):
    own = root("broken", xids=[(since_boot_us() + NOW_US, "0000:1a:00", 79)])
    facts = {"devices": 7, "_1_lost": 1, "_2_needs_reset": 1, "_3_ecc_uncorrectable": 3, "_4_remap_failed": 1,
             "_5_memory_used_bytes": 70 * 2**30, "_5_holders": "42:70000000000:/usr/bin/python3", "_6_fabric_status": 999}
    found = gpus(2, facts={1: facts}, env={1: own | {"ELASTIC_RUN_PROBE_GPUS": "7"}}, nnodes="1:2")
    assert found.codes == [0, 1], found.told
    ill = of_node(found.report, found.nodes[1])
    told = named(ill["findings"])
    assert set(told) == BROKEN, ill["findings"]
    assert ill["verdict"] == "faulty" and ill["why"] == "GPU 1: its driver cannot reach it any more"
    assert "python3 (pid 42, 65.2 GiB)" in told["gpu-memory"]["what"]
    assert told["gpu-xid"]["where"] == "PCI:0000:1a:00"


def test_the_causes_of_failed_work_are_asked_for(gpus):
    """One GPU is lost while it works, with its probe: another probe tells. One cannot be opened: the driver knows why; of
    GPUs that the workers do not see nothing is said."""
    found = gpus(3, faults={1: "crash_in_product@d0", 2: "open_fails=214@d1"},
                 facts={1: {"opened.lost": 0, "_0_opened.lost": 1},
                        2: {"devices": 4, "_1_ecc_uncorrectable": 3, "_3_needs_reset": 1}}, nnodes="1:3")
    assert found.codes == [0, 1, 1], found.told
    lost, ecc = (of_node(found.report, node) for node in found.nodes[1:])
    assert lost["why"] == "GPU 0: its driver cannot reach it any more", lost
    assert ecc["why"] == "GPU 1 (0000:1b:00.0): 3 uncorrectable ECC errors since the last reset, wanted 0", ecc
    assert set(named(ecc["findings"])) == {"gpu-ecc"}


def test_an_xid_while_nodes_meet_makes_its_node_faulty(gpus, root):
    """With one GPU each, so that NCCL is first used in the tests of pairs, which pass. It is said once."""
    own = root("ill", xids=[(1, "0000:1a:00", 79)])
    log = own["ELASTIC_RUN_PROBE_ROOT"] + "/dev/kmsg"
    found = gpus(3, faults={2: "xid=79"}, env={2: own | {"STAND_IN_GPU_KMSG": log}}, nnodes="2:3", two=False)
    assert found.codes == [0, 0, 1], found.told
    ill = of_node(found.report, found.nodes[2])
    assert ill["verdict"] == "faulty" and ill["why"].startswith("Xid 79: "), ill
    assert [each["severity"] for each in ill["findings"] if "Xid 79" in each["what"]] == ["note", "fatal"], ill
    assert all(pair["passed"] for pair in found.report["pairs"])


def test_all_rows_of_the_table_are_caused_here():
    assert set(rows().values()) == WORN_OUT | OTHER_NODE | BROKEN | NOT_BY_NVML
# ctest: gate
