"""How workers were started, and what that has saved, is told by failure.json, events, metrics and status."""

import json

from harness import wait_until
from http_client import http_port, metrics, status, value
from test_warm_workers import job, python  # noqa: F401


def events(path, name):
    return [event for event in map(json.loads, path.read_text().splitlines()) if event["event"] == name]


def node(job):
    return status(job.port)["node"]


def metric(job, name, **labels):
    return value(metrics(job.port)[0], f"elastic_run_node_{name}", **labels)


def begin(job, tmp_path, **options):
    job.start("--http-port=0", f"--events={tmp_path}/events", f"--log-dir={tmp_path}/logs", **options)
    job.port = http_port(job.run)
    return job


def test_status_and_metrics_say_how_the_workers_were_started_and_whether_the_next_ones_will_be_warm(job, tmp_path):
    begin(job, tmp_path, fails=2)
    job.are(0, "fresh")
    assert node(job)["start"] == "fresh"
    job.wait_until_parked()
    wait_until(lambda: node(job)["warm_workers"]["state"] == "ready", what="the status")
    assert node(job)["warm_workers"] == {"state": "ready", "waiting": 2, "why": ""}
    wait_until(lambda: metric(job, "warm_workers") == 2, what="the metrics")
    assert metric(job, "warm_state", state="ready") == 1 and metric(job, "warm_state", state="cold") == 0
    assert metric(job, "workers_started_warm_total") == 0
    job.ends(0)
    job.are(1, "warm")
    wait_until(lambda: node(job)["workers_started_warm"] == 2, what="the status")
    told = node(job)
    assert told["start"] == "warm" and told["spared_cpu_seconds"] > 0
    # A page of metrics may be some time old.
    wait_until(lambda: metric(job, "workers_started_warm_total") == 2, what="the metrics")
    assert metric(job, "spared_cpu_seconds_total") == told["spared_cpu_seconds"]
    page = job.elastic_run(f"--status=127.0.0.1:{job.port}").stdout
    assert "  start     warm; 2 of 4 workers were started warm, which has spared " in page
    assert "  warm      " in page
    job.ends(1)
    job.workers(2)
    assert job.ends_all().returncode == 0


def test_status_says_why_workers_stay_cold_and_nothing_without_the_flag(job, tmp_path):
    begin(job, tmp_path, restarts=0, fails=0)
    job.are(0, "fresh")
    assert node(job)["warm_workers"] == {"state": "cold", "waiting": 0, "why": "no restart is left"}
    assert "  warm      cold: no restart is left" in job.elastic_run(f"--status=127.0.0.1:{job.port}").stdout
    assert job.ends_all().returncode == 0
    for count in range(10):
        (job.go.parent / f"go.{count}").unlink()
    begin(job, tmp_path, restarts=3, fails=0, warm="off")
    job.are(0, "fresh")
    assert node(job)["warm_workers"] == {"state": "off", "waiting": 0, "why": ""}
    assert "  warm " not in job.elastic_run(f"--status=127.0.0.1:{job.port}").stdout
    assert job.ends_all().returncode == 0


def test_the_events_and_the_failure_report_say_how_each_round_was_started(job, tmp_path):
    begin(job, tmp_path, restarts=1, fails=2)
    job.are(0, "fresh")
    job.wait_until_parked()
    job.ends(0)
    job.are(1, "warm")
    assert job.ends_all().returncode == 1
    fresh, warm = events(tmp_path / "events", "workers_started")
    assert (fresh["start"], fresh["spared_cpu_ms"]) == ("fresh", None)
    assert warm["start"] == "warm" and warm["spared_cpu_ms"] > 0
    assert 0 <= warm["milliseconds"] <= 10_000 and "milliseconds" in fresh
    assert f"ranks 0-1 started warm in {warm['milliseconds']} ms, each without {warm['spared_cpu_ms']} ms" in warm["message"]
    run, = (tmp_path / "logs").iterdir()
    report = json.loads((run / "failure.json").read_text())
    assert [each["start"] for each in report["rounds"]] == ["fresh", "warm"]
    assert {each["start"] for each in report["failures"]} == {"warm"}
    assert [each["start"] for each in report["rounds"][0]["failures"]] == ["fresh"]
    text = str(job.elastic_run("--report", run))
    assert "  it was started warm (--warm-workers=off starts fresh interpreters only)" in text
