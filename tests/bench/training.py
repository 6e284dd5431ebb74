"""What both measurements of training that loses a rank share: the example, its variables, torchrun's own mistake."""

import pathlib

import common
from common import BenchError

OURS, TORCHRUN = "elastic-run", "torchrun"

EXAMPLE = common.HERE.parents[1] / "examples/fashion_mnist.py"
# In torchrun's own traceback where it has read a worker's error file before there was anything in it.
READ_TOO_EARLY = ("_capture_process_failures", "JSONDecodeError")
MOST_BROKEN = 5  # of one run


def variables_of():
    """Without the last of them gloo may fail after a restart by torchrun."""
    return {"PYTHON_EXEC": str(pathlib.Path(common.torchrun()).parent / "python3"), "PYTHONDONTWRITEBYTECODE": "1",
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


class NotDone(BenchError):
    """The launcher has ended before what was waited for came, or is too late; `told`: all that it has printed."""

    def __init__(self, what, command, told):
        super().__init__(f"no {what}: {' '.join(command)}\n{told[-2000:]}")
        self.told = told


def unless_broken(contender, measure):
    """(what `measure()` returns, how many runs before that torchrun's own mistake has ended)"""
    for broke in range(1 + MOST_BROKEN):
        try:
            return measure(), broke
        except NotDone as missing:
            is_known = all(mark in missing.told for mark in READ_TOO_EARLY)
            if contender != TORCHRUN or not is_known or broke == MOST_BROKEN:
                raise
    raise AssertionError("unreachable")
