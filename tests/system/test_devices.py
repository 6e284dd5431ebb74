"""Devices of AMD, Intel and Huawei: how many workers they make, and which one a virtual local rank sees.

This machine has none: a mount namespace shows elastic-run the files of a host that has them."""
# ctest: gate

import os
import pathlib

import pytest

SH = ("--no-python", "sh", "-c")
# Says in one write which devices it sees.
TELL = ('echo "$RANK/$LOCAL_WORLD_SIZE: ${CUDA_VISIBLE_DEVICES-none} ${ROCR_VISIBLE_DEVICES-none} '
        '${HIP_VISIBLE_DEVICES-none} ${ZE_AFFINITY_MASK-none} ${ASCEND_RT_VISIBLE_DEVICES-none}"')
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")


def amd(count):
    """The files of ROCm's kernel driver with so many GPUs. Node 0 is the processor, and GPU n has the UUID GPU-...a<n>."""
    nodes = "sys/class/kfd/kfd/topology/nodes"
    files = {"dev/kfd": "", f"{nodes}/0/gpu_id": "0", f"{nodes}/0/properties": "simd_count 0\ndrm_render_minor 0"}
    for gpu in range(count):
        files[f"{nodes}/{gpu + 1}/gpu_id"] = f"{4000 + gpu}"
        files[f"{nodes}/{gpu + 1}/properties"] = (
            f"simd_count 304\nlocation_id {gpu + 1 << 8}\ndomain 0\ndrm_render_minor {128 + gpu}\nunique_id {0xa0 + gpu}")
        files[f"sys/bus/pci/devices/0000:{gpu + 1:02x}:00.0/class"] = "0x030000"
        files[f"dev/dri/renderD{128 + gpu}"] = ""
    return files


def intel(*addresses, driver="xe"):
    files = {}
    for number, address in enumerate(addresses, 128):
        device = f"sys/bus/pci/devices/{address}"
        files |= {f"{device}/vendor": "0x8086", f"{device}/class": "0x038000", f"{device}/driver": pathlib.Path(driver),
                  f"{device}/drm/renderD{number}/dev": "", f"dev/dri/renderD{number}": ""}
    return files


@pytest.fixture
def on(tmp_path, elastic_run):
    """on(files): the command line of elastic-run on a host that has these devices, and none of NVIDIA. A path as the value
    is that of a link."""
    if os.geteuid() != 0:
        pytest.skip("only root makes namespaces and mounts")
    places = [place for place in ("/sys/class", "/sys/bus/pci/devices", "/proc/driver") if os.path.isdir(place)]
    if len(places) < 3:
        pytest.skip(f"this kernel has only {', '.join(places)}")

    def see(files):
        root = tmp_path / "host"
        for name in [*(place[1:] for place in places), "dev"]:
            (root / name).mkdir(parents=True, exist_ok=True)
        for name, value in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(value, pathlib.Path):
                (root / name).symlink_to(value)
            else:
                (root / name).write_text(f"{value}\n")
        mounts = [(root / place[1:], place) for place in places]
        for name in filter(lambda name: os.path.exists(f"/dev/{name}"), DEVICES):
            (root / "dev" / name).mkdir() if os.path.isdir(f"/dev/{name}") else (root / "dev" / name).touch()
            mounts.append((f"/dev/{name}", root / "dev" / name))
        mount = "".join(f"mount --bind '{source}' '{place}' && " for source, place in mounts)
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                f"{mount} mount --rbind '{root}/dev' /dev && exec \"$@\"", "sh", elastic_run.binary]
    return see


def told(elastic_run, program, *options, env=None):
    """What the workers see, by local rank."""
    result = elastic_run(*options, *SH, TELL, program=program, env={"OMP_NUM_THREADS": "1"} | (env or {}))
    assert result.returncode == 0, result
    lines = sorted(result.stdout.splitlines())
    assert [line.split(":")[0] for line in lines] == [f"{line.split('/')[0]}/{len(lines)}" for line in lines], result
    return [line.split(": ")[1] for line in lines]


def test_gpu_and_auto_count_amds_gpus(elastic_run, on):
    program = on(amd(3))
    for word in ("gpu", "auto"):
        assert told(elastic_run, program, f"--nproc-per-node={word}") == ["none none none none none"] * 3
    assert len(told(elastic_run, program, "--nproc-per-node=gpu", env={"ROCR_VISIBLE_DEVICES": "2,GPU-00000000000000A0",
                                                                       "HIP_VISIBLE_DEVICES": "1"})) == 1
    result = elastic_run("--nproc-per-node=gpu", *SH, "true", program=program, env={"ROCR_VISIBLE_DEVICES": "3"})
    assert (result.returncode, result.stderr) == (
        2, "elastic-run: error: --nproc-per-node=gpu: no AMD GPU is visible with ROCR_VISIBLE_DEVICES=3; "
           "give the number of workers, or use auto or cpu\n")


def test_auto_does_not_count_the_gpu_of_an_amd_processor(elastic_run, on):
    program = on(amd(1) | {"sys/bus/pci/devices/0000:01:00.2/vendor": "0x1022"})
    assert len(told(elastic_run, program, "--nproc-per-node=gpu")) == 1
    assert "(no GPU is visible)" in elastic_run("--dry-run", "--nproc-per-node=auto", *SH, "true", program=program).stdout


def test_xpu_counts_intels_gpus(elastic_run, on):
    program = on(intel("0000:29:00.0", "0000:3a:00.0", "0000:00:02.0"))
    for word in ("xpu", "auto"):
        assert len(told(elastic_run, program, f"--nproc-per-node={word}")) == 2
    assert len(told(elastic_run, program, "--nproc-per-node=xpu", env={"ZE_AFFINITY_MASK": "1"})) == 1
    result = elastic_run("--nproc-per-node=xpu", *SH, "true", program=program, env={"ZE_AFFINITY_MASK": "9"})
    assert (result.returncode, result.stderr) == (
        2, "elastic-run: error: --nproc-per-node=xpu: no Intel GPU is visible with ZE_AFFINITY_MASK=9; "
           "give the number of workers, or use auto or cpu\n")


@pytest.mark.parametrize("files, env, seen", [
    (amd(2), {}, ["0 none 0 none none", "1 none 1 none none"]),
    (amd(4), {"ROCR_VISIBLE_DEVICES": "3,2"}, ["0 3,2 0 none none", "1 3,2 1 none none"]),
    (amd(4), {"HIP_VISIBLE_DEVICES": "3,2"}, ["3 none 3 none none", "2 none 2 none none"]),
    (intel("0000:29:00.0", "0000:3a:00.0"), {}, ["0 none none 0 none", "1 none none 1 none"]),
    (intel("0000:29:00.0"), {"ZE_AFFINITY_MASK": "0.0,0.1"}, ["0 none none 0.0 none", "1 none none 0.1 none"]),
    ({"dev/davinci0": "", "dev/davinci1": ""}, {}, ["0 none none none 0", "1 none none none 1"]),
    ({"dev/davinci0": ""}, {"ASCEND_RT_VISIBLE_DEVICES": "4,6"}, ["0 none none none 4", "1 none none none 6"]),
], ids=["AMD", "AMD, by ROCR's list", "AMD, by HIP's list", "Intel", "Intel, by tiles", "Ascend", "Ascend, by a list"])
def test_a_virtual_local_rank_sees_one_device_of_amd_intel_or_ascend(elastic_run, on, files, env, seen):
    assert told(elastic_run, on(files), "--virtual-local-rank", "--nproc-per-node=2", env=env) == seen
