"""Small worker programs that several system tests use, and how to read what they tell."""

import json
import os
import random
import re
import socket

# A Python script that tells how it was started: one file per worker and restart in $REPORTS.
REPORT = """\
import json, os, sys
count, rank = os.environ.get("TORCHELASTIC_RESTART_COUNT"), os.environ.get("RANK")
told = {"environment": dict(os.environ), "arguments": sys.orig_argv, "cwd": os.getcwd(),
        "error_directory": os.path.isdir(os.path.dirname(os.environ["TORCHELASTIC_ERROR_FILE"]))}
name = f"{os.environ['REPORTS']}/{count}.{rank}"
with open(name + ".part", "x") as file:
    json.dump(told, file)
os.rename(name + ".part", name)  # whole or not at all: a worker may be stopped while it writes
"""

# The id of a job that chose it itself.
UUID4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

# Default ports for outgoing connections, and for stores of other tests, begin at 32768.
_PORTS = range(20000, 32000)


def free_port():
    """A port that nobody listens at, on any address, and that the kernel gives to nobody by itself."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket(socket.AF_INET6) as probe:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            try:
                probe.bind(("::", port))
                return port
            except OSError:
                continue


def read_reports(directory):
    """What the workers of REPORT told: {(restart count, rank): dict}."""
    found = {}
    for name in os.listdir(directory):
        if name.endswith(".part"):
            continue
        count, rank = map(int, name.split("."))
        found[count, rank] = json.loads((directory / name).read_text())
    return found


def matches(pattern, text):
    return re.fullmatch(pattern, text) is not None
