"""The images of examples/container, built and entered without a container engine: their root directories are made by
what the Dockerfiles say, and entered by namespaces, in which elastic-run is PID 1."""
# ctest: long
# ctest: release-only
# ctest: computes

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
    """(the base image, the steps that make the image from it, the command line that is started); a step is ("COPY", source,
    destination) or ("RUN", a line for the shell). An instruction that is not known is an error."""
    base, steps, command = None, [], None
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM" and base is None:
            base = rest
        elif instruction == "COPY" and len(rest.split()) == 2:
            steps.append((instruction, *rest.split()))
        elif instruction == "RUN":
            steps.append((instruction, rest))
        elif instruction in ("ENTRYPOINT", "CMD") and command is None:
            command = json.loads(rest)
        else:
            raise AssertionError(f"{path.name}: this test does not know {line!r}")
    return base, steps, command


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
    """Makes what the Dockerfile adds to its base in `layer`, where it only copies; returns the base and the command."""
    base, steps, command = read_dockerfile(IMAGES / image)
    for _, source, destination in steps:
        copy_into(layer, context / source, destination)
    return base, command


def copy_into(root, source, destination):
    target = root / destination.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


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
    coordinator.wait_for_line("the coordinator listens")  # or one of the nodes, which are on its host, would be it
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
        lay_over_this_system(memory, f"ro,lowerdir={memory.mountpoint}/layer:/")
        yield memory, entry_point


def lay_over_this_system(memory, options):
    """Mounts an overlay of / at `image`, with the devices, a /tmp of its own and the tests' Python environment."""
    image = f"{memory.mountpoint}/image"
    mounted = subprocess.run(memory.here("mount", "-t", "overlay", "-o", options, "image", image),
                             capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no overlay can be laid over / here: {mounted.stderr.strip()}")
    memory.run("mount", "--rbind", "/dev", f"{image}/dev")
    memory.run("mount", "-t", "tmpfs", "none", f"{image}/tmp")
    memory.run("mount", "--bind", sys.prefix, f"{image}{sys.prefix}")


def on_path(image, program, path=IMAGE_PATH):
    """The program's path in the image, as an engine finds it."""
    places = [f"{directory}/{program}" for directory in path.split(":")]
    # Where a link in the image leads is not for us to follow from outside.
    return program if "/" in program else next(place for place in places if os.path.islink(f"{image}{place}")
                                               or os.access(f"{image}{place}", os.X_OK))


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


@pytest.mark.time_limit(400)
def test_pytorch_trains_and_restarts_under_pid_1_of_the_image_from_python(start_python):
    result = start_python("--standalone", "--nproc-per-node=2", "--max-restarts=1", "/tmp/train.py").wait(350)
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


# --- In torchrun's place

TRAINING_PATH = f"/opt/training/bin:{IMAGE_PATH}"


@pytest.fixture
def torchrun_image(context, tmp_path):
    """(the image's root directory in memory, its command). In place of the base stands this machine's own system with an
    environment in /opt/training that has PyTorch, the tests' own, and PyTorch's own torchrun; it was never activated."""
    (tmp_path / "memory").mkdir()
    with roots.Memory(tmp_path / "memory") as memory:
        for name in ("added", "work", "image"):
            (memory.path / name).mkdir()
        place = memory.mountpoint
        lay_over_this_system(memory, f"lowerdir=/,upperdir={place}/added,workdir={place}/work")
        image = memory.path / "image"
        memory.run("chroot", f"{place}/image", "/usr/bin/python3", "-m", "venv", "--without-pip", "/opt/training")
        (packages,) = pathlib.Path(sys.prefix).glob("lib/python3*/site-packages")
        training = image / "opt/training"
        (training / packages.relative_to(sys.prefix) / "pytorch.pth").write_text(f"{packages}\n")
        torchrun = pathlib.Path(sys.prefix, "bin/torchrun").read_text().replace(sys.prefix, "/opt/training")
        (training / "bin/torchrun").write_text(torchrun)
        (training / "bin/torchrun").chmod(0o755)

        base, steps, command = read_dockerfile(IMAGES / "Dockerfile.torchrun")
        assert base.startswith("pytorch/pytorch:")
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        build = {"PATH": TRAINING_PATH, "HOME": "/root", "PIP_NO_CACHE_DIR": "1"} | pip | roots.proxy()
        for instruction, *rest in steps:
            if instruction == "COPY":
                copy_into(image, context / rest[0], rest[1])
            else:
                memory.run("chroot", f"{place}/image", "/bin/sh", "-c", *rest, env=build)
        yield memory, command


@pytest.mark.time_limit(400)
def test_accelerates_own_test_runs_under_the_torchrun_of_an_image_that_is_elastic_run(
        torchrun_image, elastic_run, static_c):
    memory, (program, *arguments) = torchrun_image
    container = shutil.copy(static_c(roots.CONTAINER), memory.path / "container")
    path = on_path(memory.path / "image", program, TRAINING_PATH)
    assert path == "/opt/training/bin/torchrun"

    def run(command, **changes):
        environment = {"PATH": TRAINING_PATH, "TMPDIR": None, "HOME": "/root", "ACCELERATE_USE_CPU": "true",
                       "OMP_NUM_THREADS": "1"} | changes
        # The base's working directory may be written; accelerate's test makes a file there.
        there = ["/bin/sh", "-c", 'cd /tmp && exec "$@"', "sh", *command]
        return elastic_run(program=memory.here(container, f"{memory.mountpoint}/image", *there), env=environment,
                           cwd="/", timeout=240)

    assert run([path, "--version"]).stdout == f"torchrun ({elastic_run('--version').stdout.strip()})\n"
    # Neither PATH nor a variable leads to the environment: where torchrun lies does.
    result = run([path, *arguments], PATH=IMAGE_PATH)
    assert result.returncode == 0, result
    assert "**Training integration test**" in result.stdout and "Num processes: 2" in result.stdout, result


# --- The reader of Dockerfiles

def test_an_instruction_that_is_not_carried_out_here_is_noticed(tmp_path):
    file = tmp_path / "Dockerfile"
    file.write_text("FROM scratch\nHEALTHCHECK CMD true\n")
    with pytest.raises(AssertionError, match="HEALTHCHECK CMD true"):
        read_dockerfile(file)
