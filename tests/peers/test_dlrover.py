"""DLRover's data loader, unmodified, under elastic-run."""

import json
import pathlib

from harness import wait_until
from launchers import OURS, peers
import pytest

SCRIPT = pathlib.Path(__file__).parent / "scripts/elastic_loader.py"


@pytest.mark.time_limit(600)
def test_dlrovers_loader_takes_its_batch_size_from_the_file_unmodified(launchers, tmp_path):
    launchers.python = peers() / "bin"
    go, events = tmp_path / "go", tmp_path / "events"
    run = launchers.start(OURS, "--standalone", "--max-restarts=1", "--auto-tunning", f"--events={events}", SCRIPT, go)

    def told(what):
        lines = events.read_text().splitlines() if events.exists() else []
        return [event for event in map(json.loads, lines)
                if event["event"] == "auto_tunning" and event["what"] == what]

    wait_until(lambda: told("ended"), timeout=500, what="the search to be over")
    go.write_text("")
    result = launchers.wait(OURS, run)
    assert result.returncode == 0, result
    assert [(event["value"], event["from"], event["to"]) for event in told("kept")] == \
        [("batch_size", 16, 32), ("batch_size", 32, 64)]
    # 48 is tried, too: 128 are slower than 32.
    assert result.stdout.splitlines() == ["begins with 16", "takes 32", "takes 64", "takes 128", "takes 64", "takes 48",
                                          "takes 64"], result
