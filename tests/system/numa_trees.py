"""Trees of files in the place of "/": hosts with NUMA nodes, caches and GPUs of NVIDIA's, as Linux shows them."""

import dataclasses
import pathlib
import random

GPUS = 16


@dataclasses.dataclass
class Host:
    """What the files say. CPUs and GPUs are named by their numbers."""

    cpus: dict  # the CPUs of each NUMA node
    siblings: dict  # the CPUs of each CPU's physical core
    socket: dict  # by CPU
    caches: dict  # by CPU: a list of (type, level, CPUs)
    gpus: list  # the NUMA node of each, as sysfs tells it
    possible: str  # NUMA nodes

    @property
    def every_cpu(self):
        return sorted(cpu for cpus in self.cpus.values() for cpu in cpus)


def ranges(numbers):
    """"0-2,4", as sysfs writes it."""
    parts, last = [], None
    for number in sorted(numbers):
        if last is not None and number == last + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
        last = number
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def host(nodes, cores, threads, sockets, cores_of_complex, interleaved=False, complex_is_socket=False):
    """`cores` in each node, with as many threads; the second threads have their numbers after all first ones, as on x86.
    Interleaved: neighbouring numbers are in different nodes. A core complex has so many cores, and each node's last one
    may have fewer."""
    total = nodes * cores
    numbers = {}  # of the first threads, by node
    for node in range(nodes):
        numbers[node] = [core * nodes + node if interleaved else node * cores + core for core in range(cores)]
    threads_of = {first: [first + total * thread for thread in range(threads)]
                  for firsts in numbers.values() for first in firsts}
    made = Host({}, {}, {}, {}, [], f"0-{nodes - 1}" if nodes > 1 else "0")
    for node, firsts in numbers.items():
        made.cpus[node] = sorted(cpu for first in firsts for cpu in threads_of[first])
        socket = node * sockets // nodes
        for place, first in enumerate(firsts):
            if complex_is_socket:
                shares = [cpu for other, its in numbers.items() if other * sockets // nodes == socket
                          for each in its for cpu in threads_of[each]]
            else:
                begin = place - place % cores_of_complex
                shares = [cpu for each in firsts[begin:begin + cores_of_complex] for cpu in threads_of[each]]
            for cpu in threads_of[first]:
                made.siblings[cpu] = threads_of[first]
                made.socket[cpu] = socket
                made.caches[cpu] = [("Data", 1, threads_of[first]), ("Instruction", 1, threads_of[first]),
                                    ("Unified", 2, threads_of[first]), ("Unified", 3, shares)]
    return made


def gpus_of(nodes, seed):
    """One node: sysfs says -1, as it often does there. Else GPUs in blocks, or wherever chance puts them."""
    if nodes == 1:
        return [-1] * GPUS
    if seed == 0:
        return [gpu * nodes // GPUS for gpu in range(GPUS)]
    chance = random.Random(seed)
    return [chance.randrange(nodes) for _ in range(GPUS)]


def hosts():
    """(name, host) of each kind: AMD (several caches to a node), Intel (numbers that take turns, one cache to a socket)
    and Grace (no second threads)."""
    for nodes, cores in [(1, 16), (2, 16), (4, 8), (8, 7)]:
        kinds = {"AMD": host(nodes, cores, 2, 1 if nodes == 1 else 2, 3 if nodes == 8 else 4),
                 "Intel": host(nodes, cores, 2, 1 if nodes == 1 else 2, 0, interleaved=True, complex_is_socket=True),
                 "Grace": host(nodes, cores, 1, nodes, cores)}
        for seed, (kind, made) in enumerate(kinds.items()):
            made.gpus = gpus_of(nodes, seed)
            yield f"{kind}, {nodes} nodes", made


def address(gpu):
    """By bus, in the order of the GPUs."""
    return f"{'0000' if gpu < 12 else '0001'}:{0x0a + 0x11 * (gpu % 12):02x}:00.0"


def write(root, made, models=("NVIDIA H100",)):
    """Writes the files of a host. GPU g is of the model number g modulo their number, and its UUID is GPU-<g>-..."""
    files = {"sys/devices/system/node/possible": made.possible}
    for node, cpus in made.cpus.items():
        files[f"sys/devices/system/node/node{node}/cpulist"] = ranges(cpus)
    for cpu, siblings in made.siblings.items():
        place = f"sys/devices/system/cpu/cpu{cpu}"
        files[f"{place}/topology/thread_siblings_list"] = ranges(siblings)
        files[f"{place}/topology/physical_package_id"] = str(made.socket[cpu])
        for index, (kind, level, shares) in enumerate(made.caches[cpu]):
            files[f"{place}/cache/index{index}/type"] = kind
            files[f"{place}/cache/index{index}/level"] = str(level)
            files[f"{place}/cache/index{index}/shared_cpu_list"] = ranges(shares)
    for gpu, node in enumerate(made.gpus):
        files[f"sys/bus/pci/devices/{address(gpu)}/numa_node"] = str(node)
        files[f"proc/driver/nvidia/gpus/{address(gpu)}/information"] = (
            f"Model: \t\t {models[gpu % len(models)]}\nIRQ: 16\nGPU UUID: \t {uuid(gpu)}")
    for name, text in files.items():
        path = pathlib.Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def uuid(gpu):
    return f"GPU-{gpu:02d}-5f2a"
