"""One node's supervision: workers are started, watched, stopped and restarted, and the end is told."""
# ctest: gate

import os
import re
import signal
import subprocess

import harness
import pytest

SH = ["--no-python", "sh", "-c"]
QUIET = {"OMP_NUM_THREADS": "1"}


@pytest.fixture
def fifo(tmp_path):
    """A named pipe in the workers' directory: `echo > ready` in one waits for `read line < ready` in
    another."""
    os.mkfifo(tmp_path / "ready")


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


# --- How a job ends

@pytest.mark.parametrize("ranks", [1, 2, 64])
def test_a_job_whose_workers_exit_at_once_succeeds_and_says_nothing(elastic_run, ranks):
    result = elastic_run(f"--nproc-per-node={ranks}", "--no-python", "true", env=QUIET)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_success_needs_every_rank(elastic_run):
    result = elastic_run("--nproc-per-node=3", *SH, 'echo "$RANK"', env=QUIET)
    assert result.returncode == 0
    assert sorted(result.stdout.splitlines()) == ["0", "1", "2"]


def test_a_failed_job_names_rank_and_exit_code_and_prints_nothing_of_ours_on_stdout(elastic_run, fifo):
    result = elastic_run("--nproc-per-node=2", *SH,
                         'if [ $RANK = 1 ]; then read line < ready; exit 7; fi; echo > ready; exec sleep 100',
                         env=QUIET)
    assert (result.returncode, result.stdout) == (1, "")
    lines = result.stderr.splitlines()
    assert "  stopped because of this: rank 0" in lines
    at = lines.index("elastic-run: error: the job failed; --max-restarts is 0")
    assert re.fullmatch(r"  first failure: rank 1 \(local rank 1, pid \d+\) exited with code 7", lines[at + 1])


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM"])
def test_a_worker_that_was_killed_is_told_with_the_signals_name(elastic_run, name):
    result = elastic_run(*SH, f"kill -{name[3:]} $$")
    assert result.returncode == 1
    assert re.search(rf"rank 0 \(local rank 0, pid \d+\) was killed by {name}$", result.stderr, re.MULTILINE)


def test_the_exit_code_of_a_worker_is_not_that_of_the_launcher(elastic_run):
    assert elastic_run(*SH, "exit 85").returncode == 1
    assert elastic_run(*SH, "exit 2").returncode == 1
    assert elastic_run(*SH, "exit 0").returncode == 0
    assert elastic_run().returncode == 2


def test_the_summary_says_where_the_error_file_and_the_logs_are(elastic_run, tmp_path):
    result = elastic_run("--log-dir=logs", "--max-restarts=1", *SH,
                         'echo "{}" > "$TORCHELASTIC_ERROR_FILE"; exit 3')
    (run,) = (tmp_path / "logs").iterdir()
    # Why it cannot be understood stands behind it.
    assert re.search(rf"\n  error file: {run}/attempt_1/0/error\.json.*\n    .*\n", result.stderr), result
    assert result.stderr.endswith(f"\n  log directory: {run}\n"), result
    assert (run / "attempt_0/0/error.json").exists()


def test_the_summary_says_that_no_error_file_was_written_and_what_writes_one(elastic_run, tmp_path):
    result = elastic_run("--log-dir=logs", *SH, "exit 3")
    (run,) = (tmp_path / "logs").iterdir()
    assert "\n  error file: none (decorate the script's main function with torch's @record to get one)\n" in result.stderr
    assert result.stderr.endswith(f"\n  log directory: {run}\n"), result


# Rank 0, and its child if $CHILD is set, do with SIGTERM what $ON_SIGTERM says. Rank 1 fails once they
# are ready for it. The signal is waited for, not caught: it cannot slip in before there is a handler.
STOPS = """\
import os, signal, sys, time

def tell():
    os.write(os.open("stopped", os.O_WRONLY | os.O_CREAT | os.O_APPEND), f"{name}\\n".encode())

if os.environ["RANK"] == "1":
    open("ready").read()
    sys.exit(7)
name = "worker"
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
if "CHILD" in os.environ and os.fork() == 0:
    name = "child"
else:
    open("ready", "w").close()
signal.sigwait([signal.SIGTERM])
exec(os.environ["ON_SIGTERM"])
"""


