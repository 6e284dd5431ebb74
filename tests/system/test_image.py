"""The images of examples/container, built and entered without a container engine: their root directories are made by
what the Dockerfiles say, and entered by namespaces, in which elastic-run is PID 1."""
# ctest: release-only

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
import roots
from ports import free_port
from workers import LEAVE

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ROOT / "examples/container"
IMAGE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # what an engine sets, if the image does not

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces and mounts")

TRAINING = """\
import os, signal, torch, torch.distributed as dist
rank, count = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
torch.manual_seed(rank)
inputs = torch.randn(64, 4)
targets = inputs @ torch.tensor([[1.0], [2.0], [3.0], [4.0]])
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step, checkpoint = 0, "/tmp/checkpoint.pt"
if os.path.exists(checkpoint):
    saved = torch.load(checkpoint)
    step = saved["step"]
    model.load_state_dict(saved["model"])
while step < 40:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    step += 1
    if step == 20 and count == 0:
        if rank == 0:
            torch.save({"step": step, "model": model.state_dict()}, checkpoint)
        dist.barrier()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
weights = [torch.zeros(1, 4) for _ in range(dist.get_world_size())]
dist.all_gather(weights, model.module.weight.detach())
os.write(1, (f"rank {rank} round {count} learned {loss.item() < 0.05} together {torch.equal(*weights)} "
             f"first process {open('/proc/1/comm').read().strip()}" + chr(10)).encode())  # in one piece
dist.barrier()
""" + LEAVE


