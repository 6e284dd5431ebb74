"""torchelastic's file timers, served as torchrun's agent does: docs/hangs.md."""
# ctest: clock

import importlib.util
import json
import os
import pathlib
import re
import signal
import stat
import subprocess

import pytest

from harness import alive, wait_until

# What a client of torchelastic's sends, and how workers meet the test: by files.
CLIENT = '''
import json, os, signal, subprocess, sys, time
directory = sys.argv[1]
rank, count = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]


def say(text):
    with open(os.open(os.environ["TORCHELASTIC_TIMER_FILE"], os.O_WRONLY | os.O_NONBLOCK), "w") as fifo:
        fifo.write(text)


def timer(scope, after, signal=9, pid=None):
    say(json.dumps({"version": 1, "pid": pid or os.getpid(), "scope_id": scope,
                    "expiration_time": time.time() + after, "signal": signal}) + "\\n")


def release(scope):
    say(json.dumps({"version": 1, "pid": os.getpid(), "scope_id": scope, "expiration_time": -1, "signal": 0}) + "\\n")


def note(name):
    with open(os.path.join(directory, name), "w"):
        pass


def wait_for(name):
    while not os.path.exists(os.path.join(directory, name)):
        time.sleep(0.01)


def load_batch():
    wait_for("a batch that never comes")
'''
# What is said is taken in its order: when this timer has expired the earlier ones were judged.
LATER = 'timer("later", 0.5, signal=0)\n'


