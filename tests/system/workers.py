"""Small worker programs that several system tests use, and how to read what they tell."""

import json
import os
import re

from ports import free_port  # noqa: F401 (for those who have a worker use it)

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

# The last line of a script that has used PyTorch, after `import os`: the end of PyTorch's own threads aborts the process
# now and then ("terminate called without an active exception"), which is not what is tested.
LEAVE = "os._exit(0)\n"


def whole_of(example):
    """A script that runs this one as it is, and then leaves so."""
    return f"""\
import os, runpy, sys
sys.argv[0] = {str(example)!r}
runpy.run_path(sys.argv[0], run_name="__main__")
sys.stdout.flush()
{LEAVE}"""


# The id of a job that chose it itself.
UUID4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


# What ELASTIC_RUN_FENCE looks like: birth, term and round.
FENCE = r"\d{13}-\d{10}-\d{10}"
# And ELASTIC_RUN_PROGRESS of a local rank.
PROGRESS = r".*/elastic_run_[a-zA-Z0-9]{{6}}/progress_{rank}"


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
