"""The tests on a GPU: all are skipped, with the reason, where there is none. They need Python and pytest, and of a build
`elastic-run` and `elastic-gpu-probe` in one directory: no compiler, no network, no PyTorch; README.md says how.

ELASTIC_RUN_GPU_REHEARSAL=1 takes the stand-ins of tests/stand_ins/gpu for NVIDIA's libraries: that shows that the tests
work, and nothing of a GPU."""

import dataclasses
import glob
import importlib.util
import os
import pathlib
import site
import sys
import sysconfig

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SYSTEM = HERE.parent / "system"
sys.path[:0] = [str(HERE), str(SYSTEM), str(HERE.parent)]
import driver  # noqa: E402

os.environ.setdefault("ELASTIC_RUN_BINARY", str(ROOT / "build/release/elastic-run"))

_spec = importlib.util.spec_from_file_location("system_conftest", SYSTEM / "conftest.py")
_system = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_system)
time_limit, elastic_run, script = _system.time_limit, _system.elastic_run, _system.script

REHEARSAL = os.environ.get("ELASTIC_RUN_GPU_REHEARSAL") == "1"
STAND_INS = pathlib.Path(os.environ["ELASTIC_RUN_BINARY"]).parent / "tests/stand_ins/gpu"
# Directories of the driver's libraries that the loader may not know.
LOADER = {"LD_LIBRARY_PATH": os.environ["LD_LIBRARY_PATH"]} if os.environ.get("LD_LIBRARY_PATH") else {}


@dataclasses.dataclass(frozen=True)
class Gpu:
    """The machine's first GPU. Every program that uses it gets `variables`."""

    name: str
    memory_bytes: int
    devices: int
    is_stand_in: bool
    variables: dict

    def node(self, number):
        """The environment of a node of its own on this one GPU: NCCL takes nodes by NCCL_HOSTID for different hosts,
        and would refuse the GPU to a second rank of one host."""
        return self.variables | {"NCCL_HOSTID": f"node-{number}"}


def look():
    """(a Gpu, why there is none)"""
    variables = dict(LOADER)
    if REHEARSAL:
        variables = {"LD_LIBRARY_PATH": str(STAND_INS), "ELASTIC_RUN_PROBE_PRODUCT": "128", "ELASTIC_RUN_PROBE_BYTES": "65536"}
    told, why_not = driver.find_gpu(variables, REHEARSAL)
    if told is None:
        return None, why_not
    # NCCL uses the loopback interface, whatever other networks there are.
    variables |= {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
    told |= {"devices": 1} if REHEARSAL else {}
    return Gpu(**told, is_stand_in=REHEARSAL, variables=variables), ""


@pytest.fixture(scope="session")
def gpu():
    found, why_not = look()
    if found is None:
        pytest.skip(why_not)
    return found


@pytest.fixture
def rehearsed(gpu):
    """Skips a test that the stand-ins cannot run."""
    if gpu.is_stand_in:
        pytest.skip("a rehearsal: stand-ins do not do that")


@pytest.fixture
def libraries():
    """The candidates for the probe's `open`: the libraries of this Python, then the loader's, then a toolkit's."""
    if REHEARSAL:
        return {}
    places = dict.fromkeys([*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("purelib")])
    packages = {name: [path for place in places for path in sorted(glob.glob(f"{place}/nvidia/*/lib/{name}"), reverse=True)]
                for name in ("libnccl.so.2", "libcublasLt.so.1?")}
    toolkit = "/usr/local/cuda/lib64"
    return {"nccl": [*packages["libnccl.so.2"], "libnccl.so.2", f"{toolkit}/libnccl.so.2"][:16],
            "cublaslt": [*packages["libcublasLt.so.1?"], "libcublasLt.so.13", "libcublasLt.so.12",
                         *sorted(glob.glob(f"{toolkit}/libcublasLt.so.1?"))][:16]}


@pytest.fixture
def probe(gpu, elastic_run, libraries):
    """probe(number, env=..., ...): an elastic-gpu-probe with its GPU open. Each number stands for a node."""
    import gpu_probe

    made = []

    def start(number=0, env=None, faults=None, **options):
        variables = gpu.node(number) | (env or {})
        if not gpu.is_stand_in:
            variables |= {"ELASTIC_RUN_PROBE_PRODUCT": None, "LD_LIBRARY_PATH": LOADER.get("LD_LIBRARY_PATH")}
        made.append(gpu_probe.Probe(elastic_run, env=variables, faults=faults, **options))
        made[-1].opened = made[-1].open(**libraries)
        assert made[-1].opened.get("ok"), made[-1].opened
        return made[-1]

    yield start
    for one in made:
        if one.running.popen.poll() is None:
            result = one.close()
            assert result.returncode == 0, result


@pytest.fixture
def facts(gpu, tmp_path):
    """facts(name=value, ...): the environment in which the stand-ins report these facts; without stand-ins nothing is changed."""
    import gpu_probe

    def tell(**told):
        if not gpu.is_stand_in:
            return {}
        return {"STAND_IN_GPU_FACTS": str(gpu_probe.facts_file(tmp_path, devices=1, **told))}

    return tell


@pytest.fixture
def hold(gpu, elastic_run):
    """hold(bytes): starts a program that allocates so much of the GPU's memory or, if negative, leaves so much free."""
    running = []

    def start(size):
        read, write = os.pipe()
        running.append((elastic_run.start(program=[sys.executable, HERE / "driver.py", "hold", f"{size}"], stdin=read,
                                          env=gpu.variables), write))
        os.close(read)
        held = int(running[-1][0].wait_for_line(r"^holds (\d+)", stream="stdout", timeout=60).group(1))
        return running[-1][0].pid, held

    yield start
    for program, write in running:
        os.close(write)
        assert program.wait().returncode == 0
