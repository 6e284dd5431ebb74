"""A worker that handles a signal has its helpers until it has ended; everybody else gets a signal together."""

import json
import os
import shutil
import signal

import harness
import pytest

TERM, INT, HUP, QUIT, USR1, USR2 = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
                                    signal.SIGUSR2)
# So long nobody waits: what is not told to end, is killed, and the test sees that nothing was noted.
PATIENT = "--shutdown-timeout=20"

# A rank and its helper, which answers as a data loader does, and dies of any signal. save() needs it.
SAVES = """\
import os, signal, sys, time
rank, way, number = os.environ["RANK"], sys.argv[1], getattr(signal, sys.argv[2])
ask, asked = os.pipe()
answer, answered = os.pipe()
if os.fork() == 0:
    os.close(asked)
    while os.read(ask, 1):
        os.write(answered, b"x")
    os._exit(0)
os.close(ask), os.close(answered)

def save(*_):
    for _ in range(1000):
        os.write(asked, b"x")
        assert os.read(answer, 1), "the helper exited unexpectedly"
    open(f"saved.{rank}", "x").close()
    os._exit(3)

if way == "late":
    os.write(1, b"begins\\n")
    open("now").read()
if way in ("waits", "blocks"):
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
else:
    signal.signal(number, save)
os.write(1, b"up\\n")
if way == "waits":
    signal.sigwait([number])
    save()
while way == "blocks":
    if signal.sigpending():
        save()
    time.sleep(0.01)
while True:
    signal.pause()
"""


@pytest.fixture
def begin(elastic_run, script):
    """begin(ranks, text, arguments..., options=[]): a job of this script, begun when all ranks have said "up"."""

    def start(ranks, text, *arguments, options=()):
        running = elastic_run.start(f"--nproc-per-node={ranks}", PATIENT, "--events=run.jsonl", *options,
                                    script("worker.py", text), *arguments, env={"OMP_NUM_THREADS": "1"},
                                    preexec_fn=default)
        for _ in range(ranks):
            running.wait_for_line("^up", stream="stdout")
        return running

    return start


def default():
    """A preexec_fn: no signal of these tests is ignored, whoever has started them."""
    for number in (TERM, INT, HUP, QUIT, USR1, USR2):
        signal.signal(number, signal.SIG_DFL)


def alone(tmp_path):
    """[(signal, ranks)] of the events that tell who got a signal alone."""
    events = map(json.loads, (tmp_path / "run.jsonl").read_text().splitlines())
    return [(event["signal"], event["ranks"]) for event in events if event["event"] == "signalled_alone"]


@pytest.mark.parametrize("number", [TERM, HUP, QUIT], ids=lambda number: number.name)
@pytest.mark.parametrize("way", ["catches", "blocks", "waits"])
def test_a_rank_that_saves_when_it_is_told_to_end_has_its_helpers_until_then(begin, tmp_path, way, number):
    running = begin(2, SAVES, way, number.name)
    running.send_signal(number)
    result = running.wait()
    assert result.returncode == 1
    assert result.stderr == f"elastic-run: stopped by {number.name}; all workers have ended\n"
    assert sorted(path.name for path in tmp_path.glob("saved.*")) == ["saved.0", "saved.1"]
    # That one waits for it the kernel does not show; it gets the signal alone all the same.
    assert way == "waits" or alone(tmp_path) == [(number.name, [0, 1])]


def test_a_rank_that_saves_for_a_restart_has_its_helpers_until_then(begin, tmp_path):
    """Rank 1 fails, and rank 0 is told to end for that."""
    fails = SAVES.replace('os.write(1, b"up', """\
if os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
    os._exit(0)
if rank == "1":
    open("ready").read()
    sys.exit(7)
os.write(1, b"up\\n")
open("ready", "w").close()
os.write(1, b"ready""")
    os.mkfifo(tmp_path / "ready")
    running = begin(1, fails, "catches", "SIGTERM", options=["--nproc-per-node=2", "--max-restarts=1"])
    assert running.wait().returncode == 0
    assert (tmp_path / "saved.0").exists()
    assert alone(tmp_path) == [("SIGTERM", [0])]


