"""Frameworks on top of PyTorch, as their users start them: their results are the same under elastic-run and torchrun,
and the same whether or not a rank was killed on the way."""

import pathlib
import re

from launchers import EVERYTHING, OURS, TORCHRUN, peers
import pytest

SCRIPTS = pathlib.Path(__file__).parent / "scripts"
FRAMEWORKS = {"accelerate": "accelerate_loop.py", "lightning": "lightning_fit.py", "transformers": "hf_trainer.py",
              "deepspeed": "deepspeed_engine.py"}
# Otherwise it looks for accelerators with the tools of their makers.
VARIABLES = {"deepspeed": {"DS_ACCELERATOR": "cpu"}}


def train(launchers, launcher, framework, kills):
    """The line with the result; None if torchrun did not end, or failed."""
    variables = VARIABLES.get(framework, {}) | ({"ELASTIC_RUN_PEERS_KILL": "yes"} if kills else {})
    launchers.case = f"{framework}, {'a rank is killed' if kills else 'plain'}"
    result = launchers.run(launcher, "--standalone", "--nproc-per-node=2", "--max-restarts=1",
                           SCRIPTS / FRAMEWORKS[framework], env=variables)
    if launcher == TORCHRUN and (result is None or result.returncode != 0):
        return None
    assert result.returncode == 0, result
    if launcher == OURS:
        assert ("was killed by SIGKILL; restarting all workers (restart 1 of 1)" in result.stderr) == kills, result
    found = re.findall(r"^result: (.*)$", result.stdout, re.MULTILINE)
    assert len(found) == 1 and found[0].startswith(f"{framework} steps=6 world=2 "), result
    return found[0]


@pytest.mark.time_limit(900)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_trains_to_the_same_weights_as_under_torchrun_also_when_a_rank_is_killed(launchers, framework):
    launchers.python = peers() / "bin"
    plain = train(launchers, OURS, framework, kills=False)
    assert train(launchers, OURS, framework, kills=True) == plain
    if EVERYTHING or framework == "accelerate":
        assert train(launchers, TORCHRUN, framework, kills=False) == plain
        # What torchrun makes of a killed rank is told in the table, and no matter of ours.
        assert train(launchers, TORCHRUN, framework, kills=True) in (plain, None)
