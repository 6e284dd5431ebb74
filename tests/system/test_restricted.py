"""Places that lack something: old kernels, filters of system calls, no /proc, nothing to write to, low
limits. elastic-run works there, or says what it lacks.

The sanitizers need /proc, processes and descriptors themselves."""
# ctest: release-only

import os
import pathlib
import resource
import shutil
import signal

import harness
import pytest
from workers import LEAVE

FILTERS = {
    "pidfd_open forbidden": "1 434",
    "clone3 forbidden": "1 435",
    "pidfd_open and clone3 unknown": "38 434-435",
    "Linux 4.18": harness.YOUNGER_THAN_4_18,
}

# Two processes a worker, one of them in a session of its own; "up" by each. Fails in the first round on
# request, once all are up.
WORKER = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void up(void) {
  char line[64];
  int length = snprintf(line, sizeof line, "up %d\n", (int)getpid());
  if (write(1, line, (size_t)length) < 0) _exit(9);
}
int main(int argc, char** argv) {
  int first = !strcmp(getenv("TORCHELASTIC_RESTART_COUNT"), "0");
  if (argc > 1 && !strcmp(argv[1], "restart") && !first) return 0;
  if (fork() == 0) {
    if (argc > 2) setsid();
    up();
    for (;;) pause();
  }
  up();
  for (;;) pause();
}
"""


@pytest.fixture(params=FILTERS)
def filtered(request, elastic_run, refusing):
    """The command line of elastic-run under one of the filters."""
    return [*refusing(FILTERS[request.param]), elastic_run.binary]


def workers_among(pids):
    return [pid for pid in pids if os.getpgid(pid) == pid and os.getsid(pid) == pid]


# --- System calls that are not there

def test_the_filter_filters(elastic_run, refusing, script):
    asks = script("asks.py", "import os\ntry: os.pidfd_open(os.getpid()); print('there')\n"
                             "except OSError as error: print(error.errno)\n")
    for wanted, answer in [("1 434", "1"), ("38 424-999", "38"), ("38 435-999", "there")]:
        assert elastic_run(program=[*refusing(wanted), "python3", asks]).stdout == f"{answer}\n"


def test_a_failed_round_is_cleared_away_and_the_next_succeeds(elastic_run, static_c, filtered, with_cgroup):
    running = elastic_run.start("--nproc-per-node=2", "--max-restarts=1", "--shutdown-timeout=20", "--no-python",
                                static_c(WORKER), "restart", "strays", program=filtered, env=with_cgroup)
    everybody = running.wait_for_pids(4)
    os.kill([pid for pid in everybody if harness.read_process(pid).parent == running.launcher()][0], signal.SIGKILL)
    result = running.wait()
    assert result.returncode == 0, result
    assert "restart 1 of 1" in result.stderr
    assert not any(map(harness.alive, everybody))


@pytest.mark.parametrize("killed", ["launcher", "outer"])
def test_whoever_is_killed_nothing_stays(elastic_run, static_c, filtered, with_cgroup, killed):
    running = elastic_run.start("--nproc-per-node=2", "--no-python", static_c(WORKER), "stay", "strays",
                                program=filtered, env=with_cgroup)
    everybody = running.wait_for_pids(4)
    os.kill(running.launcher() if killed == "launcher" else running.pid, signal.SIGKILL)
    harness.wait_until(lambda: not any(map(harness.alive, everybody)), what="all to end")
    assert running.wait().returncode == (1 if killed == "launcher" else -signal.SIGKILL)


def test_a_signal_ends_the_job_in_order(elastic_run, static_c, filtered):
    running = elastic_run.start("--nproc-per-node=2", "--no-python", static_c(WORKER), program=filtered)
    everybody = running.wait_for_pids(4)
    running.send_signal(signal.SIGTERM)
    result = running.wait()
    assert (result.returncode, result.stderr.splitlines()[-1]) == (
        1, "elastic-run: stopped by SIGTERM; all workers have ended")
    assert not any(map(harness.alive, everybody))


# Without close_range descriptors are found in /proc/self/fd, and without that by counting.
@pytest.mark.parametrize("proc", [True, False], ids=["proc", "no proc"])
def test_no_descriptor_is_handed_on_on_an_old_kernel(elastic_run, static_c, refusing, script, proc):
    lists = static_c(r"""
