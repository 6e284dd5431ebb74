"""A worker that has ended while a debugger holds it: nobody else can take it, so that it is waited for."""
# ctest: gate

import contextlib
import ctypes
import os
import signal
import subprocess
import time

import harness
import pytest

PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
WAIT_ALL_KINDS = 0x40000000  # __WALL


def ptrace(request, pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(request, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def held(pid):
    """What a debugger is to a process. Ends it, for nobody but this can take it afterwards."""
    ptrace(PTRACE_SEIZE, pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, WAIT_ALL_KINDS)


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # CLOCK_PROCESS_CPUTIME_ID of that process


def test_a_worker_held_by_a_debugger_is_waited_for_without_using_a_processor(elastic_run, static_c):
    worker = static_c("#include <stdio.h>\n#include <unistd.h>\n"
                      'int main(void) { printf("up %d\\n", (int)getpid()); fflush(stdout);\n'
                      "  for (;;) pause(); }")
    running = elastic_run.start("--no-python", worker)
    pid, = running.wait_for_pids(1)
    launcher = running.launcher()
    with held(pid):
        os.kill(pid, signal.SIGKILL)
        harness.wait_until(lambda: harness.read_process(pid).state == "Z", what="the worker's end")
        before = cpu_seconds(launcher)
        with pytest.raises(subprocess.TimeoutExpired):
            running.popen.wait(0.5)
        assert cpu_seconds(launcher) - before < 0.1
    result = running.wait()
    assert result.returncode == 1 and "was killed by SIGKILL" in result.stderr, result