def test_a_handler_that_is_installed_late_counts_from_then_on(elastic_run, script, tmp_path):
    os.mkfifo(tmp_path / "now")
    running = elastic_run.start(PATIENT, "--events=run.jsonl", script("worker.py", SAVES), "late", "SIGTERM",
                                preexec_fn=default)
    running.wait_for_line("^begins", stream="stdout")
    (tmp_path / "now").write_text("")
    running.wait_for_line("^up", stream="stdout")
    running.send_signal(TERM)
    assert running.wait().returncode == 1
    assert (tmp_path / "saved.0").exists()
    assert alone(tmp_path) == [("SIGTERM", [0])]


# A helper notes what it is told and ends; the rank is as the argument says.
TELLS = """\
import os, signal, sys
way, numbers = sys.argv[1], [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2]
ready, is_ready = os.pipe()
if os.fork() == 0:
    os.closerange(0, 3)  # nobody reads these to their end meanwhile
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    with open("helper", "x") as file:
        file.write(f"{os.getpid()}")
    os.write(is_ready, b"up\\n")
    open(f"helper.{signal.Signals(signal.sigwait(numbers)).name}", "x").close()
    if way == "waits":
        open("told", "w").close()
    os._exit(0)
up = os.read(ready, 100)
if way == "handles":
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
elif way == "waits":
    def wait(*_):
        open("told").read()
        open("together", "x").close()
        os._exit(3)
    signal.signal(signal.SIGINT, wait)
else:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
os.write(1, up)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("number", [TERM, INT], ids=lambda number: number.name)
def test_helpers_of_a_worker_that_handles_nothing_are_told_with_it(begin, tmp_path, number):
    running = begin(1, TELLS, "handles nothing")
    running.send_signal(number)
    result = running.wait()
    assert (result.returncode, result.duration < 20) == (1, True)
    assert [path.name for path in tmp_path.glob("helper.*")] == [f"helper.{number.name}"]
    assert alone(tmp_path) == []


def test_sigint_is_for_the_whole_group(begin, tmp_path):
    """The worker waits for the helper, which must be told, too: else both are killed."""
    os.mkfifo(tmp_path / "told")
    running = begin(1, TELLS, "waits")
    running.send_signal(INT)
    assert running.wait().returncode == 1
    assert (tmp_path / "together").exists()
    assert alone(tmp_path) == []


@pytest.mark.parametrize("leaves", [False, True], ids=["", "leave-background"])
def test_a_forwarded_signal_is_for_the_worker_that_handles_it(begin, tmp_path, leaves):
    """Its helper gets it when the worker has ended, unless what workers leave behind is to live on."""
    running = begin(1, TELLS, "handles", options=["--forward-signals=USR1"] + ["--leave-background"] * leaves)
    helper = int((tmp_path / "helper").read_text())
    running.send_signal(USR1)
    assert running.wait().returncode == 0
    assert alone(tmp_path) == [("SIGUSR1", [0])]
    if leaves:
        os.kill(helper, USR2)  # of both it would take the other one first
        harness.wait_until(lambda: not harness.alive(helper), what="the helper ends")
    assert [path.name for path in tmp_path.glob("helper.*")] == [f"helper.{'SIGUSR2' if leaves else 'SIGUSR1'}"]


# --- Shells

PYTHON_BELOW = """\
import os, signal
numbers = [signal.SIGTERM, signal.SIGUSR1]
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
os.write(1, b"up\\n")
open(f"python.{signal.Signals(signal.sigwait(numbers)).name}", "x").close()
"""

TRAPS = {"no trap": "", "TERM trap": "trap 'echo trapped' TERM", "EXIT trap": "trap 'echo left' EXIT"}


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("trap", TRAPS)
def test_below_a_shell_everybody_is_told_at_once(elastic_run, script, tmp_path, trap, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    python = script("below.py", PYTHON_BELOW)
    job = script("job.sh", f"#!{shutil.which(shell)}\n{TRAPS[trap]}\npython3 {python}\necho after\n")
    running = elastic_run.start(PATIENT, "--events=run.jsonl", "--no-python", job, preexec_fn=default)
    running.wait_for_line("^up", stream="stdout")
    running.send_signal(TERM)
    result = running.wait()
    assert (result.returncode, result.duration < 20) == (1, True)
    assert (tmp_path / "python.SIGTERM").exists()
    assert ("trapped" in result.stdout) == (trap == "TERM trap")
    assert alone(tmp_path) == []
