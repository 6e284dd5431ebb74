"""Short runs of the soaks, with their verdicts: what would grow by 1 KiB with each restart is seen."""
# ctest: long
# ctest: release-only
# ctest: timeout=2400
# ctest: clock
# ctest: computes

import json
import os
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 280  # for what takes up to 80 s where nothing else runs

pytestmark = pytest.mark.time_limit(600)


def test_nothing_that_many_ranks_write_is_lost_or_mixed(elastic_run, tmp_path):
    """Each kind of output once: files, tee, filters, rotation, consoles."""
    result = elastic_run.start("output", "--seconds=1", "--ranks=16", "--bytes=600000", "--spread=0",
                               "--json", tmp_path / "found",
                               program=[ROOT / "scripts/soak"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=PATIENCE_S)
    assert result.returncode == 0, result
    assert result.stdout.endswith("verdict: nothing lost, nothing mixed\n")
    found = json.loads((tmp_path / "found").read_text())
    assert found["wrong"] is None and len(found["variants"]) == 7
    for name, variant in found["variants"].items():
        # What a rotated file keeps, or all of it.
        assert variant["bytes"] > 16 * 2 * (100_000 if "rotated" in name else 600_000), name


def test_memory_and_descriptors_stay_flat_over_restarts(elastic_run, tmp_path):
    result = elastic_run.start("restarts", "--restarts=300", "--samples=20", "--json", tmp_path / "samples.json",
                               program=[ROOT / "scripts/soak"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=PATIENCE_S)
    assert result.returncode == 0, result
    assert result.stdout.count("verdict: flat\n") == 2
    found = json.loads((tmp_path / "samples.json").read_text())
    assert found["flat"] and set(found["runs"]) == {"default", "none"}
    for run in found["runs"].values():
        assert len(run["restart_ms"]) == 300
        for samples in run["samples"].values():
            assert [sample["attempt"] for sample in samples] == list(range(0, 300, 15))
            assert all(sample["anonymous"] > 0 and sample["descriptors"] > 0 for sample in samples)


def test_restarts_by_warm_workers_stay_flat_and_kills_at_random_moments_leave_nothing(elastic_run, tmp_path):
    result = elastic_run.start("warm", "--restarts=60", "--samples=20", "--kills=15", "--json", tmp_path / "found",
                               program=[ROOT / "scripts/soak"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=PATIENCE_S)
    assert result.returncode == 0, result
    assert result.stdout.endswith("verdict: nothing grown, nothing left, no rank twice\n")
    found = json.loads((tmp_path / "found").read_text())
    assert found["wrong"] is None and sum(found["counted"]["kills"].values()) == 15
    assert [len(samples) for samples in found["samples"].values()] == [19] * 3


def soak_churn(elastic_run, tmp_path, run, seconds):
    """What this run of it has counted."""
    # The soak's own grace is for machines that do nothing else.
    result = elastic_run.start("churn", f"--only={run}", f"--seconds={seconds}", "--grace=5000", "--json",
                               tmp_path / "found", program=[ROOT / "scripts/soak"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=PATIENCE_S)
    assert result.returncode == 0, result
    assert result.stdout.endswith("verdict: the living went on, no rank was there twice\n")
    return json.loads((tmp_path / "found").read_text())["runs"][run]


@pytest.mark.timing  # kind A: all train again 5 s after the lease
def test_a_node_that_is_lost_three_times_is_kept_out_and_the_living_go_on(elastic_run, tmp_path):
    flap = soak_churn(elastic_run, tmp_path, "default budgets", 35)
    assert flap["kills"] == 3 and len(flap["again_ms"]) == 3 and flap["kept_out_ms"] > 8000


@pytest.mark.timing  # kind A: all train again 19 s after a loss
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")
def test_nodes_come_and_go_for_a_minute_and_the_coordinators_is_hit_as_often_as_any(elastic_run, tmp_path):
    found = soak_churn(elastic_run, tmp_path, "on the nodes", 40)
    assert found["kills"] >= 5 and found["coordinators"] >= 1 and found["again_ms"]
    assert found["workers"] >= 3 * found["rounds"] > 0


@pytest.mark.timing  # kind A: 12 processes compute beside the nodes
def test_a_busy_machine_is_no_lost_node(elastic_run, tmp_path):
    result = elastic_run.start("load", "--seconds=6", "--hogs=12", "--json", tmp_path / "found",
                               program=[ROOT / "scripts/soak"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=PATIENCE_S)
    assert result.returncode == 0, result
    assert json.loads((tmp_path / "found").read_text())["wrong"] is None


def test_what_others_make_is_run_under_torchrun_too_and_told_in_a_table(elastic_run):
    result = elastic_run.start("peers", "--", "-k", "nproc_launch_unknown", program=[ROOT / "scripts/soak"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary), "ELASTIC_RUN_VENV": sys.prefix}
                               ).wait(timeout=PATIENCE_S)
    assert result.returncode == 0, result
    assert re.search(r"^nproc_launch_unknown_configurations +exit 2 \(.* s\) +exit 1 \(.* s\) *$", result.stdout, re.MULTILINE)
    assert result.stdout.endswith("verdict: all as expected\n")


def test_a_slow_training_with_evaluations_and_checkpoints_is_no_hang(elastic_run, tmp_path):
    result = elastic_run.start("hang", "--only=slow", "--minutes=1", "--load=4", "--log-every=5", "--evaluate-every=10",
                               "--checkpoint-every=20", "--checkpoint-seconds=2", "--json", tmp_path / "found",
                               program=[ROOT / "scripts/soak"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary), "ELASTIC_RUN_VENV": sys.prefix}
                               ).wait(timeout=PATIENCE_S)
    assert result.returncode == 0, result
    assert result.stdout.endswith("verdict: steps were seen, and nothing was told as a hang\n")
    found = json.loads((tmp_path / "found").read_text())["slow_training"]
    assert found["wrong"] is None and found["step_lines"] > 0 and found["hang_events"].get("told", 0) == 0
    assert all(found["seconds"].values()) and min(found["seconds"]["checkpoint"]) >= 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces")
def test_random_hangs_end_with_the_right_verdict_or_none_and_training_goes_on(elastic_run, tmp_path):
    result = elastic_run.start("hang", "--only=random", "--hangs=6", "--seed=5", "--json", tmp_path / "found",
                               program=[ROOT / "scripts/soak"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary), "ELASTIC_RUN_VENV": sys.prefix}
                               ).wait(timeout=560)
    assert result.returncode == 0, result
    assert result.stdout.endswith("verdict: nobody was told wrongly, training went on each time, nothing is left\n")
    found = json.loads((tmp_path / "found").read_text())["random_hangs"]
    assert found["wrong"] is None and found["left"] == [] and found["seed"] == 5
    assert len({hang["kind"] for hang in found["hangs"]}) == 6
    # A machine that is busy may cost a verdict now and then.
    assert sum(hang["said"] == "right" for hang in found["hangs"]) >= 4, found["hangs"]
