"""--record and --replay: what the coordinator of a job was told, and what it decided of it, again."""
# ctest: gate

import json
import os
import re
import threading

import pytest

# Fails in its first two rounds.
FAILS_TWICE = ["--no-python", "sh", "-c", 'test "$TORCHELASTIC_RESTART_COUNT" = 2 || exit 3']
TIME = r"\+\d+\.\d{3} s  "


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
    text = result.stdout
    assert re.match(r"job night: coordinator of term 1, incarnation [0-9a-f]+; .*; recorded by elastic-run \S+\n"
                    + TIME + r"session 0 joins with 1 worker of role default,", text), text
    failure = r"rank 0 \(local rank 0, pid \d+\) exited with code 3"
    formed = [reason for reason in re.findall(r"    decided: round \d has formed with 1 node, world size 1(.*)\n", text)]
    assert len(formed) == 3 and formed[0] == "", text
    assert all(re.fullmatch(rf", because {failure}", reason) for reason in formed[1:]), formed
    assert len(re.findall(TIME + rf"session 0 says that in round \d {failure}\n", text)) == 2
    assert re.search(r"    to session 0: prepare round 2 as node 0 of 1, its first rank 0 of 1; "
                     r"restart 2 of 3, because", text)
    assert re.search(r"    now: running, round 2, 1 node\b", text)
    assert text.endswith("\nthe job has succeeded in round 2, after 2 restarts\n")
    assert elastic_run("--replay", recorded).stdout == text
    assert elastic_run("--replay=-", stdin=recorded.read_bytes()).stdout == text


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
    (tmp_path / "cut").write_bytes(b"".join(lines[:4]) + lines[4][:20])
    result = elastic_run("--replay=cut")
    assert (result.returncode, result.stderr) == (0, ""), result
    steps, said = result.stdout.split("line 5 is not whole", 1)
    assert said == ": the recording was cut off there\nthe recording ends here, before the job has\n"
    assert whole.startswith(steps) and len(re.findall("^" + TIME, steps, re.MULTILINE)) == 3


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
    assert len(re.findall("^" + TIME, result.stdout, re.MULTILINE)) == max(0, number - 2)


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
