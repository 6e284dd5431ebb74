"""--stacks=PID: the Python stacks of all workers of an elastic-run, or of a process, which is neither stopped nor asked."""

import json
import os
import pathlib
import re
import signal
import sys
import tempfile

import harness
import pytest
from test_warm_workers import job, python  # noqa: F401, fixtures

# What a worker does, by its first argument. Before it does that, faulthandler writes all its stacks to a file, and it
# says its number. tell() is in the line of the call that the process stays in.
SCRIPT = """\
import ctypes, faulthandler, multiprocessing, os, sys, threading, time

def tell():
    rank = os.environ.get("RANK", "0")
    with open(f"{sys.argv[2]}/faults.{rank}", "w") as faults:
        faulthandler.dump_traceback(faults, all_threads=True)
    up()

def up():
    os.write(1, b"up %d\\n" % os.getpid())

def sleep():
    tell(), time.sleep(1000)

def lock():
    held = threading.Lock()
    held.acquire()
    tell(), held.acquire()

def spin():
    tell()
    while True: pass

def gil():
    # The GIL is held for ever: no other thread of Python runs any more.
    tell(), ctypes.PyDLL(None).sleep(1000)

def odd():
    sleep() if os.environ["RANK"] == "2" else lock()

def threads():
    held, begun = threading.Lock(), []
    held.acquire()
    def other():
        begun.append(1), held.acquire()
    for _ in range(2):
        threading.Thread(target=other, daemon=True).start()
    while len(begun) < 2: time.sleep(0.01)
    sleep()

def fetch():
    up(), time.sleep(1000)

def child():
    multiprocessing.get_context("fork").Process(target=fetch, daemon=True).start()
    sleep()

def hidden():
    if os.environ["RANK"] == "1":
        ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE
    sleep()

def spawn():
    # The child, which shares the memory until it executes its program, asks for a directory that never answers.
    up(), __import__("subprocess").Popen(["true"], cwd=sys.argv[2])

def deep(n):
    deep(n - 1) if n else sleep()

def recursion():
    sys.setrecursionlimit(2000)
    deep(400)

globals()[sys.argv[1]]()
"""


@pytest.fixture
def train(script):
    return script("train.py", SCRIPT)


@pytest.fixture
def begin(elastic_run, train, tmp_path):
    """begin(what): a Python process that does so; with its pid."""

    begun = []

    def start(what):
        begun.append(elastic_run.start(what, tmp_path, program=[sys.executable, "-S", train]))
        return begun[-1].wait_for_pids(1)[0]

    yield start
    for running in begun:
        running.send_signal(signal.SIGKILL)
        running.wait()


@pytest.fixture
def stacks(elastic_run):
    """stacks(pid): the document that --stacks prints, as a value."""

    def ask(pid, status=0, **more):
        result = elastic_run(f"--stacks={pid}", "--log-format=json", **more)
        assert result.returncode == status, result
        return json.loads(result.stdout)

    return ask


def groups(document, of="worker"):
    return [group for group in document["groups"] if group["of"] == of]


def calls(group):
    return [(frame["function"], frame["line"], os.path.basename(frame["file"])) for frame in group["frames"]]


def functions(group):
    return [frame["function"] for frame in group["frames"]]


def faults(directory, rank=0):
    """The stacks that faulthandler wrote, each without the calls of tell(): the newest first, the main thread last."""
    threads = []
    for line in (directory / f"faults.{rank}").read_text().splitlines():
        if re.match(r"(Current thread|Thread) 0x", line):
            threads.append([])
        elif match := re.match(r'  File "(.*)", line (\d+) in (.*)$', line):
            threads[-1].append((match[3], int(match[2]), os.path.basename(match[1])))
    return [[call for call in thread if call[0] != "tell"] for thread in threads]


# The system calls in which it waits (x86-64).
FUTEX, CLOCK_NANOSLEEP = 202, 230


def wait_for_call(pid, *calls):
    """Until the main thread of the process is in one of these system calls."""
    def look():
        return pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] in map(str, calls)

    harness.wait_until(look, what=f"process {pid} in a system call of {calls}")


@pytest.mark.parametrize("what, call", [("sleep", CLOCK_NANOSLEEP), ("lock", FUTEX), ("gil", CLOCK_NANOSLEEP),
                                        ("threads", CLOCK_NANOSLEEP)])
