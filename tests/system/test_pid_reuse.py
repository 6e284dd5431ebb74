"""Process numbers are given again and again: elastic-run ends its own processes and nobody else's."""
# ctest: computes

import os
import pathlib
import re
import shutil
import subprocess

import pytest

RESTARTS = 150
RANKS = 8
PID_MAX = 450  # the kernel gives numbers from 300 on after the first time round: 150 of them
FORKS_IN_A_ROUND = 150  # at least, and up to 100 more: by then another part of the numbers is in use each time

# PID 1 of the namespace: starts elastic-run and, beside it, processes that are none of its business, each
# leading a session and a group of its own. There are always BYSTANDERS of them, and the oldest is replaced
# all the time; STAYERS stay. They end well when we say so by SIGUSR1: any other end was somebody else's doing.
# Says at the end: forks, wraps of the numbers, ends that were not ours, and elastic-run's status.
NEIGHBOURS = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
enum { BYSTANDERS = 50, STAYERS = 15, ALL = BYSTANDERS + STAYERS };
static pid_t pids[ALL];
static long forks, wraps, killed;
static pid_t last;
static _Atomic unsigned* forked;  // for the workers
static pid_t bystander(void) {
  pid_t pid = fork();
  if (pid == 0) {
    setsid();
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    int number;
    sigwait(&wanted, &number);
    _exit(0);
  }
  if (pid < 0) { perror("fork"); exit(3); }
  ++forks;
  wraps += pid < last;
  last = pid;
  atomic_fetch_add(forked, 1);
  return pid;
}
static void end(pid_t pid) {
  int status;
  kill(pid, SIGUSR1);
  if (waitpid(pid, &status, 0) != pid || status != 0) {
    ++killed;
    fprintf(stderr, "bystander %d: wait status %d\n", (int)pid, status);
  }
}
int main(int argc, char** argv) {
  if (argc < 4) return 3;
  int limit = open("/proc/sys/kernel/pid_max", O_WRONLY);
  if (limit < 0 || write(limit, argv[1], strlen(argv[1])) < 0) { perror("pid_max"); return 4; }
  int shared = open(argv[2], O_RDWR);
  forked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pid_t elastic_run = fork();
  if (elastic_run == 0) { execv(argv[3], argv + 3); perror("execv"); _exit(3); }
  sigprocmask(SIG_BLOCK, &blocked, &before);
  for (int i = 0; i < ALL; ++i) pids[i] = bystander();
  int status = -1;
  for (int oldest = 0; waitpid(elastic_run, &status, WNOHANG) == 0; oldest = (oldest + 1) % BYSTANDERS) {
    end(pids[oldest]);
    pids[oldest] = bystander();
  }
  for (int i = 0; i < ALL; ++i) end(pids[i]);
  printf("forks %ld wraps %ld killed %ld status %d\n", forks, wraps, killed, status);
  return 0;
}
"""

# Ranks 4 to 7 end well at once, so that their numbers are given to others while the round goes on; what 4 and
# 5 leave in their groups ends a little later by itself, and the group's number is free only then. Rank 1
# leaves a process in a session of its own, rank 2 one in its group. Rank 0 fails when all were there and every
# number has been given anew since. Each rank of each attempt says that it was there.
WORKER = r"""
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char** argv) {
  if (argc != 4) return 3;
  int shared = open(argv[1], O_RDWR);
  _Atomic unsigned* forked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  _Atomic unsigned* came = forked + 1;  // ranks of all attempts
  int rank = atoi(getenv("RANK")), attempt = atoi(getenv("TORCHELASTIC_RESTART_COUNT"));
  char line[32];
  int length = snprintf(line, sizeof line, "%d %d\n", attempt, rank);
  if (write(1, line, (size_t)length) != length) return 3;
  atomic_fetch_add(came, 1);
  if (attempt == atoi(argv[2])) return 0;
  if (rank == 4 || rank == 5) {
    pid_t leader = getpid();
    if (fork() != 0) return 0;
    while (getppid() == leader) usleep(200);
    usleep(5000);
    return 0;
  }
  if (rank > 5) return 0;
  if (rank == 0) {
    while (atomic_load(came) < (unsigned)(attempt + 1) * 8) usleep(200);
    unsigned begun = atomic_load(forked);
    unsigned enough = (unsigned)(atoi(argv[3]) + attempt * 37 % 100);
    while (atomic_load(forked) - begun < enough) usleep(200);
    return 1;
  }
  if (rank == 1 && fork() == 0) setsid();
  if (rank == 2) fork();
  for (;;) pause();
}
"""


def has_pid_max_of_its_own():
    """Since Linux 6.14 each pid namespace has its own; before, this would be the whole machine's."""
    look = "echo 400 >/proc/sys/kernel/pid_max && cat /proc/sys/kernel/pid_max"
    before = pathlib.Path("/proc/sys/kernel/pid_max").read_text()
    release = tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())
    if release < (6, 14):
        return False
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", look],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() == "400" and pathlib.Path("/proc/sys/kernel/pid_max").read_text() == before


@pytest.mark.parametrize("options", [[], ["--shutdown-timeout=0"]], ids=["sigterm", "sigkill"])
@pytest.mark.parametrize("cgroup", ["cgroup", "no cgroup"])
def test_no_bystander_is_killed_while_process_numbers_are_given_again(
        elastic_run, static_c, tmp_path, cgroup, options, sanitized):
    if os.geteuid() != 0 or not shutil.which("unshare") or not has_pid_max_of_its_own():
        pytest.skip("needs root, unshare, and a pid_max for each pid namespace (Linux 6.14)")
    if cgroup == "cgroup" and " - cgroup2 " not in pathlib.Path("/proc/self/mountinfo").read_text():
        pytest.skip("no cgroup v2 is mounted")
    restarts = RESTARTS // 5 if sanitized else RESTARTS
    shared = tmp_path / "shared"
    shared.write_bytes(bytes(4096))
    result = elastic_run.start(
        static_c(NEIGHBOURS), str(PID_MAX), shared, elastic_run.binary, "--standalone", "--no-python",
        f"--nproc-per-node={RANKS}", f"--max-restarts={restarts}", *options,
        static_c(WORKER), shared, str(restarts), str(FORKS_IN_A_ROUND),
        program=["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"],
        env={} if cgroup == "cgroup" else {"ELASTIC_RUN_CGROUP": "off"}).wait(timeout=110)
    assert result.returncode == 0, result
    lines = result.stdout.splitlines()
    forks, wraps, killed, status = map(int, re.fullmatch(
        r"forks (\d+) wraps (\d+) killed (\d+) status (\d+)", lines.pop()).groups())
    assert killed == 0, result.stderr
    assert status == 0, result.stderr
    assert forks >= restarts * FORKS_IN_A_ROUND and wraps >= restarts
    # Every rank was in every attempt, once; no attempt began before the one before it.
    came = [tuple(map(int, line.split())) for line in lines]
    expected = {(attempt, rank) for attempt in range(restarts + 1) for rank in range(RANKS)}
    assert len(came) == len(expected) and not expected.symmetric_difference(came)
    assert [attempt for attempt, _ in came] == sorted(attempt for attempt, _ in came)
    reasons = re.findall(r"rank (\d) .* exited with code 1; restarting all workers \(restart (\d+) of", result.stderr)
    assert reasons == [("0", str(number)) for number in range(1, restarts + 1)]