def read_dockerfile(path):
    """(the base image, [(source, destination), ...], the entry point); an instruction that is not known is an error."""
    base, copies, entry_point = None, [], None
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM" and base is None:
            base = rest
        elif instruction == "COPY" and len(rest.split()) == 2:
            copies.append(tuple(rest.split()))
        elif instruction == "ENTRYPOINT":
            entry_point = json.loads(rest)
        else:
            raise AssertionError(f"{path.name}: this test does not know {line!r}")
    return base, copies, entry_point


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """The directory that the Dockerfiles are built from: the unpacked tarball."""
    directory = tmp_path_factory.mktemp("context")
    done = subprocess.run([ROOT / "scripts/package", "tarball", "--output", directory], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    (tarball,) = directory.iterdir()
    subprocess.run(["tar", "-xzf", tarball, "-C", directory], check=True)
    return directory / tarball.name.removesuffix(".tar.gz")


def build_layer(image, context, layer):
    """Makes what the Dockerfile adds to its base in `layer`; returns the base and the entry point."""
    base, copies, entry_point = read_dockerfile(IMAGES / image)
    for source, destination in copies:
        target = layer / destination.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(context / source, target)
    return base, entry_point


# --- FROM scratch

@pytest.fixture
def start_scratch(elastic_run, static_c, context, tmp_path):
    """start_scratch(arguments...): runs the image FROM scratch, on a read-only root."""
    layer = tmp_path / "scratch"
    layer.mkdir()
    base, entry_point = build_layer("Dockerfile.scratch", context, layer)
    assert base == "scratch"
    assert [str(path.relative_to(layer)) for path in layer.rglob("*")] == ["elastic-run"]
    return lambda *arguments: elastic_run.start(
        layer, *entry_point, *arguments, program=[static_c(roots.CONTAINER)], env={"TMPDIR": None, "HOME": None})


def test_the_image_from_scratch_holds_elastic_run_alone_and_starts_it(start_scratch, elastic_run):
    result = start_scratch("--version").wait()
    assert (result.returncode, result.stdout) == (0, elastic_run("--version").stdout)


def test_the_image_from_scratch_is_a_jobs_coordinator(start_scratch, elastic_run, script):
    port = free_port()
    coordinator = start_scratch("--coordinator-only", f"--rdzv-endpoint=127.0.0.1:{port}")
    worker = script("worker.sh", "#!/bin/sh\necho rank $RANK of $WORLD_SIZE\n")
    nodes = [elastic_run.start("--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--no-python",
                               f"--rdzv-endpoint=127.0.0.1:{port}", worker) for _ in range(2)]
    results = [node.wait() for node in nodes]
    assert [result.returncode for result in results] == [0, 0], results
    assert sorted(result.stdout for result in results) == ["rank 0 of 2\n", "rank 1 of 2\n"]
    os.kill(coordinator.launcher(), signal.SIGTERM)  # PID 1 in there
    assert coordinator.wait().returncode == 0


# --- FROM python

@pytest.fixture(scope="module")
def python_image(context, tmp_path_factory):
    """(the image's root directory in memory, its entry point). The base is this machine's own system, read-only, with
    the Python environment of the tests: what a training image holds, and no engine has to fetch it."""
    with roots.Memory(tmp_path_factory.mktemp("memory")) as memory:
        for name in ("layer", "image"):
            (memory.path / name).mkdir()
        base, entry_point = build_layer("Dockerfile.python", context, memory.path / "layer")
        assert base.startswith("python:")
        image = f"{memory.mountpoint}/image"
        mounted = subprocess.run(
            memory.here("mount", "-t", "overlay", "-o", f"ro,lowerdir={memory.mountpoint}/layer:/", "image", image),
            capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"no overlay can be laid over / here: {mounted.stderr.strip()}")
        memory.run("mount", "--rbind", "/dev", f"{image}/dev")
        memory.run("mount", "-t", "tmpfs", "none", f"{image}/tmp")
        memory.run("mount", "--bind", sys.prefix, f"{image}{sys.prefix}")
        yield memory, entry_point


def on_path(image, program):
    """The program's path in the image, as an engine finds it."""
    places = [f"{directory}/{program}" for directory in IMAGE_PATH.split(":")]
    return program if "/" in program else next(place for place in places if os.access(f"{image}{place}", os.X_OK))


@pytest.fixture
def start_python(elastic_run, static_c, python_image):
    """start_python(arguments...): runs the image FROM python."""
    memory, (program, *first) = python_image
    (memory.path / "image/tmp/train.py").write_text(TRAINING)
    container = shutil.copy(static_c(roots.CONTAINER), memory.path / "container")
    environment = {"PATH": f"{sys.prefix}/bin:{IMAGE_PATH}", "TMPDIR": None, "HOME": "/root",
                   "OMP_NUM_THREADS": "1"}
    return lambda *arguments: elastic_run.start(
        program=memory.here(container, f"{memory.mountpoint}/image", on_path(memory.path / "image", program), *first,
                            *arguments), env=environment, cwd="/")


@pytest.mark.time_limit(180)
def test_pytorch_trains_and_restarts_under_pid_1_of_the_image_from_python(start_python):
    result = start_python("--standalone", "--nproc-per-node=2", "--max-restarts=1", "/tmp/train.py").wait(150)
    assert result.returncode == 0, result
    assert "was killed by SIGKILL" in result.stderr and "restart 1 of 1" in result.stderr, result
    assert sorted(result.stdout.splitlines()) == [
        f"rank {rank} round 1 learned True together True first process elastic-run" for rank in range(2)]


def test_the_image_from_python_ends_when_it_is_told_to(start_python):
    waits = "import os, time; os.write(1, b'up\\n'); time.sleep(1000000)"
    running = start_python("--nproc-per-node=2", "--log-dir=/dev/null", "--no-python", "python3", "-c", waits)
    for _ in range(2):
        running.wait_for_line("^up$", stream="stdout")
    os.kill(running.launcher(), signal.SIGTERM)
    result = running.wait()
    assert result.returncode == 1
    assert result.stderr == "elastic-run: stopped by SIGTERM; all workers have ended\n"


# --- The reader of Dockerfiles

def test_an_instruction_that_is_not_carried_out_here_is_noticed(tmp_path):
    file = tmp_path / "Dockerfile"
    file.write_text("FROM scratch\nRUN true\n")
    with pytest.raises(AssertionError, match="RUN true"):
        read_dockerfile(file)