@pytest.fixture
def stop(elastic_run, script, fifo):
    """stop("what rank 0 does with SIGTERM", options...): a job of two ranks, of which rank 1 fails."""

    def run(on_sigterm, *options, env=None, **more):
        result = elastic_run("--nproc-per-node=2", *options, script("stops.py", STOPS),
                             env=QUIET | {"ON_SIGTERM": on_sigterm} | (env or {}), **more)
        assert result.returncode == 1
        return result

    return run


def test_a_rank_that_ends_by_an_error_of_its_own_when_it_is_stopped_is_no_cause(stop):
    result = stop("sys.exit(5)")
    assert result.stderr.count("first failure: rank 1") == 1
    assert "also failed" not in result.stderr
    assert "stopped because of this: rank 0\n" in result.stderr


def test_a_rank_that_ends_well_when_it_is_stopped_is_not_listed(stop):
    assert "rank 0" not in stop("sys.exit(0)").stderr


# --- Stopping

def test_a_failing_worker_stops_the_others_and_what_they_have_started(stop, tmp_path):
    stop("tell()", env={"CHILD": "yes"})
    assert sorted(lines_of(tmp_path / "stopped")) == ["child", "worker"]


def test_children_of_the_failed_worker_itself_are_stopped_too(elastic_run, script, tmp_path):
    result = elastic_run(script("fails.py", """\
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
if os.fork():
    sys.exit(7)
signal.sigwait([signal.SIGTERM])
open("stopped", "w").write("child")
"""))
    assert result.returncode == 1
    assert lines_of(tmp_path / "stopped") == ["child"]


CLEAN_UP = "time.sleep({}); tell()"


def test_a_worker_may_clean_up_within_the_shutdown_timeout(stop, tmp_path):
    stop(CLEAN_UP.format(0.3), "--shutdown-timeout=60")
    assert lines_of(tmp_path / "stopped") == ["worker"]


@pytest.mark.parametrize("options, env", [
    (["--shutdown-timeout=1"], {}),
    ([], {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "1"}),
    (["--shutdown-timeout", "1"], {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "600"}),
])
def test_a_worker_that_does_not_heed_sigterm_is_killed_after_the_shutdown_timeout(
        stop, tmp_path, options, env):
    # Without the option it would take 30 s, which is more than the test waits.
    result = stop(CLEAN_UP.format(100), *options, env=env, timeout=30)
    assert result.duration >= 1
    assert lines_of(tmp_path / "stopped") == []
    assert "stopped because of this: rank 0\n" in result.stderr


@pytest.mark.parametrize("options, env", [
    (["--shutdown-timeout=0"], {}), ([], {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "-1"}),
])
def test_a_shutdown_timeout_of_0_kills_at_once(stop, tmp_path, options, env):
    # As above: without effect it would take 30 s.
    stop(CLEAN_UP.format(100), *options, env=env, timeout=30)
    assert lines_of(tmp_path / "stopped") == []


def test_a_child_that_a_successful_worker_leaves_is_ended_with_the_job(elastic_run):
    # It holds our stdout open: the harness would see it alive.
    # It has become `sleep` before its parent ends, or it would be named as what it was before.
    becomes = r"""until [ "$(tr '\0' ' ' < /proc/$!/cmdline)" = 'sleep 100 ' ]; do :; done"""
    result = elastic_run(*SH, f"sleep 100 & {becomes}; exit 0")
    assert result.returncode == 0
    assert re.fullmatch(r"elastic-run: warning: .* process \d+ \(rank 0: sleep 100\) .*\n", result.stderr), result


def test_a_child_that_is_left_and_does_not_heed_sigterm_is_killed(elastic_run):
    result = elastic_run("--shutdown-timeout=1", *SH, "trap '' TERM; sleep 100 & exit 0", timeout=30)
    assert result.returncode == 0 and result.stderr.count("\n") == 1, result


def test_workers_die_with_a_launcher_that_was_killed(elastic_run):
    running = elastic_run.start("--nproc-per-node=2", *SH, "echo up; exec sleep 100", env=QUIET)
    for _ in range(2):
        running.wait_for_line("^up$", stream="stdout")
    running.send_signal(signal.SIGKILL)
    assert running.wait().returncode == -signal.SIGKILL
    harness.wait_until(lambda: not running.processes(), what="no worker is left")


# --- Restarts

# Every worker tells its round in `rounds`; the first $FAILURES rounds end by rank 1's failure.
ROUNDS = """
    echo "$TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS $RANK $MASTER_PORT" >> rounds
    if [ $TORCHELASTIC_RESTART_COUNT -ge $FAILURES ]; then exit 0; fi
    if [ $RANK = 1 ]; then read line < ready; exit 7; fi
    echo > ready; exec sleep 100"""


