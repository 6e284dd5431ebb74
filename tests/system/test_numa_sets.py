"""The CPUs of each rank are those of torchrun: PyTorch's own code beside ours, on the same trees of files."""
# ctest: computes

import functools
import json
import os
import pathlib
import random
import subprocess
import types

import numa_trees
import pytest

MODES = ["node", "socket", "exclusive", "core-complex"]
RANKS = range(1, 17)


class Torch:
    """torch.numa.binding, with its files below `root` and with GPUs as they are given."""

    def __init__(self):
        self.module = types.ModuleType("binding")
        source = pathlib.Path(pytest.importorskip("torch.numa.binding").__file__)
        exec(compile(source.read_text(), str(source), "exec"), self.module.__dict__)
        self.module.open = self.open
        self.module.os = types.SimpleNamespace(listdir=self.listdir, path=os.path, sched_getaffinity=lambda _: self.allowed)
        self.module.shutil = types.SimpleNamespace(which=lambda name: name)
        self.module.torch = types.SimpleNamespace(
            accelerator=types.SimpleNamespace(is_available=lambda: bool(self.gpus), device_count=lambda: len(self.gpus),
                                              current_accelerator=lambda: "cuda"),
            get_device_module=lambda _: types.SimpleNamespace(get_device_properties=self.properties))

    def look_at(self, root, allowed, gpus):
        """`gpus`: their addresses, in CUDA's order."""
        self.root, self.allowed, self.gpus = root, set(allowed), gpus

    def open(self, path):
        return open_cached(self.root, path)

    def listdir(self, path):
        return listed(self.root, path)

    def properties(self, index):
        domain, bus, rest = self.gpus[index].split(":")
        return types.SimpleNamespace(pci_domain_id=int(domain, 16), pci_bus_id=int(bus, 16),
                                     pci_device_id=int(rest.split(".")[0], 16))

    def cpus(self, mode, rank):
        """None where torchrun fails."""
        options = self.module.NumaOptions(affinity_mode=self.module.AffinityMode(mode))
        try:
            return sorted(self.module._get_validated_logical_cpus_to_bind_to(device_index=rank, numa_options=options))
        except (RuntimeError, ValueError, OSError, IndexError, ZeroDivisionError):
            return None


@functools.cache
def text_of(root, path):
    return (root / path.lstrip("/")).read_text()


@functools.cache
def listed(root, path):
    return os.listdir(root / path.lstrip("/"))