#include <fcntl.h>
#include <stdio.h>
int main(void) { for (int fd = 0; fd < 1024; ++fd) if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd); return 0; }
""")
    inherited = os.open("/dev/null", os.O_RDONLY)
    high = 900
    os.dup2(inherited, high)
    os.close(inherited)
    program = [*refusing(FILTERS["Linux 4.18"]), elastic_run.binary]
    if not proc:
        program = without(script, "umount -l /proc", program)
    try:
        result = elastic_run("--no-python", lists, program=program, pass_fds=[high],
                             preexec_fn=with_files(1024))
    finally:
        os.close(high)
    assert (result.returncode, result.stdout) == (0, "0 1 2 ")


@pytest.mark.time_limit(300)
def test_pytorch_trains_on_an_old_kernel_without_dev_shm(elastic_run, refusing, script):
    trains = script("trains.py", """\
import os, torch, torch.distributed as dist
assert not os.path.ismount("/dev/shm")
dist.init_process_group("gloo")
tensor = torch.ones(1)
dist.all_reduce(tensor)
os.write(1, f"sum {int(tensor)}\\n".encode())
dist.barrier()
""" + LEAVE)
    program = without(script, "while mountpoint -q /dev/shm; do umount -l /dev/shm; done",
                      [*refusing(FILTERS["Linux 4.18"]), elastic_run.binary])
    result = elastic_run("--nproc-per-node=2", trains, program=program, timeout=280)
    assert result.returncode == 0, result
    assert result.stdout == "sum 2\n" * 2


# --- File systems that are not there

def without(script, commands, program):
    """`program` in a mount namespace of its own in which these commands of the shell were run first."""
    prepare = script("prepare.sh", f"set -e\n{commands}\ncd \"$PWD\"  # as it is now\nexec \"$@\"\n")
    return ["unshare", "--mount", "--propagation", "private", "sh", prepare, *program]


def test_without_proc_a_job_restarts_and_its_groups_are_ended(elastic_run, static_c, script):
    program = without(script, "umount -l /proc", [elastic_run.binary])
    running = elastic_run.start("--nproc-per-node=2", "--max-restarts=1", "--no-python", static_c(WORKER), "restart",
                                program=program)
    everybody = running.wait_for_pids(4)
    os.kill(workers_among(everybody)[0], signal.SIGKILL)
    result = running.wait()
    assert result.returncode == 0, result
    assert not any(map(harness.alive, everybody))


@pytest.mark.parametrize("killed", ["launcher", "outer"])
def test_without_proc_the_groups_of_all_workers_end_with_the_launcher(elastic_run, static_c, script, killed):
    program = without(script, "umount -l /proc", [elastic_run.binary])
    running = elastic_run.start("--nproc-per-node=2", "--no-python", static_c(WORKER), program=program)
    everybody = running.wait_for_pids(4)
    os.kill(running.launcher() if killed == "launcher" else running.pid, signal.SIGKILL)
    harness.wait_until(lambda: not any(map(harness.alive, everybody)), what="all to end")
    assert running.wait().returncode == (1 if killed == "launcher" else -signal.SIGKILL)


@pytest.mark.time_limit(300)
def test_without_proc_no_group_is_left_whenever_the_launchers_last_thread_ends(elastic_run, static_c, script):
    """Its children may be the outer process's before it can be waited for: seen in 6 of 100 launchers."""
    program = without(script, "umount -l /proc", [elastic_run.binary])
    for _ in range(40):
        running = elastic_run.start("--nproc-per-node=2", "--no-python", static_c(WORKER), program=program)
        everybody = running.wait_for_pids(4)
        os.kill(running.launcher(), signal.SIGKILL)
        assert running.wait().returncode == 1
        harness.wait_until(lambda: not any(map(harness.alive, everybody)), what="all to end")


@pytest.fixture
def read_only(elastic_run, script, tmp_path):
    """read_only(places): the command line with which elastic-run finds these directories read-only."""

    def program(places):
        each = "\n".join(f"mount --bind '{place}' '{place}'; mount -o remount,ro,bind '{place}'" for place in places)
        return without(script, each, [elastic_run.binary])

    return program


def test_where_nothing_can_be_written_the_job_runs_without_log_directory(elastic_run, read_only, static_c, tmp_path):
    says = static_c('#include <stdio.h>\n#include <stdlib.h>\n'
                    'int main(void) { printf("[%s]\\n", getenv("TORCHELASTIC_ERROR_FILE")); return 0; }')
    result = elastic_run("--no-python", says, program=read_only(["/tmp", "/var/tmp", tmp_path]))
    assert (result.returncode, result.stdout) == (0, "[]\n"), result
    assert result.stderr.count("no log directory and no error files") == 1


