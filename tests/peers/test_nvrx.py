"""The client of NVIDIA's resiliency extension, unmodified, under elastic-run."""

import pathlib

from harness import wait_until
from http_client import http_port, status
from launchers import OURS, peers
import pytest

SCRIPT = pathlib.Path(__file__).parent / "scripts/nvrx_client.py"


@pytest.mark.time_limit(300)
def test_nvrxs_client_finds_its_monitor(launchers, tmp_path):
    launchers.python = peers() / "bin"
    go = tmp_path / "go"
    run = launchers.start(OURS, "--standalone", "--nproc-per-node=2", "--http-port=0", "--log-level=info",
                          "--progress-from=nvrx", SCRIPT, go)
    port = http_port(run)

    def workers():
        return [worker["progress"] or {} for worker in status(port)["node"]["workers"]]

    wait_until(lambda: all((each.get("source"), each.get("phase")) == ("nvrx", "train") for each in workers()),
               timeout=200, what=f"both ranks to be seen in a step; the last were {workers()}")
    run.wait_for_line("trains", stream="stdout")
    go.write_text("")
    result = launchers.wait(OURS, run)
    assert result.returncode == 0, result
    assert result.stdout.count("refused: ") == 2, result
    assert "asks by NVRx to leave out its node (bad GPU), which is not done" in result.stderr, result