def test_the_stacks_are_those_that_faulthandler_tells(begin, stacks, tmp_path, what, call):
    pid = begin(what)
    wait_for_call(pid, call)
    document = stacks(pid)
    of_main, = groups(document)
    *others, expected = faults(tmp_path)
    assert calls(of_main) == expected
    assert of_main["members"] == [{"rank": -1, "pid": pid, "thread": pid, "node": None}]
    told = [calls(group) for group in groups(document, "thread") for _ in group["members"]]
    assert sorted(told) == sorted(others)
    assert not of_main["cut"] and of_main["torn"] == 0


def after_tell(document):
    """The document, if the process has gone on to what it was begun for."""
    return document if not {"tell", "up"} & set(functions(groups(document)[0])) else None


def test_a_process_that_spins_is_read_while_it_runs(begin, stacks, tmp_path):
    pid = begin("spin")
    of_main, = groups(harness.wait_until(lambda: after_tell(stacks(pid)), what="the loop"))
    assert functions(of_main) == ["spin", "<module>"]
    assert calls(of_main)[1] == faults(tmp_path)[0][1]
    assert of_main["waits"] == ["running"]


def test_a_stopped_process_is_read_and_stays_stopped(begin, stacks, tmp_path):
    pid = begin("sleep")
    wait_for_call(pid, CLOCK_NANOSLEEP)
    os.kill(pid, signal.SIGSTOP)
    harness.wait_until(lambda: harness.read_process(pid).state == "T", what="a stopped process")
    of_main, = groups(stacks(pid))
    assert calls(of_main) == faults(tmp_path)[0]
    assert of_main["waits"][0].startswith("stopped")
    assert harness.read_process(pid).state == "T"


def test_a_process_in_uninterruptible_sleep_is_read(elastic_run, train, stacks, deaf_server):
    running = elastic_run.start("spawn", deaf_server.directory / "file", program=[sys.executable, "-S", train],
                                preexec_fn=deaf_server.mount_here)
    deaf_server.start()
    pid, = running.wait_for_pids(1)
    assert deaf_server.asked.wait(60)
    harness.wait_until(lambda: harness.read_process(pid).state == "D", what="a process in state D")
    of_main, = groups(stacks(pid))
    assert functions(of_main)[0] == "_execute_child" and functions(of_main)[-2:] == ["spawn", "<module>"]
    assert of_main["waits"][0].startswith("in uninterruptible sleep")
    running.send_signal(signal.SIGKILL)
    deaf_server.close()
    running.wait()


def test_the_workers_of_an_elastic_run_are_grouped_and_the_odd_one_is_the_first(elastic_run, train, tmp_path, stacks):
    running = elastic_run.start("--standalone", "--nproc-per-node=4", train, "odd", tmp_path)
    pids = running.wait_for_pids(4)
    for pid in pids:
        wait_for_call(pid, FUTEX, CLOCK_NANOSLEEP)
    # Both elastic-runs of the node, the outer one and the launcher, stand for it.
    for elastic in (running.pid, running.launcher()):
        odd, others = groups(stacks(elastic))
        assert functions(odd)[0] == "sleep"
        assert [member["rank"] for member in odd["members"]] == [2]
        assert functions(others)[0] == "lock"
        assert [member["rank"] for member in others["members"]] == [0, 1, 3]
        assert {member["pid"] for group in (odd, others) for member in group["members"]} == set(pids)
    page = elastic_run(f"--stacks={running.pid}").stdout
    assert page.startswith("4 workers, 2 different stacks, the rarest first\n\nrank 2 (process ")
    assert re.search(r"^    sleep  \S+train\.py:13$", page, re.MULTILINE)
    assert page.index("rank 2 (") < page.index("ranks 0-1, 3 (")
    running.send_signal(signal.SIGTERM)
    running.wait()


def test_the_processes_that_workers_start_are_looked_at(elastic_run, train, tmp_path, stacks):
    running = elastic_run.start("--standalone", "--nproc-per-node=2", train, "child", tmp_path)
    for pid in running.wait_for_pids(4):
        wait_for_call(pid, CLOCK_NANOSLEEP)
    children, = groups(stacks(running.pid), "child")
    assert functions(children)[0] == "fetch"
    assert [member["rank"] for member in children["members"]] == [0, 1]
    running.send_signal(signal.SIGTERM)
    running.wait()


