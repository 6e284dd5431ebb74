"""A short run of each bench: that it runs to its end and prints what it promises. Its figures say nothing."""

import json
import pathlib
import re
import statistics
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_startup_compares_the_three_launchers(elastic_run, tmp_path):
    result = elastic_run.start("startup", "--ranks", "1,2", "--runs", "2", "--torchrun-runs", "1",
                               "--memory-runs", "1", "--json", tmp_path / "figures.json",
                               program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary),
                                    "ELASTIC_RUN_VENV": sys.prefix}).wait(timeout=110)
    assert result.returncode == 0, result
    assert "elastic-run" in result.stdout and "torchrun" in result.stdout
    assert json.loads((tmp_path / "figures.json").read_text())


def test_restart_compares_all_launchers_and_judges_the_goal(elastic_run, tmp_path):
    result = elastic_run.start("restart", "--ranks=3", "--runs=2", "--restarts=4", "--torchrun-runs=1",
                               "--torchrun-restarts=2", "--training-runs=1", "--training-ranks=2",
                               "--json", tmp_path / "figures.json",
                               program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary),
                                    "ELASTIC_RUN_VENV": sys.prefix}).wait(timeout=110)
    assert result.returncode == 0, result
    for part in ("RANK 0 OF 3 DIES", "A RANK OF 2 DIES", "GOALS", "restart: times the bare loop"):
        assert part in result.stdout
    found = json.loads((tmp_path / "figures.json").read_text())
    gaps = found["restart_ms"]
    lengths = {name: [len(of_run) for of_run in rounds.values()] for name, rounds in gaps.items()}
    assert lengths == {"elastic-run": [4, 4], "elastic-run, no logs": [4, 4], "bare loop": [4, 4],
                       "torchrun": [2], "torchrun, 1 ms": [2]}
    assert all(0 < gap < 30_000 for rounds in gaps.values() for of_run in rounds.values() for gap in of_run)
    # The goal: the ratio of the medians, round by round, and of these the median.
    ratios = [statistics.median(gaps["elastic-run"][number]) / statistics.median(gaps["bare loop"][number])
              for number in gaps["bare loop"]]
    goal, = found["goals"]
    assert goal["median"] == pytest.approx(statistics.median(ratios))
    assert goal["reached"] == (goal["median"] <= 1.3)
    assert ("MISSED" in result.stdout) == (not goal["reached"])
    assert all(took > 0 for rounds in found["failure_to_step_ms"].values() for took in rounds.values())


def test_guardian_prints_time_and_memory_and_judges_both(elastic_run, tmp_path):
    result = elastic_run.start("guardian", "--pairs", "10", "--json", tmp_path / "figures.json",
                               program=[ROOT / "scripts/bench"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=60)
    assert result.returncode == 0, result
    found = json.loads((tmp_path / "figures.json").read_text())
    assert len(found["plain_ns"]) == len(found["split_ns"]) == 10 and found["private_kib"] > 0
    assert len(re.findall(r" (reached|MISSED)$", result.stdout, re.MULTILINE)) == 2
