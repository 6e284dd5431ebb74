"""Two ranks work until one of them has no room for its checkpoint: a failure to look at.

    elastic-run --nproc-per-node=2 examples/full_disk.py
    torchrun --nproc-per-node=2 examples/full_disk.py
"""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    weights = torch.zeros(1000)
    for step in range(1000):
        dist.all_reduce(weights)
        if step == 10 and dist.get_rank() == 1:
            save(weights)


def save(weights):
    with open("/dev/full", "wb", buffering=0) as checkpoint:  # every write to it finds a full disk
        checkpoint.write(weights.numpy().tobytes())


main()
