"""A short run of each bench: that it runs to its end and prints what it promises. Its figures say nothing."""

import json
import pathlib
import sys

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
