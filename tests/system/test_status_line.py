"""The status line: on a terminal one line tells what is waited for, and nothing else is ever mixed with it."""
# ctest: clock

import os
import re
import signal
import subprocess
import sys
import time

import harness
import pytest
from test_console import Screen, at
from test_terminal import SHELL

SH = ["--no-python", "sh", "-c"]
STUBBORN = "trap '' TERM INT; echo up; while :; do sleep 0.2; done"
STATUS = r"elastic-run: stopping on SIGTERM: waiting for (\d) workers? to end \(ranks? [-\d]+\), killed in \d+ s"
HINT = "; press Ctrl-C again to kill now"


def stop(screen, running, text=b"up\r\n"):
    screen.wait_for(text)
    running.send_signal(signal.SIGTERM)


def as_seen(data, columns=1000):
    """The lines that stand on a terminal after that, the last one without its end; it moves by \\r, \\n and erases
    to the end of a line."""
    lines, at_column = [""], 0
    for token in re.findall(rb"\x1b\[K|\r|\n|[^\x1b\r\n]+", data):
        if token == b"\r":
            at_column = 0
        elif token == b"\n":
            lines.append(" " * at_column)
        elif token == b"\x1b[K":
            lines[-1] = lines[-1][:at_column]
        else:
            text = token.decode()
            assert at_column + len(text) < columns, "it goes beyond the last column"
            lines[-1] = lines[-1][:at_column] + text + lines[-1][at_column + len(text):]
            at_column += len(text)
    return lines


def drawn(data):
    """What was drawn as the status line, in order."""
    return [text.decode() for text in re.findall(rb"\r(elastic-run: [^\x1b\r\n]*)\x1b\[K", data)]


# --- It is there, and goes

def test_a_stop_shows_what_is_waited_for_and_how_long_and_leaves_nothing_behind(elastic_run):
    screen = Screen()
    screen.resize(24, 200)
    running = at(screen, elastic_run, "--nproc-per-node=2", "--shutdown-timeout=50", *SH, STUBBORN)
    stop(screen, running, b"up\r\nup\r\n")
    screen.wait_until(lambda data: len(drawn(data)) >= 3)
    running.insist(signal.SIGTERM)
    shown = screen.shown()
    lines = drawn(shown)
    assert re.fullmatch(STATUS + HINT, lines[0]), lines
    seconds = [int(re.search(r"killed in (\d+) s", line).group(1)) for line in lines if "killed in" in line]
    assert seconds == sorted(set(seconds), reverse=True), "it is drawn when it changes, and not else"
    assert seconds[0] <= 50
    assert as_seen(shown) == ["up", "up", "elastic-run: stopped by SIGTERM; all workers have ended", ""]


def test_a_stop_that_is_over_at_once_shows_no_line(elastic_run):
    screen = Screen()
    running = at(screen, elastic_run, "--nproc-per-node=2", *SH, "echo up; exec sleep 100")
    screen.wait_for(b"up\r\nup\r\n")
    began = time.monotonic()
    running.send_signal(signal.SIGTERM)
    assert running.wait().returncode == 1
    shown = screen.shown()
    assert as_seen(shown) == ["up", "up", "elastic-run: stopped by SIGTERM; all workers have ended", ""]
    # Where the machine is so busy that the stop takes a quarter of a second, the line may have been there.
    assert b"\x1b" not in shown or time.monotonic() - began > 0.25


def test_a_failure_shows_who_has_failed_and_who_is_waited_for(elastic_run):
    screen = Screen()
    screen.resize(24, 200)
    running = at(screen, elastic_run, "--nproc-per-node=3", "--shutdown-timeout=50", *SH, """
        if [ $RANK = 1 ]; then while ! [ -e ready.0 -a -e ready.2 ]; do :; done; exit 3; fi
        trap '' TERM; touch ready.$RANK; while :; do sleep 0.2; done""")
    screen.wait_until(lambda data: len(drawn(data)) >= 1)
    running.insist(signal.SIGTERM)
    line = drawn(screen.shown())[0]
    assert re.fullmatch(r"elastic-run: rank 1 failed: waiting for 2 workers to end \(ranks 0, 2\), killed in \d+ s",
                        line), line


# --- Other output

def test_lines_of_workers_and_of_the_launcher_are_never_mixed_with_it(elastic_run, tmp_path):
    """It is erased before each, and back soon after."""
    screen = Screen()
    screen.resize(24, 200)
    running = at(screen, elastic_run, "--log-level=info", "--shutdown-timeout=50", *SH, """
        trap '' TERM; echo up
        for i in 1 2 3 4 5; do
          while ! [ -e go.$i ]; do sleep 0.05; done; echo "out $i"; echo "err $i" >&2
        done; exit 7""")
    stop(screen, running)
    for number in range(1, 6):
        screen.wait_until(lambda data: re.search(rb"killed in \d+ s[^\r\n]*\x1b\[K$", data))
        (tmp_path / f"go.{number}").touch()
        screen.wait_for(b"err %d\r\n" % number)
    assert running.wait().returncode == 1
    shown = screen.shown()
    lines = [line for line in as_seen(shown) if not line.startswith("elastic-run: info: ")]
    expected = ["up"] + [f"{stream} {number}" for number in range(1, 6) for stream in ("out", "err")]
    assert lines == [*expected, "elastic-run: stopped by SIGTERM; all workers have ended", ""]
    assert len(drawn(shown)) >= 5


