"""--run-path: the script is run inside an interpreter of ours, which stays until all workers of the node are done."""
# ctest: gate

import os
import signal
import sys

import pytest

QUIET = {"OMP_NUM_THREADS": "1"}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]

# Where nothing of PyTorch is needed its import is saved: the interpreter that the environment was made from.
PLAIN = QUIET | {"PYTHON_EXEC": f"{sys.base_prefix}/bin/python3"}

# Rank 0 is done at once and has left something behind that serves as long as its process lives; rank 1 needs it when rank 0
# has long had the time to end.
SERVES = """\
import os, pathlib, select, socket, threading, time

def serve(listener):
    while True:
        listener.accept()[0].sendall(b"from rank 0")

if os.environ["RANK"] == "0":
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=[listener], daemon=True).start()
    pathlib.Path("part").write_text(f"{os.getpid()} {listener.getsockname()[1]}")
    os.rename("part", "ready")
else:
    while not os.path.exists("ready"):
        time.sleep(0.01)
    pid, port = map(int, pathlib.Path("ready").read_text().split())
    assert not select.select([os.pidfd_open(pid)], [], [], 3)[0], "rank 0 has ended"
    print(socket.create_connection(("127.0.0.1", port)).recv(100).decode())
"""


@pytest.mark.time_limit(300)
@pytest.mark.parametrize("program", [None, TORCHRUN], ids=["elastic-run", "torchrun"])
def test_a_worker_that_is_done_serves_the_others_until_they_are(elastic_run, script, program):
    result = elastic_run("--nproc-per-node=2", "--run-path", script("serves.py", SERVES), program=program, env=QUIET,
                         timeout=280)
    assert (result.returncode, result.stdout) == (0, "from rank 0\n"), result


# Ends with this when rank 0 has long had the time to end.
ENDS_LATE = """\
import os, select, time
if os.environ["RANK"] == "0":
    open("pid." + os.environ["TORCHELASTIC_RESTART_COUNT"], "x").write(str(os.getpid()) + "\\n")
else:
    name = "pid." + os.environ["TORCHELASTIC_RESTART_COUNT"]
    while not os.path.exists(name) or not open(name).read().endswith("\\n"):
        time.sleep(0.01)
    try:
        ended = select.select([os.pidfd_open(int(open(name).read()))], [], [], 1)[0]
    except ProcessLookupError:
        ended = True
    print("rank 0 has ended" if ended else "rank 0 waits", flush=True)
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == os.environ.get("FAILS_IN"):
        raise ValueError("the data is bad")
"""


def test_a_worker_that_waits_is_stopped_when_another_fails(elastic_run, script):
    result = elastic_run("--nproc-per-node=2", "--run-path", script("late.py", ENDS_LATE), env=PLAIN | {"FAILS_IN": "0"})
    assert (result.returncode, result.stdout) == (1, "rank 0 waits\n")
    assert "  first failure: rank 1 (local rank 1, pid " in result.stderr
    assert "\n  stopped because of this: rank 0\n" in result.stderr
    assert "ValueError: the data is bad" in result.stderr


def test_after_a_restart_workers_wait_for_each_other_again(elastic_run, script):
    result = elastic_run("--nproc-per-node=2", "--max-restarts=1", "--run-path", script("late.py", ENDS_LATE),
                         env=PLAIN | {"FAILS_IN": "0"})
    assert (result.returncode, result.stdout) == (0, "rank 0 waits\nrank 0 waits\n")


def test_workers_with_the_same_local_rank_in_their_environment_wait_for_each_other(elastic_run, script):
    result = elastic_run("--nproc-per-node=2", "--virtual-local-rank", "--run-path", script("late.py", ENDS_LATE),
                         env=PLAIN | {"CUDA_VISIBLE_DEVICES": "0,1"})
    assert (result.returncode, result.stdout) == (0, "rank 0 waits\n")


# Each rank ends in another way; the last one leaves a mark only if none of the others has held it up.
ENDS = """\
import os, sys
match os.environ["RANK"]:
    case "0":
        os._exit(0)
    case "1":  # the child comes to the end of the script, too
        child = os.fork()
        if child:
            os.waitpid(child, 0)
    case "2":
        sys.exit(0)
    case "3":
        sys.exit()
    case "4":  # whatever is the third descriptor now, nothing is to be written there
        os.closerange(3, 100)
        other = os.open("other", os.O_RDWR | os.O_CREAT)
        assert other == 3, other
    case "5":  # a child that lives on, and would keep the socket open
        if os.fork() == 0:
            os.setsid()
            os.execvp("sleep", ["sleep", "1000"])
"""


def test_however_a_worker_ends_well_it_holds_up_no_other(elastic_run, script, tmp_path):
    result = elastic_run("--nproc-per-node=6", "--run-path", script("ends.py", ENDS), env=PLAIN, timeout=60)
    assert (result.returncode, result.stdout) == (0, "") and "Traceback" not in result.stderr, result
    assert (tmp_path / "other").read_bytes() == b""


def test_a_program_of_the_script_inherits_no_descriptor_of_ours(elastic_run, script):
    text = ("import os, subprocess\n"
            "subprocess.run(['sh', '-c', 'ls -l /proc/$$/fd'], close_fds=False)\n")
    result = elastic_run("--run-path", script("lists.py", text), env=PLAIN)
    assert result.returncode == 0 and "0 -> " in result.stdout
    assert "socket:" not in result.stdout


def test_a_waiting_worker_does_not_outlive_a_launcher_that_was_killed(elastic_run, script):
    text = ("import os, time\n"
            "os.write(1, b'up %d\\n' % os.getpid())\n"  # both write to one pipe
            "if os.environ['RANK'] == '1': time.sleep(1000)\n")
    running = elastic_run.start("--nproc-per-node=2", "--run-path", script("waits.py", text), env=PLAIN)
    running.wait_for_pids(2)
    os.kill(running.launcher(), signal.SIGKILL)
    assert running.wait().returncode != 0  # and the fixture sees that nothing is left
