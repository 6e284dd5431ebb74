"""--events, what happens in a launcher for programs; and torchelastic's events beside those of the real torchrun."""
# ctest: gate

import datetime
import json
import os
import pathlib
import re
import resource
import signal
import sys

import harness
import pytest
import workers

ROOT = pathlib.Path(__file__).resolve().parents[2]
SH = ["--no-python", "sh", "-c"]
QUIET = {"OMP_NUM_THREADS": "1"}
EVERY_LINE = {"event", "time", "monotonic_ms", "level", "job", "host", "launcher", "node", "round", "restart_count",
              "message"}
FAILS_ONCE = """
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0
    [ $RANK = 1 ] && exit 3
    sleep 100"""


def read(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def names(events):
    return [event["event"] for event in events]


def only(events, name):
    (event,) = [event for event in events if event["event"] == name]
    return event


def documented():
    """{event: its fields} of the events of the file, as docs/observing.md has them."""
    page = (ROOT / "docs/observing.md").read_text()
    section = re.split(r"\n##+ ", page.split("## The events\n", 1)[1], maxsplit=1)[0]
    fields = {}
    for line in section.splitlines():
        cells = line.strip("|").split(" | ")
        if line.startswith("| `") and "log only" not in cells[1]:
            for name in re.findall(r"`(\w+)`", cells[0]):
                fields[name] = set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", cells[3])))
    return fields


def check_against_docs(events):
    fields = documented()
    for event in events:
        assert EVERY_LINE <= set(event), event
        assert set(event) - EVERY_LINE <= fields[event["event"]], event
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["time"])
        datetime.datetime.fromisoformat(event["time"])
    return events


# --- --events

def test_a_job_is_told_from_its_launch_to_its_end_whatever_the_log_level(elastic_run):
    result = elastic_run("--events=run.jsonl", "--rdzv-id=night", "--rdzv-backend=c10d", "--nproc-per-node=2",
                         "--max-restarts=1", "--log-level=critical", *SH, FAILS_ONCE, env=QUIET)
    assert (result.returncode, result.stderr) == (0, "")
    events = check_against_docs(read(elastic_run.directory / "run.jsonl"))
    # Workers end, and log files are there, in any order; what may come earlier or later is left out.
    told = [name for name in names(events) if name not in ("logs_open", "worker_exited", "workers_gone")]
    round_of_two = ["store_open", "round_began", "worker_started", "worker_started", "workers_started"]
    assert told == ["log_directory", "launch", "round_prepared", *round_of_two, "signal_sent", "stop",
                    "round_prepared", "restart", *round_of_two, "job_ends", "signal_sent", "stop", "verdict", "launch_ended"]
    assert {(event["job"], event["launcher"]) for event in events} == {("night", events[0]["launcher"])}
    assert [event["monotonic_ms"] for event in events] == sorted(event["monotonic_ms"] for event in events)
    before, *after = [event for event in events if event["event"] in ("launch", "worker_started")]
    assert (before["node"], before["round"], before["restart_count"]) == (None, None, None)
    assert [(event["node"], event["round"], event["restart_count"], event["rank"]) for event in after] == [
        (0, 0, 0, 0), (0, 0, 0, 1), (0, 1, 1, 0), (0, 1, 1, 1)]
    exits = {(event["round"], event["rank"]): event for event in events if event["event"] == "worker_exited"}
    assert (exits[0, 1]["exit_code"], exits[0, 1]["signal"], exits[0, 1]["stopped_by_us"]) == (3, None, False)
    assert (exits[0, 0]["exit_code"], exits[0, 0]["signal"], exits[0, 0]["stopped_by_us"]) == (-15, "SIGTERM", True)
    assert all(0 <= event["milliseconds"] < 60_000 for event in exits.values())
    assert only(events, "verdict")["outcome"] == "succeeded"
    assert (events[-1]["exit_status"], events[-1]["level"]) == (0, "debug")


