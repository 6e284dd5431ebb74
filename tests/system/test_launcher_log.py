"""What elastic-run itself says on stderr: its level, its events, as text and as JSON."""
# ctest: gate

import json
import os
import re
import signal

import harness
import pytest
import workers
from test_console import MANY, WRITER, Console

SH = ["--no-python", "sh", "-c"]
QUIET = {"OMP_NUM_THREADS": "1"}
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def events_of(stderr):
    """The JSON objects on stderr, one a line; what follows the last one is the failure report."""
    events = []
    for line in stderr.splitlines():
        if not line.startswith("{"):
            break
        events.append(json.loads(line))
    return events


def names(events):
    return [event.get("event") for event in events]


# --- The level

def test_a_launch_that_goes_well_says_nothing(elastic_run):
    result = elastic_run("--nproc-per-node=2", *SH, "exit 0", env=QUIET)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("arguments, env, seen", [
    ([], {}, "w"),
    ([], {"LOGLEVEL": "INFO"}, "iw"),
    ([], {"LOGLEVEL": "Debug"}, "diw"),
    ([], {"LOGLEVEL": "20"}, "iw"),
    ([], {"LOGLEVEL": ""}, "w"),
    (["--log-level=error"], {"LOGLEVEL": "DEBUG"}, ""),
    (["--log_level", "warn"], {"LOGLEVEL": "DEBUG"}, "w"),
    (["--log-level=INFO"], {"PET_LOG_LEVEL": "debug"}, "iw"),
    ([], {"PET_LOG_LEVEL": "debug", "LOGLEVEL": "CRITICAL"}, "diw"),
    (["--log-level=10"], {}, "diw"),
    (["--log-level=critical"], {}, ""),
])
def test_the_flag_goes_before_its_variable_and_that_before_loglevel(elastic_run, arguments, env, seen):
    result = elastic_run(*arguments, "--max-restarts=1", *SH, "exit $((1 - TORCHELASTIC_RESTART_COUNT))",
                         env=QUIET | env)
    assert result.returncode == 0, result
    levels = {line.split(": ")[1][0] for line in result.stderr.splitlines()}
    assert levels == set(seen), result.stderr


def test_a_loglevel_that_is_none_costs_one_warning_and_no_training(elastic_run):
    """Other programs read that variable, too."""
    result = elastic_run(*SH, "exit 0", env=QUIET | {"LOGLEVEL": "trace\n2"})
    assert result.returncode == 0
    assert result.stderr == ("elastic-run: warning: LOGLEVEL=trace\\x0a2: not a log level; "
                             "use debug, info, warning, error or critical\n")


def test_a_loglevel_that_is_none_is_no_matter_where_the_flag_is_given(elastic_run):
    result = elastic_run("--log-level=warning", *SH, "exit 0", env=QUIET | {"LOGLEVEL": "trace"})
    assert (result.returncode, result.stderr) == (0, "")


def test_an_error_that_ends_elastic_run_is_told_at_any_level(elastic_run):
    result = elastic_run("--log-level=critical", "--nproc-per-node=none", *SH, "true")
    assert result.returncode == 2
    assert result.stderr.startswith("elastic-run: error: --nproc-per-node=none")


def test_the_failure_report_does_not_depend_on_the_level(elastic_run):
    result = elastic_run("--log-level=critical", *SH, "exit 3", env=QUIET)
    assert result.returncode == 1
    assert result.stderr.startswith("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")


# --- The events

