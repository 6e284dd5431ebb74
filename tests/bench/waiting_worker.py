"""An interpreter that imports what a file lists, waits for a rank and becomes it: python waiting_worker.py MODULES MARKS
PARENT. Its channel to waiting.py is descriptor 3."""

import ctypes
import gc
import json
import os
import signal
import socket
import sys
import time

modules, marks, parent = sys.argv[1:]
del sys.path[0]  # nothing here is a module of the script's
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() != int(parent):
    sys.exit(1)
channel = socket.socket(fileno=3)
if modules:
    with open(modules, encoding="utf-8") as file:
        for name in file.read().split("\n"):
            try:
                __import__(name)
            except Exception:  # some names are of no module that can be imported by itself
                pass
    gc.collect()
    gc.freeze()
channel.send(b"W")
order = json.loads(channel.recv(1 << 18) or "null")
if order is None:
    sys.exit(1)
channel.close()
written = os.open(marks, os.O_WRONLY)
os.environ.update(order["variables"])
took = "taken", os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"], os.getpid(), time.monotonic_ns(), \
    time.process_time_ns()
os.write(written, (" ".join(map(str, took)) + "\n").encode())
os.close(written)
sys.argv[:] = order["argv"]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
with open(sys.argv[0], "rb") as file:
    script = compile(file.read(), sys.argv[0], "exec")
exec(script, {"__name__": "__main__", "__file__": sys.argv[0], "__builtins__": __builtins__})
