"""What workers leave in the background: ended and named after success, or left alive with --leave-background."""
# ctest: gate

import fcntl
import os
import re
import signal

import harness
import pytest
from workers import free_port

# Leaves a process and succeeds, or what STATUS says. It says "up PID" to a file, and holds stdout and stderr as the worker
# had them: who reads a pipe to its end would wait for it for ever.
LEAVES = """\
import os, signal, sys, time
kind, here = sys.argv[1], os.environ["RANK"]
if os.environ["TORCHELASTIC_RESTART_COUNT"] == os.environ.get("LEAVES_IN", "0"):
    ready, tell = os.pipe()
    if os.fork() == 0:
        if kind != "child":
            os.setsid()
        if kind == "double" and os.fork() != 0:
            os._exit(0)
        with open(f"left.{here}.new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(f"left.{here}.new", f"left.{here}")
        os.write(tell, b"x")
        while True:
            if os.path.exists("write"):
                os.write(2, b"written to stderr\\n")
                os.rename("write", "written")
            time.sleep(0.01)
    os.read(ready, 1)
if "STAYS" in os.environ:
    os.write(1, b"up\\n")
    time.sleep(1000)
sys.exit(int(os.environ.get("STATUS", "0")))
"""

KINDS = pytest.mark.parametrize("kind", ["child", "setsid", "double"])


def left(tmp_path, rank=0):
    return int((tmp_path / f"left.{rank}").read_text())


@pytest.fixture
def run(elastic_run, script, tmp_path):
    """run(options..., kind): one run with its output in files, which whoever is left behind may hold."""

    def start(*options, kind="child", env=None):
        with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
            return elastic_run.start(*options, script("leaves.py", LEAVES), kind, stdout=out, stderr=err,
                                     env={"OMP_NUM_THREADS": "1"} | (env or {}))

    yield start
    elastic_run.kill_all()


def errors(tmp_path):
    return (tmp_path / "err").read_text()


# --- Ended and named

@KINDS
def test_what_is_ended_after_success_is_named_in_one_warning(run, tmp_path, with_cgroup, kind):
    assert run("--nproc-per-node=2", kind=kind, env=with_cgroup).wait().returncode == 0
    pids = [left(tmp_path, rank) for rank in (0, 1)]
    assert not any(map(harness.alive, pids))
    (warning,) = errors(tmp_path).splitlines()
    for rank, pid in enumerate(pids):
        of = f"rank {rank}: " if kind == "child" else ""
        assert re.search(rf"process {pid} \({of}\S*python\S* -u \S+leaves.py {kind}\)", warning), warning
    assert warning.startswith("elastic-run: warning: all workers succeeded; killing the processes they left running: ")
    assert warning.endswith(" (--leave-background keeps them)")


def test_of_many_that_are_ended_a_few_are_named_and_a_long_command_is_cut(elastic_run):
    leaves = f"for i in 1 2 3 4 5 6 7 8 9 10; do sh -c 'read line < /dev/zero' {'x' * 500} & done"
    result = elastic_run("--no-python", "sh", "-c", leaves)
    assert result.returncode == 0
    (warning,) = result.stderr.splitlines()
    assert warning.count("process ") == 8 and " and 2 more (--leave" in warning
    assert len(warning) < 2000


def test_what_ends_by_itself_with_its_worker_is_not_named(elastic_run):
    """As multiprocessing's resource tracker does: its pipe's end tells it. It has a tenth of a second for that, here 2 s."""
    result = elastic_run("--no-python", "bash", "-c", "exec 3> >(cat > /dev/null); echo text >&3",
                         env=harness.PATIENT)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_job_that_fails_ends_all_and_names_nobody(run, tmp_path):
    assert run(env={"STATUS": "3"}).wait().returncode == 1
    assert not harness.alive(left(tmp_path))
    assert "background" not in errors(tmp_path)


# --- Left alive

@KINDS
def test_leave_background_lets_it_live_after_success(run, tmp_path, with_cgroup, kind):
    running = run("--leave-background", "--nproc-per-node=2", kind=kind, env=with_cgroup | harness.PATIENT)
    launcher = running.pid
    assert running.wait().returncode == 0
    assert errors(tmp_path) == ""
    for rank in (0, 1):
        process = harness.read_process(left(tmp_path, rank))
        assert process.state not in "ZX" and process.parent != launcher


