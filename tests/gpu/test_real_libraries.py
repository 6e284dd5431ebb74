"""The real NCCL and cuBLASLt, as far as they go without a GPU: of the tests' Python, of CUDA's toolkit, and of the
virtual environments that ELASTIC_RUN_REAL_LIBRARIES names (separated by colons): the wheels of CUDA 12 and 13 differ.

    python3 -m venv /tmp/cu12 && /tmp/cu12/bin/pip install --no-deps nvidia-nccl-cu12 nvidia-cublas-cu12
    python3 -m venv /tmp/cu13 && /tmp/cu13/bin/pip install --no-deps nvidia-nccl-cu13 nvidia-cublas
"""

import glob
import json
import os
import pathlib
import sys

import pytest

TOOLKIT = "/usr/local/cuda/lib64"
ENVIRONMENTS = [sys.prefix, *filter(None, os.environ.get("ELASTIC_RUN_REAL_LIBRARIES", "").split(":"))]
NAMES = {"nccl": "libnccl.so.2", "cublaslt": "libcublasLt.so.1[0-9]"}


def in_packages(environment, what):
    """This searches by itself, not by elastic-run's code."""
    return [path for path in glob.glob(f"{environment}/lib/python3*/site-packages/nvidia/**/{NAMES[what]}", recursive=True)
            if os.path.isfile(path)]


def installed(what):
    found = [path for environment in ENVIRONMENTS for path in in_packages(environment, what)]
    return sorted({os.path.realpath(path) for path in found + glob.glob(f"{TOOLKIT}/{NAMES[what]}")})


def paths(what):
    missing = pytest.param(None, marks=pytest.mark.skip(reason=f"there is no real {NAMES[what]} here"), id="none")
    return [pytest.param(path, id="-".join(pathlib.Path(path).parts[-4:])) for path in installed(what)] or [missing]


def built(elastic_run, path):
    """The path of a file in the build directory; skips the test where only the tested programs are there."""
    found = elastic_run.binary.parent / path
    if not found.exists():
        pytest.skip(f"there is no {path} beside elastic-run")
    return found


def held_to_it(elastic_run, what, path):
    program = built(elastic_run, "tests/gpu/real_gpu_libraries")
    result = elastic_run.start(what, path, program=[program], env={"NCCL_SOCKET_IFNAME": "lo"}).wait()
    assert result.returncode == 0, result
    assert result.stdout.splitlines()[-1].startswith("version ")


@pytest.mark.parametrize("path", paths("nccl"))
def test_nccl_is_as_it_is_declared(elastic_run, path):
    if glob.glob("/dev/nvidia[0-9]*"):
        pytest.skip("with a driver a communicator is made: tests/gpu/test_nodes.py")
    held_to_it(elastic_run, "nccl", path)


@pytest.mark.parametrize("path", paths("cublaslt"))
def test_cublaslt_takes_our_numbers_for_what_they_are(elastic_run, path):
    held_to_it(elastic_run, "cublaslt", path)


def test_the_toolkits_stub_of_the_driver_is_no_driver(elastic_run):
    import gpu_probe

    stub = f"{TOOLKIT}/stubs/libcuda.so"
    if not os.path.exists(stub):
        pytest.skip(f"there is no {stub}")
    device = gpu_probe.Probe(elastic_run)
    assert device.open(cuda=[stub]) == {"unavailable": f"{stub} is the CUDA toolkit's stub, not the driver"}
    assert device.close().returncode == 0


def look(elastic_run, script, tmp_path, **env):
    """What health.json says of a node by itself, with the driver's stand-in: with that real libraries can neither compute
    nor gather, and a node by itself need not gather."""
    import gpu_probe

    built(elastic_run, "tests/stand_ins/gpu")
    result = elastic_run("--network-check", "--nnodes=1", f"--log-dir={tmp_path}/logs", script("nothing.py", ""), env={
        "LD_LIBRARY_PATH": str(gpu_probe.libraries(elastic_run)), "ELASTIC_RUN_PROBE_PRODUCT": "128",
        "STAND_IN_GPU_FACTS": str(gpu_probe.facts_file(tmp_path, devices=1)), "ELASTIC_RUN_PROBE_GPUS": "1"} | env)
    assert result.returncode == 0, result
    report, = (tmp_path / "logs").glob("*/health.json")
    return json.loads(report.read_text())["nodes"][0]["gpu"]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_libraries_of_the_workers_python_are_found_where_its_wheels_have_them(elastic_run, script, tmp_path, environment):
    wanted = {what: in_packages(environment, what) for what in NAMES}
    if not all(wanted.values()):
        pytest.skip(f"the packages of {environment} have not both of NCCL and cuBLASLt")
    assert all(len(found) == 1 for found in wanted.values()), wanted
    gpu = look(elastic_run, script, tmp_path, PATH=f"{environment}/bin:/usr/bin:/bin")
    assert ([gpu["nccl_path"]], [gpu["cublaslt_path"]]) == (wanted["nccl"], wanted["cublaslt"])


def test_libraries_in_pythonpath_come_before_those_of_the_python(elastic_run, script, tmp_path):
    """Stand-ins in a directory from which the workers' Python imports."""
    import gpu_probe

    stand_ins = gpu_probe.libraries(elastic_run)
    wanted = [tmp_path / "extra/nvidia/nccl/lib/libnccl.so.2", tmp_path / "extra/nvidia/cu13/lib/libcublasLt.so.13"]
    for path in wanted:
        path.parent.mkdir(parents=True)
        path.symlink_to(stand_ins / path.name)
    gpu = look(elastic_run, script, tmp_path, PYTHONPATH=str(tmp_path / "extra"))
    assert [gpu["nccl_path"], gpu["cublaslt_path"]] == [str(path) for path in wanted]
