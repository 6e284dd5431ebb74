"""A rank of scripts/bench hang: it says steps, and then waits for rank 1, which loads for ever.

    hang_worker.py DIRECTORY STEPS PAUSE_S DEPTH

Says STEPS of them on stderr (0: without end), one each PAUSE_S, and notes in DIRECTORY/came_RANK that it has begun, and in
DIRECTORY/last_RANK when it has said the last one, by CLOCK_MONOTONIC in nanoseconds. It then stands DEPTH calls deep."""

import os
import signal
import sys
import time

from hang_notes import note

directory, steps, pause_s, depth = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
rank = int(os.environ["RANK"])


def load_batch():
    while True:
        signal.pause()


def all_reduce():
    while True:
        signal.pause()


def forward(layer):
    if layer > 0:
        forward(layer - 1)
    elif rank == 1:
        load_batch()
    else:
        all_reduce()


note(directory, "came", rank)
step = 0
begun = time.monotonic()
while step < steps or not steps:
    step += 1
    os.write(2, f" iteration {step:8}/  500000 | consumed samples: {step * 8} | lm loss: 1.5 |\n".encode())
    if step != steps:
        time.sleep(max(0, begun + step * pause_s - time.monotonic()))
note(directory, "last", rank)
forward(depth)