def test_info_tells_the_course_of_a_job_one_line_an_event(elastic_run):
    result = elastic_run("--log-level=info", "--rdzv-id=mine", "--rdzv-backend=c10d", "--nproc-per-node=2",
                         "--max-restarts=1", *SH, """
        [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0
        [ $RANK = 1 ] && exit 3
        sleep 100""", env=QUIET)
    assert result.returncode == 0, result
    text = re.sub(r"pids \d+ \d+", "pids P", re.sub(r"\d+ ms", "N ms", result.stderr))
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST", re.sub(r"pid \d+", "pid P", text))
    lines = [line.removeprefix("elastic-run: ") for line in text.splitlines()]
    lines = [line for line in lines if "waiting for the log directory" not in line]
    assert lines[0].startswith("info: log directory: /")
    ends = {"info: round 1: rank 0 exited with code 0", "info: round 1: rank 1 exited with code 0"}
    assert set(lines[13:15]) == ends
    assert lines[1:13] + lines[15:] == [
        "info: run mine: 2 workers on this node, 1 restart at most: sh",
        "info: round 0: prepared, restart 0 of 1; node 0 of 1, ranks 0-1 of 2",
        "info: round 0: the worker store is at HOST",
        "info: round 0: ranks 0-1 started, pids P",
        "info: round 0: rank 1 exited with code 3",
        "info: round 0: stopping workers with SIGTERM: rank 1 exited with code 3",
        "info: round 0: rank 0 was killed by SIGTERM",
        "info: round 0: all its processes have ended, N ms after the stop",
        "info: round 1: prepared, restart 1 of 1; node 0 of 1, ranks 0-1 of 2",
        "warning: rank 1 (local rank 1, pid P) exited with code 3; restarting all workers (restart 1 of 1)",
        "info: round 1: the worker store is at HOST",
        "info: round 1: ranks 0-1 started, pids P",
        "info: round 1: sending SIGTERM to any processes left: all workers succeeded",
        "info: round 1: all its processes have ended, N ms after the stop",
        "info: the job has succeeded; 1 of 1 restarts were used",
    ]


def test_a_stop_tells_who_asked_for_it_and_what_had_to_be_killed(elastic_run):
    running = elastic_run.start("--log-format=json", "--log-level=info", "--shutdown-timeout=1", *SH,
                                "trap '' TERM; echo up; while :; do sleep 1; done", env=QUIET)
    running.wait_for_line("^up", stream="stdout")
    running.send_signal(signal.SIGTERM)
    result = running.wait()
    assert result.returncode == 1
    events = [event for event in events_of(result.stderr) if event["event"] != "waiting"]
    assert names(events) == ["log_directory", "launch", "round_prepared", "store_open", "workers_started", "stop",
                             "workers_killed", "worker_exited", "workers_gone", "verdict"]
    (stop,) = [event for event in events if event["event"] == "stop"]
    assert (stop["signal"], stop["reason"]) == ("SIGTERM", "elastic-run got SIGTERM")
    assert events[-1]["outcome"] == "stopped"
    assert events[-1]["reason"] == "stopped by SIGTERM"


def test_workers_that_do_not_end_are_told_of_in_a_log_after_10_seconds(elastic_run):
    running = elastic_run.start("--shutdown-timeout=40", *SH,
                                "trap '' TERM; echo up; while :; do sleep 1; done", env=QUIET)
    running.wait_for_line("^up", stream="stdout")
    running.send_signal(signal.SIGTERM)
    running.wait_for_line(r"^elastic-run: warning: stopping on SIGTERM: waiting for 1 worker to end \(rank 0\), "
                          r"for 1\d s, killed in [23]\d s$", timeout=40)
    running.insist(signal.SIGTERM)
    assert running.wait().stderr.count("waiting for") == 1


# --- JSON

def test_json_is_one_object_a_line_with_time_level_and_what_is_known(elastic_run):
    result = elastic_run("--log-format=json", "--log-level=debug", "--nproc-per-node=2", *SH, "exit 0", env=QUIET)
    assert result.returncode == 0, result
    assert all(line.startswith("{") for line in result.stderr.splitlines())
    events = events_of(result.stderr)
    for event in events:
        assert re.fullmatch(TIME, event["time"])
        assert event["level"] in ("debug", "info", "warning", "error")
        assert event["event"] and event["message"]
    started = [event for event in events if event.get("event") == "worker_started"]
    assert [(event["round"], event["rank"], event["local_rank"]) for event in started] == [(0, 0, 0), (0, 1, 1)]
    exits = {event["rank"]: event for event in events if event.get("event") == "worker_exited"}
    assert {rank: (event["pid"], event["exit_code"]) for rank, event in exits.items()} == {
        event["rank"]: (event["pid"], 0) for event in started}
    assert names(events)[-2:] == ["verdict", "launch_ended"]
    assert (events[-2]["outcome"], events[-1]["exit_status"]) == ("succeeded", 0)


