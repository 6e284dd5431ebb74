"""A rank of PyTorch with gloo for scripts/bench hang: rank 1 hangs once, and when it is started again it does not.

    hang_torch_worker.py DIRECTORY STEPS PAUSE_S TIMEOUT_S

Says a step on stderr each PAUSE_S. After STEPS of them rank 1 loads for ever; the others wait for it in all_reduce, for
TIMEOUT_S or, if that is 0 and after the hang, as long as PyTorch has it. Notes in DIRECTORY: came_RANK, pid_RANK, last_RANK
(the last step before the hang is said), raised_RANK (the collective has failed) and next_RANK (the first step after the
hang is done)."""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
from hang_notes import note

directory, steps, pause_s, timeout_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
rank = int(os.environ["RANK"])
hung = os.path.join(directory, "hung")
was_hung = os.path.exists(hung)


def load_batch():
    with open(hung, "w"):
        time.sleep(1_000_000)


def train_step():
    try:
        dist.all_reduce(torch.ones(4))
    except RuntimeError:
        note(directory, "raised", rank)
        raise


torch.set_num_threads(1)
# The timeout is not for the import of PyTorch, which takes the ranks of a busy machine unequally long.
note(directory, "came", rank)
while not all(os.path.exists(f"{directory}/came_{each}") for each in range(int(os.environ["WORLD_SIZE"]))):
    time.sleep(0.01)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=timeout_s) if timeout_s and not was_hung else None)
if not was_hung:
    note(directory, "pid", rank, os.getpid())
step = 0
while True:
    step += 1
    train_step()
    os.write(2, f" iteration {step:8}/  500000 | consumed samples: {step * 8} | lm loss: 1.5 |\n".encode())
    if was_hung and step == 1:
        note(directory, "next", rank)
    if not was_hung and step == steps:
        note(directory, "last", rank)
        if rank == 1:
            load_batch()
    else:
        time.sleep(pause_s)