def rounds_of(tmp_path):
    return sorted(tuple(map(int, line.split())) for line in lines_of(tmp_path / "rounds"))


def test_all_ranks_are_restarted_with_a_count_that_goes_up_by_one(elastic_run, fifo, tmp_path):
    result = elastic_run("--nproc-per-node=2", "--max-restarts=5", *SH, ROUNDS, env=QUIET | {"FAILURES": "3"})
    assert (result.returncode, result.stdout) == (0, "")
    rounds = rounds_of(tmp_path)
    assert [(count, rank) for count, _, rank, _ in rounds] == [
        (count, rank) for count in range(4) for rank in range(2)]
    assert {most for _, most, _, _ in rounds} == {5}
    pattern = r"elastic-run: warning: rank 1 \(local rank 1, pid \d+\) exited with code 7; " \
              r"restarting all workers \(restart (\d) of 5\)"
    warnings = [re.fullmatch(pattern, line) for line in result.stderr.splitlines()]
    assert [warning.group(1) for warning in warnings] == ["1", "2", "3"]


def test_each_round_of_a_standalone_job_has_another_port(elastic_run, fifo, tmp_path):
    elastic_run("--nproc-per-node=2", "--max-restarts=4", *SH, ROUNDS, env=QUIET | {"FAILURES": "4"})
    ports = [{port for count, _, _, port in rounds_of(tmp_path) if count == wanted} for wanted in range(5)]
    assert all(len(of_round) == 1 for of_round in ports)
    # The kernel chooses them: now and then it may choose one again.
    assert len(set.union(*ports)) > 2


def test_the_job_fails_when_its_restarts_are_spent(elastic_run, fifo, tmp_path):
    result = elastic_run("--nproc-per-node=2", "--max-restarts=2", *SH, ROUNDS, env=QUIET | {"FAILURES": "9"})
    assert (result.returncode, result.stdout) == (1, "")
    assert [count for count, _, rank, _ in rounds_of(tmp_path) if rank == 0] == [0, 1, 2]
    lines = result.stderr.splitlines()
    summary = lines[lines.index("elastic-run: error: the job failed; 2 of 2 restarts were used"):]
    assert re.fullmatch(r"  first failure: rank 1 \(local rank 1, pid \d+\) exited with code 7", summary[1])


def test_a_failure_restarts_ranks_that_had_succeeded_already(elastic_run, fifo, tmp_path):
    result = elastic_run("--nproc-per-node=2", "--max-restarts=1", *SH, """
        echo "$TORCHELASTIC_RESTART_COUNT 1 $RANK 1" >> rounds
        if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then exit 0; fi
        if [ $RANK = 0 ]; then echo $$ > ready; exit 0; fi
        read other < ready
        while kill -0 $other 2> /dev/null; do :; done
        exit 7""", env=QUIET)
    assert result.returncode == 0
    assert [(count, rank) for count, _, rank, _ in rounds_of(tmp_path)] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_ranks_that_fail_together_cost_one_restart(elastic_run):
    for _ in range(10):
        result = elastic_run("--nproc-per-node=8", "--max-restarts=1", *SH,
                             "exit $((1 - $TORCHELASTIC_RESTART_COUNT))", env=QUIET)
        assert result.returncode == 0, result
        assert result.stderr.count("restart 1 of 1") == 1


# A worker takes its rank's lock for as long as it or a child of its lives, and says if it is taken.
# In the first round a child stays that does not heed SIGTERM; then rank 1 fails.
HOLDS_A_LOCK = """\
import fcntl, os, signal, sys
rank, count = os.environ["RANK"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
lock = os.open("lock" + rank, os.O_RDWR | os.O_CREAT, 0o600)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    os.write(1, f"rank {rank} of round {count} met a process of the round before\\n".encode())
    os._exit(9)
if count < 3:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        # Its parent, the leader of the group, will be gone, or will be killed with it.
        os.close(1)
        os.close(2)
        while True:
            signal.pause()
    if rank == "0":
        open("ready", "w").close()
        signal.pause()
    open("ready").close()
    sys.exit(1)
"""


def test_new_ranks_start_only_when_every_process_of_the_old_groups_is_gone(
        elastic_run, script, fifo):
    result = elastic_run("--nproc-per-node=2", "--max-restarts=3", "--shutdown-timeout=1",
                         script("lock.py", HOLDS_A_LOCK), env=QUIET)
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.count("restarting all workers") == 3