def test_what_lives_on_can_still_write_to_stderr(run, tmp_path):
    assert run("--leave-background", env=harness.PATIENT).wait().returncode == 0
    (tmp_path / "write").touch()
    harness.wait_until((tmp_path / "written").exists, what="it has written")
    assert harness.alive(left(tmp_path))
    assert errors(tmp_path) == "written to stderr\n"


@pytest.mark.parametrize("options", [["-t", "3"], ["-r", "3", "--log-max-bytes=1M"], ["--stderr-tail=auto"]], ids=" ".join)
def test_a_pipe_that_it_holds_does_not_hold_elastic_run_up(run, tmp_path, options):
    running = run("--leave-background", *options)
    assert running.wait().returncode == 0
    assert harness.alive(left(tmp_path))


def test_a_log_file_that_it_holds_stays_its_own(run, tmp_path):
    assert run("--leave-background", "-r", "3", "--log-dir=logs").wait().returncode == 0
    (tmp_path / "write").touch()
    harness.wait_until((tmp_path / "written").exists, what="it has written")
    (log,) = (tmp_path / "logs").rglob("stderr.log")
    assert log.read_text() == "written to stderr\n"


@pytest.mark.parametrize("how", ["failure", "signal", "launcher killed", "guardian killed"])
def test_with_leave_background_everything_but_success_ends_all(run, tmp_path, how):
    env = {"STATUS": "3"} if how == "failure" else {"STAYS": "yes"}
    running = run("--leave-background", kind="double", env=env)
    pid = harness.wait_until(lambda: (tmp_path / "left.0").exists() and left(tmp_path), what="it is left")
    if how == "signal":
        running.send_signal(signal.SIGTERM)
    elif how == "launcher killed":
        os.kill(running.launcher(), signal.SIGKILL)
    elif how == "guardian killed":
        running.send_signal(signal.SIGKILL)
    assert running.wait().returncode == (-signal.SIGKILL if how == "guardian killed" else 1)
    harness.wait_until(lambda: not harness.alive(pid), what="it has ended")


def test_with_leave_background_a_restart_ends_what_the_failed_workers_left(run, tmp_path):
    assert run("--leave-background", "--max-restarts=1", env={"STATUS": "3"}).wait().returncode == 1
    assert not harness.alive(left(tmp_path))


def test_with_leave_background_a_launcher_that_hangs_at_its_end_leaves_it_alive(run, tmp_path):
    """Nobody reads its events, so that its thread for them hangs."""
    os.mkfifo(tmp_path / "events")
    reader = os.open(tmp_path / "events", os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        running = run("--leave-background", f"--events={tmp_path / 'events'}", "--log-level=debug")
        assert running.wait().returncode == 0
    finally:
        os.close(reader)
    assert harness.alive(left(tmp_path))


# --- Many nodes

@pytest.mark.parametrize("fails", [False, True], ids=["success", "failure of another node"])
def test_with_many_nodes_it_lives_on_only_if_the_whole_job_succeeds(elastic_run, script, tmp_path, fails):
    leaves = script("leaves.py", LEAVES.replace("sys.exit(", "sys.exit(7) if here == os.environ.get('FAILS') else sys.exit("))
    port = free_port()
    env = {"OMP_NUM_THREADS": "1"} | ({"FAILS": "1"} if fails else {})
    nodes = []
    with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        for _ in range(2):
            nodes.append(elastic_run.start("--leave-background", "--nnodes=2", "--rdzv-backend=c10d",
                                           f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=job", leaves, "double",
                                           stdout=out, stderr=err, env=env))
    assert {node.wait().returncode for node in nodes} == {1 if fails else 0}
    # A worker that was stopped because the other one failed may not have come to leave anything.
    files = [tmp_path / f"left.{rank}" for rank in (0, 1)]
    has_left = [rank for rank, file in enumerate(files) if not fails or (file.exists() and file.read_text())]
    assert [harness.alive(left(tmp_path, rank)) for rank in has_left] == [not fails] * len(has_left)
    elastic_run.kill_all()
