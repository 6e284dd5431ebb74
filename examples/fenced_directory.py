"""A directory of checkpoints in which no older world of a job can write any more.

    elastic-run --nproc-per-node=2 --max-restarts=3 examples/fenced_directory.py /shared/run7

elastic-run gives all workers of a round the same ELASTIC_RUN_FENCE. It is a text that only grows from round to round
and from one start of the job to the next. It protects nothing by itself: whoever keeps the data has to compare. Here
that is save(), under a lock that all writers take.
"""

import fcntl
import os
import pathlib
import sys


class Fenced(Exception):
    """A later world of the job has written into the directory: this one has to end."""


def save(directory, name, data):
    """Writes the file, whole or not at all. Raises Fenced if a later world has saved anything here."""
    ours = os.environ["ELASTIC_RUN_FENCE"]
    directory = pathlib.Path(directory)
    with open(directory / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        newest = directory / "fence"
        theirs = newest.read_text() if newest.exists() else ""
        if ours < theirs:
            raise Fenced(f"{directory} belongs to the world of fence {theirs}, which is later than ours, {ours}")
        if ours > theirs:
            replace(newest, ours.encode())  # before the data: from here on no older world writes
        replace(directory / name, data)


def replace(path, data):
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    rank = int(os.environ["RANK"])
    for step in range(3):
        save(directory, f"rank-{rank}", f"step {step}\n".encode())
    print(f"rank {rank} has saved with fence {os.environ['ELASTIC_RUN_FENCE']}", flush=True)


if __name__ == "__main__":
    main()
