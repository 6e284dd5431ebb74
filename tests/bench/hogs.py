"""Processes that do nothing but compute."""

import contextlib
import subprocess

HOG = "while kill -0 $PPID; do :; done"  # it ends with us, however we end


@contextlib.contextmanager
def hogs(count):
    """So many of them, each in a session of its own: to Linux one session may be one task among others."""
    started = []
    try:
        started += [subprocess.Popen(["sh", "-c", HOG], start_new_session=True) for _ in range(count)]
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()
