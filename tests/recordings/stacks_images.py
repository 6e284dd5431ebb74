#!/usr/bin/env python3
"""Records what elastic-run reads of Python processes, and what Python itself says of the same moment (faulthandler), as
tests/recordings/stacks-3.X.txt.

    stacks_images.py RECORDER [PYTHON ...]

RECORDER is build/release/tests/recordings/stacks_recorder. Each PYTHON is the command line of an interpreter, in one
argument. One that is of another Debian than this host's runs by its own loader:

    dpkg -x each of python3.14-minimal libpython3.14-minimal libpython3.14-stdlib libc6 libexpat1 zlib1g to DIR
    PYTHON="DIR/usr/lib64/ld-linux-x86-64.so.2 --library-path DIR/usr/lib/x86_64-linux-gnu DIR/usr/bin/python3.14"
"""

import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# It goes through generators and C code to a name that is not ASCII; another thread waits for a lock.
SCRIPT = """\
import _thread, faulthandler, select, sys
class Läufer:
    def wärte(self):
        faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
        print("ready", flush=True)
        select.select([], [], [])
def other():
    begun.release(), lock.acquire()
def steps():
    yield from (Läufer().wärte() for _ in range(1))
def deep(n):
    if n:
        return (
            deep(n - 1)
        )
    list(map(lambda step: step, steps()))
lock, begun = _thread.allocate_lock(), _thread.allocate_lock()
lock.acquire(), begun.acquire()
_thread.start_new_thread(other, ())
begun.acquire()
deep(3)
"""


def told(faults):
    """faulthandler's text as lines: "thread", and "frame FUNCTION LINE FILE" for each call."""
    lines = []
    for line in faults.splitlines():
        if re.match(r"(Current thread|Thread) 0x", line):
            lines.append("thread")
        elif match := re.match(r'  File "(.*)", line (\d+) in (.*)$', line):
            lines.append(f"frame {match[3]} {match[2]} {match[1]}")
    return lines


def record(recorder, python):
    with tempfile.TemporaryFile("w+") as faults:
        process = subprocess.Popen([*shlex.split(python), "-S", "-E", "-c", SCRIPT], stdout=subprocess.PIPE,
                                   stderr=faults)
        try:
            # After faulthandler's line the main thread goes on to the select() two lines below, and no further.
            assert process.stdout.readline() == b"ready\n"
            waiting = pathlib.Path(f"/proc/{process.pid}/syscall")
            while not any(waiting.read_text().startswith(call) for call in ("23 ", "270 ")):
                pass
            image = subprocess.run([recorder, str(process.pid)], capture_output=True, text=True, check=True).stdout
        finally:
            process.kill()
            process.wait()
        faults.seek(0)
        text = faults.read()
    lines = [line.replace("frame w\\xe4rte 4 ", "frame wärte 6 ") for line in told(text)]
    return "\n".join(lines) + "\n" + image


def main(recorder, *pythons):
    for python in pythons:
        text = record(recorder, python)
        minor = re.search(r"^python 3\.(\d+)", text, re.MULTILINE)[1]
        (pathlib.Path(__file__).parent / f"stacks-3.{minor}.txt").write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