def test_tee_to_the_same_terminal_is_never_mixed_with_it(elastic_run, tmp_path):
    """There are two writers then, for stdout and for stderr."""
    screen = Screen()
    screen.resize(24, 200)
    running = at(screen, elastic_run, "--log-dir=logs", "-t", "3", "--nproc-per-node=2", "--shutdown-timeout=50", *SH,
                 """trap '' TERM; echo up
                    i=0; while :; do i=$((i+1)); echo "out $i"; echo "err $i" >&2; sleep 0.3; done""")
    stop(screen, running)
    screen.wait_until(lambda data: len(drawn(data)) >= 5)
    running.insist(signal.SIGTERM)
    shown = screen.shown()
    *lines, last, rest = as_seen(shown)
    assert all(re.fullmatch(r"\[default[01]\]:(up|(out|err) \d+)", line) for line in lines), lines
    assert (last, rest) == ("elastic-run: stopped by SIGTERM; all workers have ended", "")


def test_a_progress_bar_is_ended_for_it_once_it_stands_still(elastic_run):
    screen = Screen()
    screen.resize(24, 200)
    running = at(screen, elastic_run, "--shutdown-timeout=50", *SH,
                 "trap '' TERM; printf ' 10%% up'; while :; do sleep 0.2; done")
    stop(screen, running, b" 10% up")
    screen.wait_until(lambda data: len(drawn(data)) >= 1)
    running.insist(signal.SIGTERM)
    shown = screen.shown()
    assert as_seen(shown) == [" 10% up", "elastic-run: stopped by SIGTERM; all workers have ended", ""]


def test_it_is_never_longer_than_the_terminal_is_wide(elastic_run):
    columns = 60
    screen = Screen()
    screen.resize(24, columns)
    running = at(screen, elastic_run, "--nproc-per-node=2", "--shutdown-timeout=50", *SH, STUBBORN)
    stop(screen, running)
    screen.wait_until(lambda data: len(drawn(data)) >= 1)
    running.insist(signal.SIGTERM)
    lines = drawn(screen.shown())
    assert max(map(len, lines)) < columns


# --- Where there is none

@pytest.mark.parametrize("options, env", [
    ([], {"TERM": "dumb"}),
    (["--stderr-tail=never"], {}),  # workers write to the terminal themselves
    (["--log-dir=logs", "-t", "2"], {}),  # and there to stdout
])
def test_no_line_is_drawn_where_it_could_not_be_or_not_alone(elastic_run, options, env):
    screen = Screen()
    running = at(screen, elastic_run, *options, "--shutdown-timeout=2", *SH, STUBBORN, env=env)
    stop(screen, running, b"up")
    assert running.wait().returncode == 1
    assert b"\x1b" not in screen.shown()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_no_line_is_drawn_where_one_stream_is_a_pipe(elastic_run, stream):
    """What is behind the pipe (tee, less) may write to the terminal, too."""
    screen = Screen()
    running = at(screen, elastic_run, "--shutdown-timeout=2", *SH,
                 "trap '' TERM; touch up; while :; do sleep 0.2; done", **{stream: subprocess.PIPE})
    harness.wait_until((elastic_run.directory / "up").exists)
    running.send_signal(signal.SIGTERM)
    result = running.wait()
    assert result.returncode == 1
    assert b"\x1b" not in screen.shown() + result.stderr_bytes


def test_a_line_is_drawn_where_stdout_is_a_file_that_gets_nothing_of_it(elastic_run, tmp_path):
    screen = Screen()
    with open(tmp_path / "out", "wb") as out:
        running = at(screen, elastic_run, "--log-dir=logs", "-t", "1", "--shutdown-timeout=50", *SH, """
            trap '' TERM; touch up
            while ! [ -e go ]; do sleep 0.05; done; echo out; touch told; while :; do sleep 0.2; done""", stdout=out)
    harness.wait_until((tmp_path / "up").exists)
    running.send_signal(signal.SIGTERM)
    screen.wait_until(lambda data: len(drawn(data)) >= 1)
    (tmp_path / "go").touch()
    harness.wait_until((tmp_path / "told").exists)
    running.insist(signal.SIGTERM)
    assert as_seen(screen.shown()) == ["elastic-run: stopped by SIGTERM; all workers have ended", ""]
    assert (tmp_path / "out").read_bytes() == b"[default0]:out\n"


