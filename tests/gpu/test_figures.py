"""Compares what the probe measures and reads with the chip's data sheet and with nvidia-smi."""

import shutil
import subprocess

import gpu_probe
import pytest

# By the beginning of the name that the driver gives: TFLOP/s in bfloat16 without sparsity, memory in 10^9 bytes/s. From
# NVIDIA's data sheets (nvidia.com/en-us/data-center: H200, H100, A100, A30, A10, L40S, L4; HGX B200), where those with
# sparsity are twice as much. A longer name goes before a shorter one.
KNOWN = {
    "NVIDIA B200": (2250, 8000),
    "NVIDIA H200 NVL": (835.5, 4800),
    "NVIDIA H200": (989.5, 4800),
    "NVIDIA H100 80GB HBM3": (989.5, 3350),
    "NVIDIA H100 NVL": (835.5, 3900),
    "NVIDIA H100 PCIe": (756, 2000),
    "NVIDIA A100-SXM4-80GB": (312, 2039),
    "NVIDIA A100 80GB PCIe": (312, 1935),
    "NVIDIA A100-SXM4-40GB": (312, 1555),
    "NVIDIA A100-PCIE-40GB": (312, 1555),
    "NVIDIA A30": (165, 933),
    "NVIDIA A10": (125, 600),
    "NVIDIA L40S": (362, 864),
    "NVIDIA L4": (121, 300),
}


def known_rates(name):
    fitting = [known for known in KNOWN if name.startswith(known)]
    return KNOWN[max(fitting, key=len)] if fitting else None


def test_product_and_memory_are_as_fast_as_the_chip_is_known_to_be(gpu, probe):
    """At least half of the data sheet's figure, since power limits and clocks differ, and at most 5 % above it."""
    rates = known_rates(gpu.name)
    if rates is None:
        pytest.skip(f"no rates are known of {gpu.name}: add them to KNOWN of tests/gpu/test_figures.py")
    told = probe().ask({"do": "compute"})
    print(told)
    assert told.get("ok"), told
    for figure, rate in zip(("tflops", "memory_gbps"), rates):
        assert 0.5 * rate <= told[figure] <= 1.05 * rate, (figure, rate, told)


def test_copies_from_and_to_the_host_are_those_of_pcie_or_better(gpu, probe):
    """At least 3 GB/s, which PCIe of generation 3 with four lanes reaches; at most 900, NVLink's to a Grace processor."""
    told = probe().ask({"do": "compute"})
    print(told)
    for figure in ("host_to_device_gbps", "device_to_host_gbps"):
        assert 3 <= told[figure] <= 900, (gpu.name, told)


def test_a_product_is_right_and_as_fast_when_it_is_asked_for_again(probe):
    device = probe()
    first, second = (device.ask({"do": "compute"}) for _ in range(2))
    assert second["tflops"] == pytest.approx(first["tflops"], rel=0.2), (first, second)


def test_a_rank_alone_gathers_what_it_has(probe):
    device = probe()
    for _ in range(2):
        reply = device.ask(gpu_probe.gather(0, 1, device.ask({"do": "id"})["id"]))
        assert reply.get("ok") and reply["ms"] > 0 and reply["latency_us"] > 0, reply


# --- NVML

# nvidia-smi's name, our name, and how nvidia-smi's value is read. Where nvidia-smi has "[N/A]", we must not have the member.
FACTS = [
    ("name", "name", str),
    ("pci.bus_id", "bus_id", lambda text: text[-12:].lower()),
    ("driver_version", "driver_version", str),
    ("ecc.errors.uncorrected.volatile.total", "ecc_uncorrectable", int),
    ("pcie.link.width.current", "pcie_width", int),
    ("pcie.link.width.max", "pcie_max_width", int),
    ("pcie.link.gen.max", "pcie_max_gen", int),
    ("persistence_mode", "persistence", lambda text: text == "Enabled"),
    ("mig.mode.current", "mig", lambda text: text == "Enabled"),
]
MEMORY = [("memory.total", "memory_bytes"), ("memory.used", "memory_used_bytes")]  # in MiB


def ask_nvidia_smi(names):
    done = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(["uuid", *names]), "--format=csv,noheader,nounits"],
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        pytest.skip(f"nvidia-smi does not tell: {done.stdout.strip() or done.stderr.strip()}")
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return {row[0]: dict(zip(names, row[1:])) for row in rows}


def is_told(text):
    return not text.startswith("[") and text != "N/A"


@pytest.fixture
def both(gpu, rehearsed, probe):
    """For each GPU, nvidia-smi's values and the probe's facts."""
    if not shutil.which("nvidia-smi"):
        pytest.skip("no nvidia-smi on PATH")
    ours = probe().ask({"do": "facts"})["devices"]
    theirs = ask_nvidia_smi([name for name, *_ in FACTS + MEMORY] + ["temperature.gpu", "power.draw"])
    assert {one["uuid"] for one in ours} == set(theirs)
    return [(theirs[one["uuid"]], one) for one in ours]


def test_facts_are_those_of_nvidia_smi(both):
    for theirs, ours in both:
        wanted = {our: read(theirs[name]) for name, our, read in FACTS if is_told(theirs[name])}
        assert {name: ours.get(name) for name in wanted} == wanted


def test_memory_temperature_and_power_are_those_of_nvidia_smi(both):
    """They are read at different moments, so they may differ a little."""
    for theirs, ours in both:
        for name, our in MEMORY:
            if is_told(theirs[name]):
                assert ours[our] == pytest.approx(int(theirs[name]) * 2**20, abs=2**30), (name, theirs, ours)
        if is_told(theirs["temperature.gpu"]):
            assert abs(ours["temperature_c"] - int(theirs["temperature.gpu"])) <= 10, (theirs, ours)
        if is_told(theirs["power.draw"]):
            assert abs(ours["power_mw"] / 1000 - float(theirs["power.draw"])) <= 100, (theirs, ours)


def test_a_program_that_holds_memory_is_among_the_holders(rehearsed, probe, hold):
    pid, size = hold(1 << 30)
    holders = [holder for device in probe().ask({"do": "facts"})["devices"] for holder in device.get("holders", [])]
    if pid not in [holder["pid"] for holder in holders]:
        pytest.skip(f"NVML shows no process {pid}: it counts them in another namespace, or does not see them: {holders}")
    assert [holder["bytes"] >= size for holder in holders if holder["pid"] == pid] == [True], holders
