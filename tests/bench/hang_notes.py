"""What a rank of scripts/bench hang notes for it in a directory: whole, or not at all."""

import os
import time


def note(directory, name, rank, value=None):
    """In DIRECTORY/NAME_RANK: the value, or what CLOCK_MONOTONIC says, in nanoseconds."""
    path = f"{directory}/{name}_{rank}"
    with open(path + ".new", "w") as file:
        file.write(str(time.monotonic_ns() if value is None else value))
    os.rename(path + ".new", path)