def test_no_line_is_drawn_where_only_stderr_of_workers_is_the_terminal_itself(elastic_run, tmp_path):
    screen = Screen()
    with open(tmp_path / "out", "wb") as out:
        running = at(screen, elastic_run, "--stderr-tail=never", "--shutdown-timeout=2", *SH,
                     "trap '' TERM; echo up >&2; while :; do sleep 0.2; done", stdout=out)
    stop(screen, running)
    assert running.wait().returncode == 1
    assert screen.shown() == b"up\r\nelastic-run: stopped by SIGTERM; all workers have ended\r\n"


# --- Jobs of a shell

@pytest.fixture
def job_of_shell(elastic_run, script):
    """job_of_shell(begins, *command): the screen, and the shell of test_terminal.py whose job it is."""
    def start(begins, *command):
        screen = Screen()
        screen.resize(24, 200)
        name = os.ttyname(screen.slave)
        shell = elastic_run.start(name, begins, "usual", elastic_run.binary, *command,
                                  program=[sys.executable, script("shell.py", SHELL)], stdin=subprocess.PIPE,
                                  env={"OMP_NUM_THREADS": "1", "TERM": "xterm"})
        pid = int(shell.wait_for_line(r"^job (\d+)$", stream="stdout").group(1))
        screen.handed_over()
        return screen, shell, pid

    return start


def test_a_job_in_the_background_draws_nothing(job_of_shell):
    screen, shell, pid = job_of_shell("bg", "--shutdown-timeout=2", *SH, STUBBORN)
    screen.wait_for(b"up\r\n")
    os.kill(pid, signal.SIGTERM)
    shell.wait_for_line("^ended with 1$", stream="stdout")
    assert shell.wait().returncode == 0
    assert screen.shown() == b"up\r\nelastic-run: stopped by SIGTERM; all workers have ended\r\n"


def test_ctrl_z_takes_the_line_away_and_fg_brings_it_back(job_of_shell):
    screen, shell, pid = job_of_shell("fg", "--shutdown-timeout=50", *SH, STUBBORN)
    screen.wait_for(b"up\r\n")
    os.kill(pid, signal.SIGTERM)
    screen.wait_for(b"waiting for 1 worker")
    os.write(screen.master, b"\x1a")
    shell.wait_for_line("^stopped by SIGTSTP$", stream="stdout")
    screen.wait_until(lambda data: as_seen(data.replace(b"^Z", b"")) == ["up", ""])
    so_far = screen.data()
    assert as_seen(so_far.replace(b"^Z", b"")) == ["up", ""]
    shell.popen.stdin.write(b"fg\n")
    shell.wait_for_line("^continued$", stream="stdout")
    screen.wait_until(lambda data: re.search(rb"killed in (4[0-8]|[0-3]\d) s", data[len(so_far):]))
    os.kill(pid, signal.SIGTERM)  # again, a second after the first
    shell.wait_for_line("^ended with 1$", stream="stdout")
    assert shell.wait().returncode == 0
    assert as_seen(screen.shown().replace(b"^Z", b"")) == [
        "up", "elastic-run: stopped by SIGTERM; all workers have ended", ""]


def test_a_second_ctrl_c_kills_what_the_line_waits_for(job_of_shell):
    screen, shell, pid = job_of_shell("fg", "--nproc-per-node=2", "--shutdown-timeout=50", *SH, STUBBORN)
    screen.wait_for(b"up\r\nup\r\n")
    os.write(screen.master, b"\x03")
    screen.wait_for(b"elastic-run: stopping on SIGINT: waiting for 2 workers to end (ranks 0-1), killed in ")
    screen.wait_until(lambda data: re.search(rb"killed in (4[0-8]|[0-3]\d) s", data))  # a second is over
    os.write(screen.master, b"\x03")
    shell.wait_for_line("^ended with 1$", stream="stdout")
    assert shell.wait().returncode == 0
    assert as_seen(screen.shown().replace(b"^C", b"")) == [
        "up", "up", "elastic-run: stopped by SIGINT; all workers have ended", ""]


def test_a_check_that_takes_long_shows_where_it_is(elastic_run, tmp_path):
    screen = Screen()
    screen.resize(24, 200)
    go_on = tmp_path / "go_on"
    running = at(screen, elastic_run, "--network-check", f"--health-hook=until [ -e {go_on} ]; do sleep 0.1; done",
                 "--no-python", "true")
    screen.wait_until(lambda data: len(drawn(data)) >= 1)
    assert re.fullmatch(r"elastic-run: check before training: nodes test themselves, \d+ s", drawn(screen.data())[0])
    go_on.touch()
    assert running.wait().returncode == 0
    assert as_seen(screen.shown())[-1] == ""
