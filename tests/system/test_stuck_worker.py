"""A worker that even SIGKILL does not end: it waits in the kernel for a file server that never answers."""

import ctypes
import os
import re
import select
import signal
import struct
import threading

import harness
import pytest

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
LOOKUP, INIT = 1, 26
REQUEST = struct.Struct("<IIQQIIIHH")  # fuse_in_header of linux/fuse.h
REPLY = struct.Struct("<IiQ")  # fuse_out_header
INIT_REPLY = struct.Struct("<IIIIHHIIHHI28x")  # fuse_init_out of protocol 7.23 and later

# In the first round rank 1 asks for a file of that server, and rank 0 waits for whatever comes; later
# rounds end well.
WORKER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char** argv) {
  struct stat facts;
  char line[64];
  int first = !strcmp(getenv("TORCHELASTIC_RESTART_COUNT"), "0");
  int length = snprintf(line, sizeof line, "up %s %d\n", first ? getenv("RANK") : "again", (int)getpid());
  if (argc < 2 || write(1, line, (size_t)length) < 0) return 9;
  if (!first) return 0;
  if (!strcmp(getenv("RANK"), "1")) return stat(argv[1], &facts) + 5;
  for (;;) pause();
}
"""


class DeafServer:
    """Serves a FUSE file system, and lets every request but the greeting lie. Who has sent one waits in
    state D once it is killed. close() ends them all."""

    def __init__(self, directory):
        self._directory = os.fsencode(directory)
        self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        self._stop, self._stopped = os.pipe()
        self.asked = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self):
        """To be called once it is mounted; the device knows no requests before."""
        self._thread.start()

    def mount_here(self):
        """A preexec_fn: mounts it in a namespace that goes with the process and what it starts."""
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0".encode()
        if (libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) or
                libc.mount(b"deaf", self._directory, b"fuse", 0, options)):
            raise OSError(ctypes.get_errno(), "cannot mount")

    def close(self):
        if self._device < 0:
            return
        os.write(self._stopped, b".")
        if self._thread.ident is not None:
            self._thread.join()
        for fd in (self._device, self._stop, self._stopped):
            os.close(fd)
        self._device = -1

    def _serve(self):
        while True:
            ready, _, _ = select.select([self._device, self._stop], [], [])
            if self._stop in ready:
                return
            request = os.read(self._device, 1 << 17)
            _, operation, number, *_ = REQUEST.unpack_from(request)
            if operation == INIT:
                body = INIT_REPLY.pack(7, 31, 0, 0, 1, 1, 4096, 1, 0, 0, 0)
                os.write(self._device, REPLY.pack(REPLY.size + len(body), 0, number) + body)
            elif operation == LOOKUP:
                self.asked.set()


@pytest.fixture
def server(tmp_path):
    if not os.path.exists("/dev/fuse") or os.geteuid() != 0:
        pytest.skip("needs /dev/fuse, and root to mount")
    (tmp_path / "deaf").mkdir()
    serving = DeafServer(tmp_path / "deaf")
    yield serving
    serving.close()


@pytest.fixture
def begin(elastic_run, static_c, server, tmp_path):
    """begin(options...): a job of two workers of which rank 1 is stuck; with the pids of the two."""

    def start(*options):
        running = elastic_run.start("--nproc-per-node=2", "--max-restarts=1", "--shutdown-timeout=1", *options,
                                    "--no-python", static_c(WORKER), tmp_path / "deaf" / "file",
                                    env={"OMP_NUM_THREADS": "1"}, preexec_fn=server.mount_here)
        server.start()
        pids = {}
        while len(pids) < 2:
            rank, pid = running.wait_for_line(r"^up (\d) (\d+)", stream="stdout").groups()
            pids[int(rank)] = int(pid)
        assert server.asked.wait(30)
        return running, pids[0], pids[1]

    return start


@pytest.fixture
def end_of(server):
    """end_of(running, stuck): how the job ended; then the server ends, too, and the stuck one with it."""

    def wait(running, stuck):
        running.popen.wait(60)
        assert harness.read_process(stuck).state == "D"
        server.close()
        return running.wait()

    return wait


def test_the_job_fails_and_names_it_with_its_state_and_what_it_waits_for(begin, end_of):
    running, other, stuck = begin("--rdzv-conf=stuck_timeout=2")
    os.kill(other, signal.SIGKILL)
    result = end_of(running, stuck)
    assert (result.returncode, result.stdout.count("up again")) == (1, 0), result
    name = rf"process {stuck} \(\w+, state D, in \w+\)"
    warned, failed, left = [line for line in result.stderr.splitlines() if f"process {stuck} " in line]
    assert re.fullmatch(f"elastic-run: warning: killed, but still there: {name}", warned)
    assert re.search(f"error: .*{name} does not end, even when killed; --stuck-worker=ignore goes on", failed)
    assert re.fullmatch(f"elastic-run: error: {name} was killed but does not end; it is left behind", left)


def test_with_stuck_worker_ignore_the_job_goes_on_without_it(begin, end_of):
    running, other, stuck = begin("--rdzv-conf=stuck_timeout=2", "--stuck-worker=ignore")
    os.kill(other, signal.SIGKILL)
    result = end_of(running, stuck)
    assert (result.returncode, result.stdout.count("up again")) == (0, 2), result


def test_a_job_that_was_told_to_stop_does_not_wait_for_it_for_ever(begin, end_of):
    running, _, stuck = begin("--rdzv-conf=stuck_timeout=2")
    running.send_signal(signal.SIGTERM)
    result = end_of(running, stuck)
    assert result.returncode == 1
    assert f"killed, but still there: process {stuck} (" in result.stderr
    assert f"stopped by SIGTERM; killed and left behind: process {stuck} (" in result.stderr