class open_cached:  # noqa: N801 (it stands for a function)
    def __init__(self, root, path):
        self.read = lambda: text_of(root, path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture(scope="module")
def torch():
    return Torch()


@pytest.fixture(scope="module")
def ours():
    """ours(root, allowed, ranks, gpus): for each mode a list of (CPUs, why they are not what was asked for)."""
    program = pathlib.Path(os.environ["ELASTIC_RUN_BINARY"]).parent / "tests/stand_ins/numa_sets"

    def run(root, allowed, ranks, *cuda):
        command = [program, root, numa_trees.ranges(allowed), str(ranks), *cuda]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return {mode: [(each["cpus"], each["why"]) for each in answer[mode]] for mode in MODES}
    return run


def compare(torch, answer, ranks, told=""):
    """Every rank has torchrun's CPUs, or torchrun fails and we say why. Any node without CPUs to use makes torchrun fail
    for all sockets; ours leave it out. Returns how many sets were equal and how many torchrun lacks."""
    equal, lacking = 0, 0
    for mode in MODES:
        for rank in range(ranks):
            cpus, why = answer[mode][rank]
            wanted = torch.cpus(mode, rank)
            if wanted is None:
                of_socket = mode == "socket" and set() < set(answer["node"][rank][0]) <= set(cpus)
                assert why or of_socket, (mode, rank, cpus)
                lacking += 1
            else:
                assert (cpus, why) == (wanted, told), (mode, rank)
                equal += 1
    return equal, lacking


@pytest.fixture(scope="module", params=list(numa_trees.hosts()), ids=lambda made: made[0].replace(", ", "-").replace(" ", "-"))
def tree(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("host")
    numa_trees.write(root, request.param[1])
    return root, request.param[1]


def test_each_rank_has_torchruns_cpus_in_every_mode_with_1_to_16_ranks(tree, torch, ours):
    """The GPUs are chosen and ordered by CUDA_VISIBLE_DEVICES, by number and by UUID."""
    root, made = tree
    chance = random.Random(len(made.cpus))
    equal = 0
    for ranks in RANKS:
        gpus = chance.sample(range(numa_trees.GPUS), ranks)
        torch.look_at(root, made.every_cpu, [numa_trees.address(gpu) for gpu in gpus])
        visible = ",".join(map(chance.choice([str, numa_trees.uuid]), gpus))
        equal += compare(torch, ours(root, made.every_cpu, ranks, visible), ranks)[0]
    assert equal > 3.5 * sum(RANKS)


def test_each_rank_has_torchruns_cpus_where_a_cpuset_leaves_some(tree, torch, ours):
    """A random half of the CPUs; then one node has none, and there torchrun fails."""
    root, made = tree
    chance = random.Random(7)
    torch_fails = 0
    for ranks in (1, 2, 5, 8, 16):
        allowed = chance.sample(made.every_cpu, len(made.every_cpu) // 2)
        if ranks == 16 and len(made.cpus) > 1:
            allowed = [cpu for cpu in allowed if cpu not in made.cpus[1]]
        torch.look_at(root, allowed, [numa_trees.address(gpu) for gpu in range(ranks)])
        visible = ",".join(map(str, range(ranks)))
        equal, lacking = compare(torch, ours(root, allowed, ranks, visible), ranks)
        assert equal > 0
        torch_fails += lacking
    assert torch_fails > 0


def test_without_a_gpu_each_rank_has_the_cpus_that_torchrun_would_give_it_with_one(tree, torch, ours):
    """torchrun has none to give. The ranks are spread over the nodes in blocks: it is asked with GPUs at those nodes."""
    root, made = tree
    nodes = sorted(made.cpus)
    gpu_at = {node: gpu for gpu, node in enumerate(nodes)}
    for node, gpu in gpu_at.items():
        (root / f"sys/bus/pci/devices/{numa_trees.address(gpu)}/numa_node").write_text(f"{node}\n")
    text_of.cache_clear()
    equal = 0
    for ranks in RANKS:
        torch.look_at(root, made.every_cpu, [])
        assert all(torch.cpus(mode, 0) is None for mode in MODES)
        wanted = [nodes[rank * len(nodes) // ranks] for rank in range(ranks)]
        torch.look_at(root, made.every_cpu, [numa_trees.address(gpu_at[node]) for node in wanted])
        equal += compare(torch, ours(root, made.every_cpu, ranks, ""), ranks)[0]
    numa_trees.write(root, made)
    text_of.cache_clear()
    assert equal > 3.5 * sum(RANKS)


def test_ranks_beyond_the_gpus_share_the_cpus_of_those_that_share_their_gpu(tree, torch, ours):
    root, made = tree
    torch.look_at(root, made.every_cpu, [numa_trees.address(gpu) for gpu in range(6)])
    answer = ours(root, made.every_cpu, 16, "0,1,2,3,4,5")
    assert compare(torch, answer, 6)[0] > 3.5 * 6
    for mode in MODES:
        assert [answer[mode][rank] for rank in range(6, 16)] == [answer[mode][rank % 6] for rank in range(6, 16)]


@pytest.fixture
def two_nodes(tmp_path):
    made = numa_trees.host(2, 8, 1, 2, 4)
    made.gpus = [gpu // 8 for gpu in range(16)]
    return tmp_path, made


def test_a_gpu_without_a_node_is_at_node_0_as_with_torchrun_and_that_is_told(two_nodes, torch, ours):
    root, made = two_nodes
    made.gpus = [-1] * 16
    numa_trees.write(root, made)
    torch.look_at(root, made.every_cpu, [numa_trees.address(3)])
    compare(torch, ours(root, made.every_cpu, 1, "3"), 1,
            told="sysfs names no NUMA node of the GPU (node 0 is assumed)")


def test_nodes_without_cpus_do_not_matter_though_torchrun_fails(two_nodes, torch, ours):
    """Grace Hopper's GPU memory is a NUMA node, and more nodes are possible than there are."""
    root, made = two_nodes
    numa_trees.write(root, made)
    plain = ours(root, made.every_cpu, 16)
    made.cpus[2] = made.cpus[9] = []
    made.possible = "0-33"
    numa_trees.write(root, made)
    torch.look_at(root, made.every_cpu, [numa_trees.address(gpu) for gpu in range(16)])
    text_of.cache_clear()
    assert torch.cpus("socket", 0) is None and torch.cpus("node", 0) == made.cpus[0]
    assert ours(root, made.every_cpu, 16) == plain


def test_gpus_of_several_models_are_in_order_only_by_pci_bus_id_or_uuid(two_nodes, torch, ours):
    root, made = two_nodes
    numa_trees.write(root, made, models=["NVIDIA H100", "NVIDIA A2"])
    torch.look_at(root, made.every_cpu, [numa_trees.address(12), numa_trees.address(0)])
    compare(torch, ours(root, made.every_cpu, 2, "12,0", "PCI_BUS_ID"), 2)
    compare(torch, ours(root, made.every_cpu, 2, f"{numa_trees.uuid(12)},{numa_trees.uuid(0)}"), 2)
    for cuda in (["12,0"], ["12,0", "FASTEST_FIRST"]):
        assert ours(root, made.every_cpu, 2, *cuda)["node"] == [
            ([], "the GPUs are of several models, which CUDA orders by speed; set CUDA_DEVICE_ORDER=PCI_BUS_ID")] * 2
