#!/usr/bin/env python3
"""Records what PyTorch's flight recorder dumps in a job of three gloo ranks, of which rank 1 sleeps while the others wait
for it in a collective.

    record_flight_recorder.py DIRECTORY     writes rank-0.pickle, rank-0.json and so on; needs a Python with PyTorch

recordings_tests reads what is in tests/recordings/flight_recorder, recorded with torch 2.15.0. With ELASTIC_RUN_FLIGHT_RECORDINGS=DIRECTORY in its
environment it reads another recording, as of another PyTorch.
"""

import ctypes
import json
import os
import pathlib
import pickletools
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading

RANKS = 3
SLEEPER = 1


def without_places(dump):
    """The dump without the directories of the machine that it was recorded on: opcodes stay as they are."""
    operations = list(pickletools.genops(dump))
    ends = [position for _, _, position in operations[1:]] + [len(dump)]
    parts = []
    for (operation, argument, position), end in zip(operations, ends):
        part = dump[position:end]
        if operation.name == "BINUNICODE" and argument.startswith("/"):
            text = re.sub(r"^.*/(site-packages/|lib/python[^/]*/)?", "", argument).encode()
            part = b"X" + struct.pack("<I", len(text)) + text
        parts.append(part)
    return b"".join(parts)


def work(directory, rank):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: a rank may wait for the others for ever
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d

    dist.init_process_group("gloo", init_method=f"file://{directory}/meeting", rank=rank, world_size=RANKS)
    pair = dist.new_group([0, 2], group_desc="pair")
    numbers = torch.ones(4, 2)

    # What has ended is marked as over, and then counted, by the thread that did it. Of two at a time the later one may
    # be counted first, and the earlier one then takes its place for good.
    def count(awaited=0):
        over = threading.Event()
        while not over.wait(0.01):
            dumped = json.loads(_distributed_c10d._dump_fr_trace_json())
            running = [entry for entry in dumped["entries"] if not entry["retired"]]
            uncounted = [int(group["last_enqueued_collective"]) - int(group["last_completed_collective"])
                         for group in dumped["pg_status"].values()]
            if len(running) == sum(uncounted) == awaited:
                return

    dist.all_reduce(numbers)
    count()
    dist.broadcast(torch.zeros(3, dtype=torch.int64), src=0)
    count()
    if rank == 0:
        dist.send(numbers, 2)
    if rank == 2:
        dist.recv(numbers, 0)
    count()
    if rank != SLEEPER:
        dist.all_reduce(numbers, group=pair)
        count()
    dist.all_reduce(numbers)
    count()

    if rank != SLEEPER:
        last = dist.all_reduce(torch.ones(2, 2), async_op=True)  # the sleeper does not come
        assert not last.is_completed()
    count(awaited=0 if rank == SLEEPER else 1)
    dump = _distributed_c10d._dump_fr_trace(includeCollectives=True, includeStackTraces=True, onlyActive=False)
    pathlib.Path(directory, f"rank-{rank}.pickle").write_bytes(without_places(dump))
    pathlib.Path(directory, f"rank-{rank}.json").write_bytes(_distributed_c10d._dump_fr_trace_json())
    # Whoever leaves early ends the others' collective.
    print("dumped", flush=True)
    sys.stdin.read()
    os._exit(0)


def record(target):
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        ranks = [subprocess.Popen([sys.executable, __file__, "--rank", str(rank), place], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) for rank in range(RANKS)]
        said = [process.stdout.readline() for process in ranks]
        for process in ranks:
            process.stdin.close()
            process.wait()
        if said != ["dumped\n"] * RANKS:
            sys.exit("not every rank has dumped")
        for file in sorted(pathlib.Path(place).glob("rank-*")):
            (target / file.name).write_bytes(file.read_bytes())


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--rank":
        work(sys.argv[3], int(sys.argv[2]))
    elif len(sys.argv) == 2:
        record(pathlib.Path(sys.argv[1]))
    else:
        sys.exit(__doc__)