def test_warm_workers_are_shown_and_their_import_server_is_not(job, elastic_run, stacks):
    running = job.start(fails=1)
    job.are(0, "fresh")
    job.wait_until_parked()
    job.ends(0)
    pids = job.are(1, "warm")
    of_workers = groups(stacks(running.pid))
    members = [member for group in of_workers for member in group["members"]]
    assert {member["pid"] for member in members} == set(pids.values())
    assert all("worker.py" in {os.path.basename(frame["file"]) for frame in group["frames"]} for group in of_workers)
    job.ends_all()


def as_nobody():
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)


@pytest.fixture
def for_nobody(elastic_run):
    """A directory of which the user nobody, who can run elastic-run, has the use."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be another user")
    for place in pathlib.Path(elastic_run.binary).resolve().parents:
        if not os.stat(place).st_mode & 1:
            pytest.skip(f"other users may not enter {place}")
    # Not among the test's own directories, which are root's alone.
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o777)
        yield pathlib.Path(directory)


def test_a_worker_that_may_not_be_read_is_told_with_the_reason_and_the_rest_is_there(elastic_run, for_nobody):
    train = for_nobody / "train.py"
    train.write_text(SCRIPT)
    as_user = {"preexec_fn": as_nobody, "cwd": for_nobody}
    running = elastic_run.start("--standalone", "--nproc-per-node=2", train, "hidden", for_nobody, **as_user,
                                env={"TMPDIR": str(for_nobody), "PYTHON_EXEC": "/usr/bin/python3"})
    for pid in running.wait_for_pids(2):
        harness.wait_until(lambda pid=pid: "nanosleep" in pathlib.Path(f"/proc/{pid}/wchan").read_text(),
                           what="a worker that sleeps")
    result = elastic_run(f"--stacks={running.pid}", "--log-format=json", **as_user)
    assert result.returncode == 0, result
    by_problem = {bool(group["problem"]): group for group in groups(json.loads(result.stdout))}
    assert functions(by_problem[False])[0] == "sleep"
    assert [member["rank"] for member in by_problem[False]["members"]] == [0]
    assert "it is not dumpable" in by_problem[True]["problem"]
    assert by_problem[True]["waits"][0].startswith("sleeping")
    assert len(by_problem[True]["members"]) == 1
    running.send_signal(signal.SIGTERM)
    running.wait()


def test_a_process_of_another_user_is_told_with_both_users(elastic_run, for_nobody, begin):
    pid = begin("sleep")
    wait_for_call(pid, CLOCK_NANOSLEEP)
    result = elastic_run(f"--stacks={pid}", preexec_fn=as_nobody, cwd=for_nobody)
    assert result.returncode == 1
    assert "since it runs as user 0 and not 65534" in result.stdout
    assert f"process {pid}: sleeping" in result.stdout


def test_deep_calls_are_cut_and_it_says_so(begin, stacks, elastic_run):
    pid = begin("recursion")
    wait_for_call(pid, CLOCK_NANOSLEEP)
    of_main, = groups(stacks(pid))
    assert of_main["cut"] and len(of_main["frames"]) == 256
    assert "    ... and older calls\n" in elastic_run(f"--stacks={pid}").stdout


def test_what_is_no_python_process_is_told(elastic_run):
    other = elastic_run.start("1000", program=["/bin/sleep"])
    wait_for_call(other.pid, CLOCK_NANOSLEEP)
    result = elastic_run(f"--stacks={other.pid}")
    assert result.returncode == 1
    assert "no stack of Python: it is no Python process" in result.stdout
    assert result.stdout.startswith(f"process {other.pid}: sleeping")
    other.send_signal(signal.SIGKILL)
    other.wait()


def test_a_process_that_is_not_there_and_a_text_that_is_no_number_are_refused(elastic_run):
    gone = elastic_run.start(program=["/bin/true"])
    gone.wait()
    result = elastic_run(f"--stacks={gone.pid}")
    assert result.returncode == 1
    assert "there is no such process" in result.stderr
    for wrong in ("", "0", "-1", "x", "99999999999"):
        result = elastic_run(f"--stacks={wrong}")
        assert result.returncode == 2, wrong
        assert "it is not the number of a process" in result.stderr


def test_an_elastic_run_without_workers_says_so(elastic_run):
    store = elastic_run.start("--store-only", "--port=0")
    store.wait_for_line("port")
    result = elastic_run(f"--stacks={store.pid}")
    assert result.returncode == 1
    assert "this elastic-run has no workers" in result.stderr
    store.send_signal(signal.SIGTERM)
    store.wait()
