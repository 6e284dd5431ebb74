"""Short runs of the soaks, with their verdicts: what would grow by 1 KiB with each restart is seen."""
# ctest: release-only

import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_nothing_that_many_ranks_write_is_lost_or_mixed(elastic_run, tmp_path):
    """Each kind of output once: files, tee, filters, rotation, consoles."""
    result = elastic_run.start("output", "--seconds=1", "--ranks=16", "--bytes=600000", "--spread=0", "--json", tmp_path / "found",
                               program=[ROOT / "scripts/soak"],
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=110)
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
                               env={"ELASTIC_RUN_BINARY": str(elastic_run.binary)}).wait(timeout=110)
    assert result.returncode == 0, result
    assert result.stdout.count("verdict: flat\n") == 2
    found = json.loads((tmp_path / "samples.json").read_text())
    assert found["flat"] and set(found["runs"]) == {"default", "none"}
    for run in found["runs"].values():
        assert len(run["restart_ms"]) == 300
        for samples in run["samples"].values():
            assert [sample["attempt"] for sample in samples] == list(range(0, 300, 15))
            assert all(sample["private"] > 0 and sample["descriptors"] > 0 for sample in samples)
