"""A worker that even SIGKILL does not end: it waits in the kernel for a file server that never answers."""
# ctest: gate

import os
import re
import signal

import harness
import pytest

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


@pytest.fixture
def begin(elastic_run, static_c, deaf_server):
    """begin(options...): a job of two workers of which rank 1 is stuck; with the pids of the two."""

    def start(*options):
        running = elastic_run.start("--nproc-per-node=2", "--max-restarts=1", "--shutdown-timeout=1", *options,
                                    "--no-python", static_c(WORKER), deaf_server.directory / "file",
                                    env={"OMP_NUM_THREADS": "1"}, preexec_fn=deaf_server.mount_here)
        deaf_server.start()
        pids = {}
        while len(pids) < 2:
            rank, pid = running.wait_for_line(r"^up (\d) (\d+)", stream="stdout").groups()
            pids[int(rank)] = int(pid)
        assert deaf_server.asked.wait(60)
        return running, pids[0], pids[1]

    return start


@pytest.fixture
def end_of(deaf_server):
    """end_of(running, stuck): how the job ended; then the server ends, too, and the stuck one with it."""

    def wait(running, stuck):
        running.popen.wait(harness.RUN_PATIENCE)
        assert harness.read_process(stuck).state == "D"
        deaf_server.close()
        return running.wait()

    return wait


def test_the_job_fails_and_names_it_with_its_state_and_what_it_waits_for(begin, end_of):
    running, other, stuck = begin("--rdzv-conf=stuck_timeout=2")
    os.kill(other, signal.SIGKILL)
    result = end_of(running, stuck)
    assert (result.returncode, result.stdout.count("up again")) == (1, 0), result
    name = rf"process {stuck} \(\w+, state D, in \w+\)"
    warned, told, failed, left = [line for line in result.stderr.splitlines() if f"process {stuck} " in line]
    assert re.fullmatch(f"elastic-run: warning: {name} has not exited after SIGKILL", warned)
    assert re.search(f"error: .*{name} survived SIGKILL; --stuck-worker=ignore lets the job go on", failed)
    assert re.fullmatch(f"  did not exit after SIGKILL: {name}", told)
    assert re.fullmatch(f"elastic-run: error: {name} did not exit after SIGKILL; giving up on it", left)


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
    assert re.search(rf"warning: process {stuck} \(.*\) has not exited after SIGKILL", result.stderr)
    assert f"stopped by SIGTERM; did not exit after SIGKILL: process {stuck} (" in result.stderr