@pytest.mark.parametrize("odd", [b"new\nline", b"\xff\xfe", b'quote " and \\', b"\x1b[2J", "é中".encode()])
def test_a_name_of_any_bytes_is_one_line_in_both_formats(elastic_run, tmp_path, odd):
    for form in ("text", "json"):
        result = elastic_run(f"--log-format={form}", "--log-level=info", b"--rdzv-id=" + odd, "--rdzv-backend=c10d",
                             "--log-dir=/dev/null", *SH, "exit 0", env=QUIET)
        assert result.returncode == 0, result
        lines = result.stderr_bytes.splitlines(keepends=False)
        if form == "json":
            (launch,) = [event for event in map(json.loads, lines) if event.get("event") == "launch"]
            assert launch["run_id"] == odd.decode("utf-8", "replace")
        else:
            assert all(line.startswith(b"elastic-run: ") for line in result.stderr_bytes.split(b"\n")[:-1])
            assert b"\x1b" not in result.stderr_bytes


def test_warnings_and_errors_of_the_start_are_json_too(elastic_run):
    result = elastic_run("--log-format=json", "--monitor-interval=0", *SH, "true", env=QUIET)
    assert result.returncode == 2
    (event,) = events_of(result.stderr)
    assert (event["level"], event["event"]) == ("critical", "refused")
    assert event["message"].startswith("--monitor-interval=0: ")
    result = elastic_run("--max-restarts=x", "--log-format=json", *SH, "true", env=QUIET)
    (event,) = events_of(result.stderr)
    assert event["message"].startswith("--max-restarts=x: ")
    result = elastic_run("--log-format=json", "--nproc-per-node=2", *SH, "exit 0")
    (event,) = events_of(result.stderr)
    assert (event["level"], event["event"]) == ("warning", "launch_plan")
    assert "OMP_NUM_THREADS" in event["message"]


def test_the_failure_report_stays_text_behind_the_json_lines(elastic_run):
    result = elastic_run("--log-format=json", "--max-restarts=1", *SH, "exit 3", env=QUIET)
    assert result.returncode == 1
    (event,) = events_of(result.stderr)
    assert (event["level"], event["event"]) == ("warning", "restart")
    assert "elastic-run: error: the job failed; 1 of 1 restarts were used" in result.stderr.splitlines()[2:]


def test_the_message_about_dropped_lines_is_json_too(elastic_run, static_c, tmp_path):
    console = Console()
    try:
        running = elastic_run.start("--log-format=json", "--log-dir=logs", "-t", "2", *SH,
                                    f"{static_c(WRITER)} {MANY} 2", env=QUIET, stderr=console.writing)
        console.handed_over()
        harness.wait_until((tmp_path / "done.0").exists, timeout=60, what="the worker has written all")
        lines = console.read().splitlines()
        assert running.wait().returncode == 0
    finally:
        console.close()
    told = [json.loads(line) for line in lines if line.startswith(b"{")]
    assert len(told) == 1, told
    assert (told[0]["level"], told[0]["event"]) == ("warning", "dropped")
    assert "dropped: the console is slow" in told[0]["message"]


def test_the_outer_process_speaks_json_too(elastic_run):
    running = elastic_run.start("--log-format=json", *SH, "echo up; sleep 100", env=QUIET)
    running.wait_for_line("^up", stream="stdout")
    launcher = running.launcher()
    os.kill(launcher, signal.SIGKILL)
    (event,) = events_of(running.wait().stderr)
    assert event["event"] == "launcher_killed"
    assert event["message"].startswith(f"the launcher (process {launcher}) was killed by SIGKILL")


# --- In place of a job

def test_store_only_tells_its_port_at_any_level_and_as_json(elastic_run):
    port = workers.free_port()
    running = elastic_run.start("--store-only", f"--port={port}", "--log-format=json", "--log-level=critical")
    line = running.wait_for_line("store_listens").string
    running.send_signal(signal.SIGTERM)
    assert running.wait().returncode == 0
    event = json.loads(line)
    assert (event["event"], event["port"], event["level"]) == ("store_listens", port, "info")