def test_a_failure_is_told_with_its_cause(elastic_run):
    result = elastic_run("--events=run.jsonl", *SH, "echo 'ModuleNotFoundError: No module named nothing' >&2; kill -9 $$",
                         env=QUIET | {"PET_EVENTS": "not_this"})
    assert result.returncode == 1
    events = check_against_docs(read(elastic_run.directory / "run.jsonl"))
    failure = only(events, "failure")
    started = only(events, "worker_started")
    assert (failure["rank"], failure["pid"], failure["exit_code"], failure["signal"]) == (0, started["pid"], -9, "SIGKILL")
    assert (failure["failed_node"], failure["failures"], failure["error"]) == (0, 1, None)
    assert names(events)[-3:] == ["verdict", "failure", "launch_ended"]
    assert events[-1]["exit_status"] == 1
    assert not (elastic_run.directory / "not_this").exists()


def test_signals_and_the_stop_that_follows_are_told(elastic_run):
    running = elastic_run.start("--events", "run.jsonl", *SH, "echo up; sleep 100", env=QUIET)
    running.wait_for_line("^up", stream="stdout")
    running.send_signal(signal.SIGTERM)
    assert running.wait().returncode == 1
    events = check_against_docs(read(elastic_run.directory / "run.jsonl"))
    # That log files are there may be told at any time.
    told = [event for event in events if event["event"] != "logs_open"]
    at = names(told).index("signal")
    assert names(told)[at:at + 3] == ["signal", "signal_sent", "stop"]
    assert (told[at]["signal"], told[at + 2]["reason"]) == ("SIGTERM", "elastic-run got SIGTERM")
    assert only(events, "verdict")["outcome"] == "stopped"


def test_nodes_of_a_job_share_a_file_and_tell_their_waits_and_their_coordinator(elastic_run):
    endpoint = f"localhost:{workers.free_port()}"
    start = lambda *more: elastic_run.start(  # noqa: E731
        "--events=run.jsonl", "--nnodes=2", "--rdzv-id=night", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}",
        "--network-check", *more, *SH, "exit 0", env=QUIET)
    first = start()
    path = elastic_run.directory / "run.jsonl"
    harness.wait_until(lambda: path.exists() and '"coordinator_found"' in path.read_text(),
                       what="the first node has its coordinator")
    second = start()
    assert [node.wait().returncode for node in (first, second)] == [0, 0]
    events = check_against_docs(read(path))
    launchers = list(dict.fromkeys(event["launcher"] for event in events))
    assert len(launchers) == 2
    for launcher in launchers:
        own = [event for event in events if event["launcher"] == launcher]
        told = names(own)
        for name in ("coordinator_found", "round_prepared", "round_began", "worker_exited", "verdict"):
            assert told.count(name) == 1, (name, told)
        assert told.count("waiting_began") == told.count("waiting_ended") >= 1, told
        assert told.index("waiting_began") < told.index("round_prepared") < told.index("check_began")
        assert told.count("check_began") == told.count("check_answered") >= 1
        assert told[-1] == "launch_ended"
        prepared = only(own, "round_prepared")
        assert (prepared["world_size"], prepared["node"]) == (2, prepared["node_rank"])
    (hosting,) = [event for event in events if event["event"] == "hosting" and event["level"] == "info"]
    checked = only(events, "checked")
    assert checked["launcher"] == hosting["launcher"]
    assert (checked["nodes"], checked["faulty"], checked["left_out"]) == (2, [], [])


def test_a_file_that_is_there_is_appended_to(elastic_run):
    path = elastic_run.directory / "run.jsonl"
    path.write_text('{"event":"mine"}\n')
    for _ in range(2):
        assert elastic_run(*SH, "exit 0", env=QUIET | {"PET_EVENTS": "run.jsonl"}).returncode == 0
    events = read(path)
    assert names(events)[0] == "mine"
    assert names(events).count("launch") == names(events).count("launch_ended") == 2


