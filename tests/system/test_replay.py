"""--record and --replay: what the coordinator of a job was told, and what it decided of it, again."""
# ctest: gate

import json
import os
import re
import threading

import pytest

# Fails in its first two rounds.
FAILS_TWICE = ["--no-python", "sh", "-c", 'test "$TORCHELASTIC_RESTART_COUNT" = 2 || exit 3']


def lines_of(replay):
    return [json.loads(line) for line in replay.splitlines()]


@pytest.fixture
def recorded(elastic_run, tmp_path):
    """The recording of a job whose worker fails twice and then succeeds."""
    result = elastic_run("--record=run.jsonl", "--rdzv-id=night", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
                         "--max-restarts=3", *FAILS_TWICE)
    assert result.returncode == 0, result
    return tmp_path / "run.jsonl"


def test_a_recorded_job_is_replayed_with_its_decisions_and_their_reasons(elastic_run, recorded):
    result = elastic_run("--replay", recorded)
    assert (result.returncode, result.stderr) == (0, ""), result
    first, *steps, last = lines_of(result.stdout)
    assert first["job"] == "night" and first["program"].startswith("elastic-run "), first
    assert first["birth"]["term"] == 1 and re.fullmatch("0x[0-9a-f]+", first["birth"]["incarnation"]), first
    events = [json.loads(line) for line in recorded.read_text().splitlines()[1:]]
    assert [step["event"] for step in steps] == [event for event in events if event in [step["event"] for step in steps]]
    assert len(steps) + sum(line["quiet"] for line in [*steps, last]) == len(events)
    assert (steps[0]["event"]["message"], steps[0]["event"]["role"]) == ("node-joins", "default")
    failure = r"rank 0 \(local rank 0, pid \d+\) exited with code 3"
    decided = [text for step in steps for text in step["decided"]]
    formed = [re.fullmatch(r"round \d has formed with 1 node, world size 1(.*)", text) for text in decided]
    reasons = [found[1] for found in formed if found]
    assert len(reasons) == 3 and reasons[0] == "", decided
    assert all(re.fullmatch(rf", because {failure}", reason) for reason in reasons[1:]), reasons
    failures = [step["event"]["failure"] for step in steps if step["event"].get("message") == "worker-failed"]
    assert [(failure["rank"], failure["exit"]["code"]) for failure in failures] == [(0, 3), (0, 3)]
    prepared = [sent for step in steps for sent in step["sent"] if sent.get("message") == "prepare-round"][-1]
    assert (prepared["to"], prepared["round"], prepared["restart_count"], prepared["max_restarts"]) == ([1], 2, 2, 3)
    assert (prepared["place"]["node_rank"], prepared["place"]["world_size"]) == (0, 1)
    assert re.fullmatch(failure, prepared["reason"]), prepared
    assert ("running", 2, 1) in [(step["state"], step["round"], step["nodes"]) for step in steps]
    assert (last["end"], last["cut_off_line"]) == ("verdict", None)
    assert [last["verdict"][name] for name in ("outcome", "round", "restarts_used")] == ["succeeded", 2, 2]
    assert elastic_run("--replay", recorded).stdout == result.stdout
    assert elastic_run("--replay=-", stdin=recorded.read_bytes()).stdout == result.stdout


def test_a_recording_is_a_line_of_json_for_each_event(recorded):
    head, *events = [json.loads(line) for line in recorded.read_text().splitlines()]
    assert (head["format"], head["version"], head["job"]) == ("elastic-run coordinator recording", 1, "night")
    assert [event["message"] for event in events if event["event"] == "said"][:3] == [
        "node-joins", "store-is-open", "worker-failed"]
    times = [event["at_ms"] for event in events]
    assert times == sorted(times) and times[0] >= 0


def test_a_recording_that_was_cut_off_is_replayed_as_far_as_it_goes_and_says_so(elastic_run, recorded, tmp_path):
    whole = elastic_run("--replay", recorded).stdout
    lines = recorded.read_bytes().splitlines(keepends=True)
    (tmp_path / "cut").write_bytes(b"".join(lines[:5]) + lines[5][:20])
    result = elastic_run("--replay=cut")
    assert (result.returncode, result.stderr) == (0, ""), result
    *steps, last = result.stdout.splitlines(keepends=True)
    assert whole.startswith("".join(steps)) and len(steps) == 4
    assert json.loads(last) == {"quiet": 0, "end": "unfinished", "verdict": None, "cut_off_line": 6}