def test_a_temporary_directory_that_is_read_only_is_passed_over(elastic_run, read_only, script, tmp_path):
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    says = script("says.py", "import os; print(os.environ['TORCHELASTIC_ERROR_FILE'])")
    result = elastic_run(says, env={"TMPDIR": str(nowhere), "TMP": str(tmp_path)}, program=read_only([nowhere]))
    assert result.returncode == 0, result
    assert result.stdout.startswith(f"{tmp_path}/torchelastic_")
    assert result.stderr == (f"elastic-run: warning: TMPDIR={nowhere} cannot be written; log directories go to "
                             f"{tmp_path}\n")


# --- Low limits

# elastic-run itself counts as three processes: the outer one, the launcher, and its thread for the logs.

@pytest.mark.parametrize("processes, message", [
    (1, "cannot start the launcher: Resource temporarily unavailable; raise the limit of processes"),
    (2, "local rank 0 was not started: cannot start a process for "),
    (3, "local rank 0 was not started: cannot start a process for "),
    (4, "local rank 1 was not started: cannot start a process for "),
])
def test_a_limit_of_processes_that_is_too_low_is_told_and_nothing_stays(elastic_run, static_c, processes, message):
    result = limited(elastic_run, processes, "--nproc-per-node=2", "--no-python", static_c(WORKER), "restart")
    assert result.returncode == 1
    assert message in result.stderr and "ulimit -u" in result.stderr, result


def test_a_limit_of_processes_that_is_just_enough_is_enough(elastic_run, static_c):
    ends = static_c("int main(void) { return 0; }")
    result = limited(elastic_run, 5, "--nproc-per-node=2", "--no-python", ends)
    assert (result.returncode, result.stderr.count("error")) == (0, 0), result


def limited(elastic_run, processes, *arguments):
    """Runs elastic-run as a user of no other process, who may have so many; root has no such limit."""
    user = 20_000 + os.getpid() % 40_000  # of no other test that runs now
    binary = shutil.copy(elastic_run.binary, elastic_run.directory / "elastic-run")
    for directory in [elastic_run.directory, *elastic_run.directory.parents]:
        if directory.stat().st_uid == os.getuid():
            directory.chmod(directory.stat().st_mode | 0o011)
    for file in arguments:
        for directory in [*pathlib.Path(file).parents][:-1]:
            if directory.is_dir() and directory.stat().st_uid == os.getuid():
                directory.chmod(directory.stat().st_mode | 0o011)

    own = elastic_run.directory / "tmp"
    own.mkdir(exist_ok=True)
    os.chown(own, user, user)

    def become_user():
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)

    result = elastic_run(*arguments, program=[binary], preexec_fn=become_user, env={"TMPDIR": str(own)})
    left = [path for path in pathlib.Path("/tmp").glob("torchelastic_*") if path.stat().st_uid == user]
    assert not left, "the user's files are not in its own directory"
    return result


def with_files(limit):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


@pytest.mark.parametrize("limit", [4, 8, 16, 24, 30])
def test_a_limit_of_open_files_that_is_too_low_is_told_before_anything_starts(
        elastic_run, static_c, limit):
    result = elastic_run("--nproc-per-node=8", "--no-python", static_c(WORKER), preexec_fn=with_files(limit),
                         env={"OMP_NUM_THREADS": "1"})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (f"elastic-run: error: the limit of open files is {limit}: --nproc-per-node=8 needs 53, "
                             "and one more for each connection to the worker store; raise it (ulimit -Hn)\n")


def test_a_limit_of_open_files_that_is_just_enough_is_enough_for_restarts(elastic_run, static_c):
    running = elastic_run.start("--nproc-per-node=8", "--max-restarts=1", "--no-python", static_c(WORKER), "restart",
                                "strays", preexec_fn=with_files(53))
    everybody = running.wait_for_pids(16)
    os.kill([pid for pid in everybody if harness.read_process(pid).parent == running.launcher()][0], signal.SIGKILL)
    assert running.wait().returncode == 0


def test_connections_for_which_no_descriptor_is_left_are_refused_with_a_message(elastic_run, script):
    worker = script("worker.py", """\
import os, socket
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
kept = [socket.create_connection(address) for _ in range(30)]
kept[-1].settimeout(50)
assert kept[-1].recv(1) == b"", "the last one should have been closed"
""")
    result = elastic_run(worker, preexec_fn=with_files(40))
    assert result.returncode == 0, result
    assert result.stderr == ("elastic-run: warning: the limit of open files, 40, is reached: further connections are "
                             "refused; raise it (ulimit -Hn)\n")
# ctest: gate
