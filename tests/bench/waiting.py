"""Stands in for a launcher whose next workers wait with everything imported, one interpreter each: the floor of
scripts/bench restart --first-step. It does what a restart takes, and nothing else.

    waiting.py ELASTIC_RUN PYTHON RANKS MODULES MARKS SCRIPT ARGUMENT ...

It starts RANKS ranks of SCRIPT, and as many interpreters that import what the file MODULES lists. When a rank ends, it
sends SIGTERM to the others' groups, opens a new worker store meanwhile, waits until all are gone, and gives the ranks to
those that wait. SIGTERM ends it and all of them."""

import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import time

WORKER = str(pathlib.Path(__file__).with_name("waiting_worker.py"))
CHANNEL = 3
PR_SET_PDEATHSIG = 1


@dataclasses.dataclass
class Rank:
    """An interpreter that waits for a rank, or has one."""

    pid: int
    pidfd: int
    channel: socket.socket


def main():
    binary, python, ranks, modules, marks, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    end_with_parent()
    with contextlib.ExitStack() as stack:
        written = os.open(marks, os.O_WRONLY | os.O_CLOEXEC)
        port = open_store(binary, stack)()
        running, waiting = ([start(python, names, marks, stack) for _ in range(int(ranks))] for names in ("", modules))
        for each in (*running, *waiting):
            read(each)
            if each is running[-1]:
                give(running, 0, port, command)
        print(f"{ranks} interpreters wait for the next round", flush=True)

        until_end(running[:], at_least=1)
        for each in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGTERM)
        port_of_store = open_store(binary, stack)
        until_end(running, at_least=len(running))
        port = port_of_store()
        os.write(written, f"ordered 0 1 {os.getpid()} {time.monotonic_ns()} 0\n".encode())
        give(waiting, 1, port, command)
        until_end(waiting, at_least=len(waiting))


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def open_store(binary, stack):
    """Starts a worker store; what is returned waits for its port."""
    store = subprocess.Popen([binary, "--store-only", "--port=0"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True, preexec_fn=end_with_parent)
    stack.callback(store.wait)
    stack.callback(store.terminate)
    stack.callback(store.stderr.close)
    return lambda: re.search(r"port (\d+)$", store.stderr.readline().rstrip())[1]


def start(python, modules, marks, stack):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.posix_spawn(python, [python, "-u", WORKER, modules, marks, str(os.getpid())], os.environ, setsid=True,
                         file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), CHANNEL)])
    theirs.close()
    rank = Rank(pid, os.pidfd_open(pid), ours)
    stack.callback(end, rank)
    return rank


def read(rank):
    if not rank.channel.recv(1):
        raise SystemExit("an interpreter has ended before it had a rank")


def give(ranks, attempt, port, command):
    """The variables are those that elastic-run gives: docs/environment.md."""
    count = str(len(ranks))
    for number, each in enumerate(ranks):
        variables = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count,
                     "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1, "ROLE_RANK": number, "ROLE_WORLD_SIZE": count,
                     "ROLE_NAME": "default", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                     "TORCHELASTIC_RUN_ID": "waiting", "TORCHELASTIC_RESTART_COUNT": attempt,
                     "TORCHELASTIC_MAX_RESTARTS": 1, "TORCHELASTIC_USE_AGENT_STORE": "True"}
        order = {"variables": {name: str(value) for name, value in variables.items()}, "argv": command}
        each.channel.send(json.dumps(order).encode())


def until_end(ranks, at_least):
    """Returns when so many of the ranks have ended."""
    poll = select.poll()
    for each in ranks:
        poll.register(each.pidfd, select.POLLIN)
    while at_least > 0:
        for descriptor, _ in poll.poll():
            poll.unregister(descriptor)
            at_least -= 1


def end(rank):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(rank.pid, signal.SIGKILL)
    os.waitpid(rank.pid, 0)
    os.close(rank.pidfd)
    rank.channel.close()


if __name__ == "__main__":
    main()