@pytest.fixture
def start(elastic_run, script):
    """start(body, ...): a job of workers that begin with CLIENT, and file timers."""

    def start(body, *options, env=None, ranks=1):
        return elastic_run.start("--standalone", f"--nproc-per-node={ranks}", f"--log-dir={elastic_run.directory}/logs",
                                 f"--events={elastic_run.directory}/events", *options,
                                 script("train.py", CLIENT + body), elastic_run.directory,
                                 env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"} | (env or {}))

    return start


def events(elastic_run, name):
    lines = (elastic_run.directory / "events").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


def end_well(elastic_run, run):
    (elastic_run.directory / "go").write_text("")
    result = run.wait()
    assert result.returncode == 0, result
    return result


def test_a_worker_that_does_not_release_its_timer_is_ended_and_the_round_begins_anew(elastic_run, start):
    run = start('''
if count == "0" and rank == "1":
    timer("load", 0.3)
    load_batch()
if count == "0":
    wait_for("the other rank")
''', "--max-restarts=1", ranks=2)
    told = run.wait_for_line(r"warning: rank 1: its timer 'load' expired (\d\.\d+) s ago \(file timer\), "
                             r"at wait_for train\.py:\d+; process (\d+) gets SIGKILL$")
    result = run.wait()
    assert result.returncode == 0, result
    event, = events(elastic_run, "timer_expired")
    assert (event["rank"], event["local_rank"], event["scope"], event["level"]) == (1, 1, "load", "warning"), event
    assert event["milliseconds"] == round(1000 * float(told[1])), event
    first = [ended for ended in events(elastic_run, "worker_exited") if not ended["stopped_by_us"]][0]
    assert (first["rank"], first["signal"], first["pid"]) == (1, "SIGKILL", int(told[2])), first
    assert event["pid"] == int(told[2]) and event["at"].startswith("wait_for train.py:"), event


def test_the_failure_report_says_which_timer_has_expired_and_where_the_worker_stood(elastic_run, start):
    run = start('''
if rank == "1":
    timer("train.py#12", 0.3)
    load_batch()
wait_for("the other rank")
''', ranks=2)
    result = run.wait()
    assert result.returncode == 1, result
    text = " ".join(result.stderr.split())
    assert "was killed by SIGKILL (its timer expired)" in text, result
    assert "likely cause: its timer 'train.py#12' expired (file timer), and elastic-run sent it SIGKILL" in text, result
    assert re.search(r"Python stack: at wait_for train\.py:\d+", text), result
    assert re.search(r"when its timer expired \(newest call first\): wait_for \S*train\.py:\d+ load_batch \S*train\.py:\d+ "
                     r"<module> ", text), result
    file, = (elastic_run.directory / "logs").glob("*/failure.json")
    failure = json.loads(file.read_text())["failures"][0]
    assert failure["rank"] == 1 and failure["likely_cause"]["rule"] == "timer-expired", failure
    timer = failure["timer"]
    assert (timer["scope"], timer["signal"], timer["pid"]) == ("train.py#12", 9, failure["pid"]), timer
    assert [frame["function"] for frame in timer["stack"]] == ["wait_for", "load_batch", "<module>"], timer


def test_a_timer_that_is_released_in_time_ends_nobody(elastic_run, start):
    run = start('''
timer("load", 0.3)
release("load")
timer("again", 0.1)
timer("again", 1000)
''' + LATER + 'wait_for("go")')
    run.wait_for_line(r"timer 'later' expired \S+ s ago .*; the timer names no signal, so nothing is done$")
    result = end_well(elastic_run, run)
    assert "'load'" not in result.stderr and "'again'" not in result.stderr, result


def test_a_release_that_waits_while_the_launcher_is_stopped_counts(elastic_run, start):
    run = start('''
timer("load", 1.5)
until = time.time() + 1.5
note("set")
wait_for("stopped")
release("load")
while time.time() < until:
    time.sleep(0.01)
note("released")
wait_for("resumed")
''' + LATER + 'wait_for("go")')
    there = elastic_run.directory
    wait_until((there / "set").exists, what="the timer")
    launcher = run.launcher()
    os.kill(launcher, signal.SIGSTOP)
    (there / "stopped").write_text("")
    wait_until((there / "released").exists, what="the release")
    os.kill(launcher, signal.SIGCONT)
    (there / "resumed").write_text("")
    run.wait_for_line("timer 'later' expired")
    assert "'load'" not in end_well(elastic_run, run).stderr


def test_scopes_of_a_worker_expire_each_by_itself(elastic_run, start):
    run = start('''
if count == "0":
    timer("outer", 0.6)
    timer("inner", 0.2)
    release("inner")
    load_batch()
''', "--max-restarts=1")
    result = run.wait()
    assert result.returncode == 0, result
    assert "its timer 'outer' expired" in result.stderr and "'inner'" not in result.stderr, result


def test_garbage_and_the_pids_of_strangers_are_harmless(elastic_run, start):
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        run = start(f'''
timer("glued", 0.3)
for garbage in ("hello\\n", "{{}}\\n", "[" * 4000 + "\\n", "x" * 20000, "\\n", "\\0\\xff\\n", '{{"version": 1, "pid": '):
    say(garbage)
release("glued")
for pid in (os.getppid(), {stranger.pid}, 2 ** 31 - 1):
    timer("foreign", 0.1, pid=pid)
''' + LATER + 'wait_for("go")', "--log-level=info")
        run.wait_for_line(r"process \d+ is none of the workers', and gets no timer")
        run.wait_for_line("timer 'later' expired")
        result = end_well(elastic_run, run)
        assert "'foreign'" not in result.stderr and "'glued'" not in result.stderr, result
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("session", ["False", "True"], ids=["in its session", "in a session of its own"])
def test_a_process_that_a_worker_has_started_may_have_a_timer(elastic_run, start, session):
    run = start(f'''
child = subprocess.Popen(["sleep", "1000"], start_new_session={session})
timer("load", 0.2, pid=child.pid, signal=signal.SIGTERM)
assert child.wait() == -signal.SIGTERM
print("child", child.pid)
''')
    child = run.wait_for_line(r"the timer 'load' of its process (\d+) expired \S+ s ago .*; process \1 gets SIGTERM$")[1]
    result = run.wait()
    assert result.returncode == 0 and result.stdout == f"child {child}\n", result


def test_a_worker_whose_stack_cannot_be_read_is_ended_all_the_same(elastic_run, script):
    worker = script("worker", '''#!/bin/sh
printf '{"version": 1, "pid": %s, "scope_id": "shell", "expiration_time": 1, "signal": 9}\\n' $$ > "$TORCHELASTIC_TIMER_FILE"
exec sleep 1000
''')
    result = elastic_run("--no-python", f"--log-dir={elastic_run.directory}/logs", worker,
                         env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"})
    assert result.returncode == 1, result
    text = " ".join(result.stderr.split())
    assert re.search(r"its timer 'shell' expired .* ago \(file timer\); process \d+ gets SIGKILL", text), result
    assert "Python stack: not known: " in text, result


def test_a_worker_may_survive_the_signal_of_its_timer(elastic_run, start):
    run = start('''
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
timer("load", 0.1, signal=signal.SIGUSR1)
while not got:
    time.sleep(0.01)
note("got")
wait_for("go")
''')
    run.wait_for_line("timer 'load' expired .* gets SIGUSR1")
    wait_until((elastic_run.directory / "got").exists, what="the signal")
    end_well(elastic_run, run)


def test_no_timer_counts_any_more_when_the_round_is_stopped(elastic_run, start):
    run = start('''
if count == "0" and rank == "0":
    def end(*_):
        while time.time() < until:
            time.sleep(0.01)
        note("had its time")
        sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    until = time.time() + 1
    timer("old", 0.7)
    note("set")
    wait_for("nothing")
if count == "0":
    wait_for("set")
    sys.exit(1)
''', "--max-restarts=1", ranks=2)
    result = run.wait()
    assert result.returncode == 0, result
    assert (elastic_run.directory / "had its time").exists(), result
    assert "expired" not in result.stderr, result


# --- The FIFO and its variable

TELL = '''
os.write(1, f"{os.environ.get('TORCHELASTIC_TIMER_FILE')}\\n".encode())  # at once: ranks write beside each other
wait_for("go")
'''


def test_the_fifo_is_private_and_goes_with_the_job(elastic_run, start):
    run = start(TELL, ranks=2)
    paths = {run.wait_for_line("(.+)", stream="stdout")[1] for _ in range(2)}
    path = pathlib.Path(paths.pop())
    assert not paths and re.fullmatch(r".*/elastic_run_[a-zA-Z0-9]{6}/file_timer", str(path))
    assert stat.S_ISFIFO(path.stat().st_mode) and stat.S_IMODE(path.stat().st_mode) == 0o600
    end_well(elastic_run, run)
    assert not path.exists() and not path.parent.exists()


@pytest.mark.parametrize("left", ["nothing", "fifo", "empty file"])
def test_a_path_of_the_users_own_is_served_and_gone_at_the_end(elastic_run, start, left):
    path = elastic_run.directory / "my timers"
    if left == "fifo":
        os.mkfifo(path)
    if left == "empty file":
        path.write_text("")
    run = start('''
if count == "0":
    timer("load", 0.2, signal=signal.SIGTERM)
    load_batch()
''' + TELL, "--max-restarts=1", env={"TORCHELASTIC_TIMER_FILE": str(path)})
    run.wait_for_line("timer 'load' expired .* gets SIGTERM")
    assert run.wait_for_line("(.+)", stream="stdout")[1] == str(path)
    end_well(elastic_run, run)
    assert not path.exists()


@pytest.mark.parametrize("kind", ["file", "FIFO of another launcher"])
def test_what_somebody_uses_at_the_users_path_is_not_replaced_and_workers_do_without_timers(elastic_run, start, kind):
    path = elastic_run.directory / "notes"
    if kind == "file":
        path.write_text("mine")
    else:
        os.mkfifo(path)
        reader = os.open(path, os.O_RDWR)
    run = start(TELL, env={"TORCHELASTIC_TIMER_FILE": str(path)})
    run.wait_for_line(rf"warning: cannot make {path}: .*; workers get no TORCHELASTIC_TIMER_FILE")
    assert run.wait_for_line("(.+)", stream="stdout")[1] == "None"
    end_well(elastic_run, run)
    if kind == "file":
        assert path.read_text() == "mine"
    else:
        assert os.path.samestat(os.fstat(reader), os.stat(path))
        os.close(reader)


@pytest.mark.parametrize("value", ["0", "", "true", None])
def test_without_the_variable_nothing_is_served(elastic_run, start, value):
    run = start(TELL, env={"TORCHELASTIC_ENABLE_FILE_TIMER": value, "TORCHELASTIC_TIMER_FILE": "/nowhere"})
    assert run.wait_for_line("(.+)", stream="stdout")[1] == "None"
    assert end_well(elastic_run, run).stderr == ""


def test_a_dry_run_shows_the_variable_and_where_it_comes_from(elastic_run, script):
    command = ["--dry-run", "--standalone", script("train.py", "")]
    assert "TIMER_FILE" not in elastic_run(*command).stdout
    own = elastic_run(*command, env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"})
    assert "  TORCHELASTIC_TIMER_FILE=<directory of the job>/file_timer\n" in own.stdout, own
    assert re.search(r"^file timers +served +\(environment: TORCHELASTIC_ENABLE_FILE_TIMER\)$", own.stdout, re.M), own
    users = elastic_run(*command, env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": "/x/y"})
    assert "  TORCHELASTIC_TIMER_FILE=/x/y\n" in users.stdout, users


# --- PyTorch's own client

TORCH = '''
import os, time
import torch.distributed.elastic.timer as timer

timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))


def load_batch():
    while os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        time.sleep(0.1)


with timer.expires(after=1000, scope="step"):
    with timer.expires(after=0.5):
        pass
    with timer.expires(after=0.5, scope="load"):
        load_batch()
os._exit(0)
'''


@pytest.mark.time_limit(400)
def test_pytorchs_own_client_finds_its_server(elastic_run, script):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("there is no PyTorch")
    run = elastic_run.start("--standalone", "--max-restarts=1", script("train.py", TORCH),
                            env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1"})
    place = TORCH.splitlines().index("        time.sleep(0.1)") + 1
    told = run.wait_for_line(r"rank 0: its timer 'load' expired \S+ s ago \(file timer\), "
                             r"at load_batch train\.py:(\d+); process (\d+) gets SIGKILL", timeout=300)
    assert int(told[1]) in (place - 1, place)
    result = run.wait(300)
    assert result.returncode == 0, result
    assert result.stderr.count("expired") == 1 and not alive(int(told[2])), result