@pytest.mark.parametrize("number, line, problem", [
    (1, "{}", "it is not an elastic-run coordinator recording; name a file that --record has written"),
    (3, "nonsense", "it is not JSON: "),
    (3, '{"at_ms":1,"event":"said","from":0,"message":"node-leaves"}', "member signal is missing; correct the line"),
    (3, '{"at_ms":1,"event":"said","from":0,"message":"node-left"}', "member message is none of node-joins, "),
])
def test_a_wrong_line_is_named_with_what_is_wrong(elastic_run, recorded, tmp_path, number, line, problem):
    lines = recorded.read_text().splitlines()
    lines[number - 1] = line
    (tmp_path / "wrong.jsonl").write_text("\n".join(lines) + "\n")
    result = elastic_run("--replay=wrong.jsonl")
    assert result.returncode == 2, result
    assert result.stderr.startswith(f"elastic-run: error: wrong.jsonl:{number}: {problem}"), result
    assert len(lines_of(result.stdout)) == number - 1


def test_what_cannot_be_recorded_or_replayed_is_refused_with_the_reason(elastic_run, recorded):
    newer = recorded.read_text().replace('"version":1', '"version":2')
    for arguments, message in [
            (["--replay=nowhere"], "--replay=nowhere: No such file or directory; name a recording"),
            (["--replay=."], ".: Is a directory"),
            (["--replay=/dev/null"], "/dev/null:1: there is no recording in it; name a file that --record has written"),
            (["--replay=-"], "stdin:1: the recording is of version 2, and this elastic-run reads version 1"),
            (["--replay=run.jsonl", "true"], "true: --replay starts no script; leave it out, or --replay"),
            (["--replay=run.jsonl", "--max-restarts=1"], "--max-restarts=1: --replay starts no job; leave it out"),
            (["--record=no/where", "--no-python", "true"], "--record=no/where: No such file or directory; name a file"),
            (["--record=-", "--no-python", "true"], "--record=-: a recording is written to a file; name a file"),
    ]:
        result = elastic_run(*arguments, stdin=newer.encode())
        assert (result.returncode, result.stdout) == (2, ""), result
        assert result.stderr.startswith(f"elastic-run: error: {message}"), result


def test_a_recording_that_fails_or_hangs_costs_one_warning_and_not_the_job(elastic_run, tmp_path):
    full = elastic_run("--record=/dev/full", "--max-restarts=3", *FAILS_TWICE)
    assert full.returncode == 0, full
    warning = "warning: --record=/dev/full: No space left on device; going on without the recording\n"
    assert full.stderr.count(warning) == 1
    os.mkfifo(tmp_path / "nobody")  # to open it waits for a reader
    hangs = elastic_run("--record=nobody", "--max-restarts=3", *FAILS_TWICE)
    assert hangs.returncode == 0, hangs
    assert hangs.stderr.count("--record=nobody") == 1
    assert "warning: --record=nobody: it does not answer; going on without the recording\n" in hangs.stderr


def test_a_recording_can_be_read_while_the_job_runs(elastic_run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "go")
    lines = []
    said = threading.Event()

    def read():
        with open(tmp_path / "pipe") as pipe:
            for line in pipe:
                lines.append(json.loads(line))
                if lines[-1].get("message") == "store-is-open":
                    said.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()  # first: elastic-run does not wait for it for long
    running = elastic_run.start("--record=pipe", "--no-python", "sh", "-c", "echo up; read line < go")
    running.wait_for_line("up", stream="stdout")
    assert said.wait(60)
    (tmp_path / "go").write_text("\n")
    assert running.wait().returncode == 0
    reader.join(60)
    assert lines[-1]["message"] == "verdict-heard"


def test_the_recording_is_in_the_plan(elastic_run):
    result = elastic_run("--dry-run=json", "--record=run.jsonl", "--no-python", "true")
    recording = json.loads(result.stdout)["plan"]["recording"]
    assert recording == {"value": "run.jsonl", "origin": "command line: --record=run.jsonl"}