def test_a_program_that_is_gone_at_a_restart_ends_the_job_and_is_named(elastic_run, script):
    gone = script("gone.sh", '#!/bin/sh\nrm "$0"\nexit 1\n')
    result = elastic_run("--max-restarts=5", "--no-python", gone)
    assert result.returncode == 1
    assert f"local rank 0 was not started: cannot execute {gone}: No such file or directory" in result.stderr
    assert "restart 2" not in result.stderr


def test_a_long_monitor_interval_delays_nothing(elastic_run):
    result = elastic_run("--monitor-interval=3600", "--max-restarts=1", *SH,
                         "exit $((1 - $TORCHELASTIC_RESTART_COUNT))")
    assert result.returncode == 0


# --- How many workers

def count_workers(elastic_run, *options, **more):
    result = elastic_run(*options, *SH, "echo worker", **more)
    assert result.returncode == 0, result
    return result.stdout.count("worker")


NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.parametrize("word", ["cpu", "auto"])
def test_cpu_means_the_cpus_that_the_launcher_may_run_on_and_so_does_auto_without_a_gpu(elastic_run, word):
    usable = os.sched_getaffinity(0)
    assert count_workers(elastic_run, f"--nproc-per-node={word}", env=NO_GPU) == len(usable)
    one = max(usable)
    assert count_workers(elastic_run, f"--nproc-per-node={word}", env=NO_GPU,
                         preexec_fn=lambda: os.sched_setaffinity(0, {one})) == 1


def test_gpu_without_a_visible_gpu_is_an_error(elastic_run):
    result = elastic_run("--nproc-per-node=gpu", "--no-python", "true", env=NO_GPU)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == ("elastic-run: error: --nproc-per-node=gpu: no NVIDIA GPU is visible with "
                             "CUDA_VISIBLE_DEVICES=; give the number of workers, or use auto or cpu\n")


@pytest.mark.requires_gpu
@pytest.mark.parametrize("visible", [None, "0", "0,0", "-1", "0,99"])
def test_gpu_means_as_many_workers_as_the_driver_shows_devices(elastic_run, visible):
    env = {"CUDA_VISIBLE_DEVICES": visible}
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=True)
    shown = {None: len(listed.stdout.splitlines()), "0": 1, "0,0": 0, "-1": 0, "0,99": 1}[visible]
    for word in ("gpu", "auto"):
        if shown:
            assert count_workers(elastic_run, f"--nproc-per-node={word}", env=env) == shown
        elif word == "gpu":
            assert elastic_run("--nproc-per-node=gpu", "--no-python", "true", env=env).returncode == 2


def test_auto_config_takes_the_node_count_from_node_num(elastic_run):
    assert count_workers(elastic_run, "--auto_config", "--nnodes=2", "--nproc_per_node=2",
                         env=NO_GPU | {"NODE_NUM": "1"}) == 2
    for wrong in ("2", "0", "x"):
        result = elastic_run("--auto_config", "--no-python", "true", env={"NODE_NUM": wrong})
        assert result.returncode == 2
        assert f"NODE_NUM={wrong}" in result.stderr


# --- Flags

def test_variables_set_what_the_command_line_leaves_open(elastic_run):
    env = {"PET_NPROC_PER_NODE": "3", "PET_NO_PYTHON": "1", "PET_MAX_RESTARTS": "1",
           "PET_MONITOR_INTERVAL": "1", "PET_START_METHOD": "fork", "PET_NNODES": "1"}
    text = 'echo "$WORLD_SIZE $TORCHELASTIC_MAX_RESTARTS"'
    assert elastic_run("sh", "-c", text, env=env).stdout == "3 1\n" * 3
    assert elastic_run("--nproc-per-node=1", "sh", "-c", text, env=env).stdout == "1 1\n"


def test_one_line_says_that_checkpoints_in_memory_are_not_saved_and_the_job_runs(elastic_run):
    for flags, env in ((["--save-at-breakpoint"], {}), ([], {"PET_SAVE_AT_BREAKPOINT": "1"})):
        result = elastic_run(*flags, "--no-python", "echo", "trained", env=env)
        assert result.returncode == 0 and result.stdout == "trained\n"
        (warning,) = result.stderr.splitlines()
        assert re.match(r"elastic-run: warning: \S*SAVE.AT.BREAKPOINT\S*: checkpoints that are only in memory are not "
                        "saved when a worker fails; ", warning, re.IGNORECASE)
