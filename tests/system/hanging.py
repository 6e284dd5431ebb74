"""Workers of the standard library that train, and stop to: they wait for each other in functions that are called as
torch's, say their steps, and leave what a test wants to see."""

import subprocess

import raw_store

# How each rank begins: who it is, and where the ranks of its round meet.
_BEGINNING = '''
import os, socket, struct, sys, threading, time
directory = sys.argv[1]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
fence = os.environ["ELASTIC_RUN_FENCE"]


def step(number, phase="train"):
    with open(os.environ["ELASTIC_RUN_PROGRESS"], "w") as word:
        word.write(f"step={number} phase={phase}\\n")


def wait_for(name):
    while not os.path.exists(os.path.join(directory, name)):
        time.sleep(0.01)


def note(name, text=""):
    with open(os.path.join(directory, name + ".new"), "w") as file:
        file.write(text)
    os.rename(os.path.join(directory, name + ".new"), os.path.join(directory, name))


def serve():
    """Rank 0 lets all go on as soon as all have come to the same collective."""
    clients = [server.accept()[0] for _ in range(world)]
    while all(come := [client.recv(1) for client in clients]):
        if len(set(come)) == 1:
            for client in clients:
                client.sendall(b"x")
'''

# All ranks are on one host. Who has lost the others ends in order.
_ON_ONE_HOST = '''
ALONE = 0
place = os.path.join(directory, "meeting_" + fence[-4:])  # the path of a socket must be short

if rank == 0:
    server = socket.socket(socket.AF_UNIX)
    server.bind(place + ".new")
    server.listen(world)
    os.rename(place + ".new", place)
    threading.Thread(target=serve, daemon=True).start()
while not os.path.exists(place):
    time.sleep(0.01)
meeting = socket.socket(socket.AF_UNIX)
meeting.connect(place)
'''

# Ranks are on hosts that have a directory in common. Who has lost the others fails, as with torch.
_ON_HOSTS = '''
ALONE = 1
place = os.path.join(directory, "meeting_" + fence)

if rank == 0:
    server = socket.create_server((os.environ["MASTER_ADDR"], 0), backlog=world)
    with open(place + ".new", "w") as file:
        file.write(str(server.getsockname()[1]))
    os.rename(place + ".new", place)
    threading.Thread(target=serve, daemon=True).start()
while not os.path.exists(place):
    time.sleep(0.01)
with open(place) as file:
    meeting = socket.create_connection((os.environ["MASTER_ADDR"], int(file.read())))
'''

_COLLECTIVES = '''

def all_reduce():
    meeting.sendall(b"r")
    if not meeting.recv(1):
        sys.exit(ALONE)


def broadcast():
    meeting.sendall(b"b")
    if not meeting.recv(1):
        sys.exit(ALONE)


def barrier():
    meeting.sendall(b"-")
    if not meeting.recv(1):
        sys.exit(ALONE)


def steps(count, first=1):
    for number in range(first, first + count):
        all_reduce()
        step(number)


note(f"pid_{rank}", str(os.getpid()))
'''

# A test adds what its ranks do.
WORKER = _BEGINNING + _ON_ONE_HOST + _COLLECTIVES


def worker_of_hosts(before):
    """The same for ranks on several hosts, which do what `before` says before they meet."""
    return _BEGINNING + before + _ON_HOSTS + _COLLECTIVES


# --- What PyTorch's flight recorder writes. -----------------------------------------------------------------

# What a rank's recorder has: rank 1 has launched 6 collectives, the others 7. And what a hostile dump has.
RECORDER = """
import json, pickle


class Runs:
    def __reduce__(self):
        return os.system, (f"touch {directory}/was_run",)


def entry(number, is_over):
    return {"record_id": number - 1, "process_group": ["0", "default_pg"], "collective_seq_id": number, "p2p_seq_id": 0,
            "profiling_name": "nccl:all_reduce", "input_sizes": [[4]], "input_dtypes": ["Float"], "output_sizes": [[4]],
            "state": "completed" if is_over else "started", "retired": is_over, "is_p2p": False}


def recorded():
    entries = [entry(number, True) for number in range(1, 7)] + ([entry(7, False)] if rank != 1 else [])
    return {"version": "2.10", "entries": entries,
            "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(world)))}}}


# In the opcodes of protocol 2 that PyTorch writes.
def pickled(value):
    if isinstance(value, dict):
        return b"}(" + b"".join(pickled(each) for item in value.items() for each in item) + b"u"
    if isinstance(value, list):
        return b"](" + b"".join(map(pickled, value)) + b"e"
    if isinstance(value, str):
        return b"X" + struct.pack("<I", len(value)) + value.encode()
    return {True: b"\\x88", False: b"\\x89"}[value] if isinstance(value, bool) else b"J" + struct.pack("<i", value)


def write_dump(path, dump):
    with open(path + ".new", "wb") as file:
        file.write(dump)
    os.rename(path + ".new", path)
"""


# --- What hangs. --------------------------------------------------------------------------------------------

# How a rank may stand in the place where a script loads its next batch: {name: the function}.
LOADS = {
    "sleeps": """
def load_batch():
    time.sleep(10000)
""",
    "lock": """
def load_batch():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
""",
    "gil": """
def load_batch():
    import ctypes
    ctypes.PyDLL(None).sleep(10000)
""",
    "spins": """
def load_batch():
    while True:
        pass
""",
    "spins_in_c": """
def load_batch():
    import re
    re.match(r"(a+)+$", "a" * 60 + "b")
""",
}

# Who has called vfork() is in state D until its child ends; a signal that kills ends it all the same.
_VFORK = """
#include <unistd.h>
void in_vfork(void) { if (vfork() == 0) { for (;;) pause(); } }
"""


def in_state_d(directory):
    """A function read_block() that stands in state D, by a library that is made in this directory."""
    library = directory / "vforks.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], check=True, text=True, input=_VFORK)
    return f"""
def read_block():
    import ctypes
    ctypes.CDLL("{library}").in_vfork()
"""


# Where PyTorch's gloo says in the worker store that a rank has come, and waits for the others.
GLOO_KEYS = b"/default_pg/0//cpu//0/"

# The same as a function.
INIT = f"""
def init_process_group():
    def text(content):
        return struct.pack("<q", len(content)) + content

    keys = [{GLOO_KEYS!r} + b"%d" % each for each in range(world)]
    store = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    store.sendall({raw_store.HELLO!r} + bytes([{raw_store.SET}]) + text(keys[rank]) + text(b"here"))
    for key in keys:
        store.sendall(bytes([{raw_store.WAIT}]) + struct.pack("<q", 1) + text(key))
        if not store.recv(1):
            sys.exit(1)
"""