def test_what_cannot_be_written_costs_one_warning_and_not_the_job(elastic_run):
    arguments = ["--max-restarts=1", *SH, "exit $((1 - TORCHELASTIC_RESTART_COUNT))"]
    missing = elastic_run("--events=no/where", *arguments, env=QUIET)
    assert missing.returncode == 0, missing
    assert missing.stderr.count("--events=") == 1
    assert "warning: --events=no/where: No such file or directory; going on without it\n" in missing.stderr
    full = elastic_run("--events=/dev/full", *arguments, env=QUIET)
    assert full.returncode == 0, full
    assert full.stderr.count("warning: --events=/dev/full: No space left on device; events are lost\n") == 1
    os.mkfifo(elastic_run.directory / "nobody")  # to open it waits for a reader
    hangs = elastic_run("--events=nobody", *arguments, env=QUIET)
    assert hangs.returncode == 0, hangs
    assert hangs.stderr.count("warning: --events=nobody: it does not answer\n") == 1
    assert hangs.stderr.count("--events=nobody") == 1


def test_a_pipe_gets_each_event_as_it_happens(elastic_run):
    os.mkfifo(elastic_run.directory / "go")
    os.mkfifo(elastic_run.directory / "pipe")
    reading = os.open(elastic_run.directory / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        running = elastic_run.start("--events=pipe", *SH, "echo up; read line < go", env=QUIET)
        text = b""

        def started():
            nonlocal text
            try:
                text += os.read(reading, 65536)
            except BlockingIOError:
                pass
            return b'"workers_started"' in text

        harness.wait_until(started, what="the pipe tells that the workers run")
        running.wait_for_line("up", stream="stdout")
        (elastic_run.directory / "go").write_text("\n")
        assert running.wait().returncode == 0
    finally:
        os.close(reading)


def test_lines_that_were_lost_are_counted_in_the_file(elastic_run):
    """The file may have 2,500 bytes, and no more until the limit is lifted."""
    limited = [sys.executable, "-c", "import resource, signal, os, sys\n"
               "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
               "resource.setrlimit(resource.RLIMIT_FSIZE, (2500, -1))\n"
               "os.execv(sys.argv[1], sys.argv[1:])", elastic_run.binary]
    running = elastic_run.start("--events=run.jsonl", "--log-dir=/dev/null", "--forward-signals=SIGUSR1", *SH,
                                "trap : USR1; echo up; while :; do sleep 1000 & wait; done", program=limited, env=QUIET)
    running.wait_for_line("^up", stream="stdout")

    def warned():
        running.send_signal(signal.SIGUSR1)  # one more event
        return "events are lost" in running.stderr.text

    harness.wait_until(warned, what="the user is told")
    path = elastic_run.directory / "run.jsonl"
    launcher = read_whole(path)[0]["launcher"]
    resource.prlimit(launcher, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    running.send_signal(signal.SIGTERM)
    assert running.wait().returncode == 1
    events = read_whole(path)
    lost = only(events, "events_lost")
    check_against_docs([lost])
    assert lost["count"] >= 1
    at = names(events).index("events_lost")
    assert "launch_ended" in names(events)[at + 1:]


def read_whole(path):
    """What of a file are whole lines: one that was cut off by an error stays by itself."""
    lines = path.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def test_a_wrong_name_is_refused_and_the_file_is_in_the_plan(elastic_run):
    wrong = elastic_run("--events=-", *SH, "true")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("elastic-run: error: --events=-: events are written to a file; name a file")
    plan = json.loads(elastic_run("--dry-run=json", "--events=run.jsonl", *SH, "true").stdout)["plan"]
    assert plan["events"] == {"value": "run.jsonl", "origin": "command line: --events=run.jsonl"}
    assert not (elastic_run.directory / "run.jsonl").exists()


# --- Torchelastic's events

TORCHRUN = pathlib.Path(sys.executable).with_name("torchrun")
SUCCEEDS = "pass\n"
FAILS = """\
import os, sys, time
if os.environ["RANK"] == "1":
    time.sleep(0.5)
    sys.exit(3)
time.sleep(100)
"""
# The second time it leaves an error file, as @record does.
RECORDED = """\
import json, os, sys
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.exit(5)
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    file.write('{"message":{"message":"ValueError: b\u00f6se \\U0001f600","extraInfo":{"py_callstack":"Traceback\\\\n",'
               '"timestamp":"1795182797"}},"more":[1.5,null,true,{}]}')
sys.exit(1)
"""


def torch_events(result):
    return [json.loads(line) for line in result.stderr.splitlines() if line.startswith('{"name": "torchelastic')]


def comparable(event):
    """An event without what differs from run to run (process numbers, durations, the random id of a plain launch), and
    without the host's name, which Python has looked up where elastic-run asks nobody."""
    event = json.loads(json.dumps(event))
    metadata = event["metadata"]
    inner = metadata["metadata"] = json.loads(metadata["metadata"])
    for holder, name in ((metadata, "worker_id"), (metadata, "duration_ms"), (inner, "worker_pid")):
        if name in holder:
            value = holder[name][0] if isinstance(holder[name], list) else holder[name]
            holder[name] = type(value).__name__
    assert re.fullmatch(r"\S+", metadata.pop("hostname"))
    assert metadata.pop("total_run_time") >= 0  # whole seconds: a matter of luck
    if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["run_id"]):
        metadata["run_id"] = "random"
    return event


def form(line):
    """What stands in a line beside its values: the order of fields, blanks."""
    line = re.sub(r'"hostname": "[^"]*"', "", line)
    return re.sub(r'\d+(\.\d+)?(e-?\d+)?', "0", line)


@pytest.mark.parametrize("text, arguments, status", [
    (SUCCEEDS, [], 0),
    (FAILS, ["--nproc-per-node=2", "--rdzv-id=night", "--master-port=PORT", "--role=trainer"], 1),
    (RECORDED, ["--max-restarts=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--rdzv-id=x"], 1),
], ids=["one worker ends well", "one of two workers fails", "a worker fails twice, the second time with an error file"])
def test_torchelastics_events_are_those_of_torchrun(elastic_run, script, text, arguments, status):
    train = script("train.py", text)
    found = []
    for program in ([TORCHRUN], None):
        port = str(workers.free_port())
        result = elastic_run.start("--event-log-handler=console",
                                   *[argument.replace("PORT", port) for argument in arguments], train, program=program,
                                   env=QUIET).wait()
        assert result.returncode == status, result
        lines = [line for line in result.stderr.splitlines() if line.startswith('{"name": "torchelastic')]
        found.append(([comparable(event) for event in torch_events(result)], [form(line) for line in lines]))
    (theirs, their_form), (ours, our_form) = found
    assert len(theirs) >= 5
    assert ours == theirs
    if "id" in "".join(arguments):  # a random id has digits and letters
        assert our_form == their_form


def test_who_is_stopped_has_failed_as_an_agent(elastic_run):
    running = elastic_run.start("--event-log-handler=console", *SH, "echo up; sleep 100", env=QUIET)
    running.wait_for_line("^up", stream="stdout")
    running.send_signal(signal.SIGTERM)
    result = running.wait()
    assert result.returncode == 1
    events = torch_events(result)
    assert [(event["source"], event["metadata"]["state"]) for event in events] == [
        ("AGENT", "RENDEZVOUS"), ("AGENT", "ASSIGN_WORKER_RANKS"), ("WORKER", "START"), ("AGENT", "FAILED")]
    assert events[-1]["metadata"]["raw_error"] == "stopped by SIGTERM"
    assert events[-1]["metadata"]["metadata"] == '{"group_world_size": 1, "entry_point": "sh"}'


@pytest.mark.parametrize("handler, env, prints", [
    ("console", {}, True),
    ("console", {"LOGLEVEL": "INFO"}, True),
    ("console", {"LOGLEVEL": "WARNING"}, False),
    ("console", {"PET_LOG_LEVEL": "error"}, True),
    ("null", {}, False),
    ("dynamic_rendezvous", {}, False),
])
def test_handlers_and_loglevel_say_whether_torchelastics_events_are_printed(elastic_run, handler, env, prints):
    result = elastic_run(f"--event-log-handler={handler}", *SH, "exit 0", env=QUIET | env)
    assert result.returncode == 0
    assert len(torch_events(result)) == (5 if prints else 0)
    assert "no effect" not in result.stderr


def test_torchrun_is_silenced_by_loglevel_too(elastic_run, script):
    result = elastic_run.start("--event-log-handler=console", script("train.py", SUCCEEDS), program=[TORCHRUN],
                               env=QUIET | {"LOGLEVEL": "WARNING"}).wait()
    assert (result.returncode, torch_events(result)) == (0, [])
