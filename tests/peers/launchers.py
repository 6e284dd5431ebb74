"""What is run under elastic-run and, beside it, under torchrun.

ELASTIC_RUN_PEERS=all (scripts/soak peers) runs everything under both; otherwise torchrun runs only what CI has time for.
ELASTIC_RUN_PEERS_TABLE names a file to which each run adds a line of JSON."""

import dataclasses
import json
import os
import pathlib
import sys

import harness
import pytest

EVERYTHING = os.environ.get("ELASTIC_RUN_PEERS") == "all"
PEERS = pathlib.Path(sys.prefix + "-peers")  # as scripts/lib.sh has it
OURS, TORCHRUN = "elastic-run", "torchrun"
# torchrun now and then never ends after a rank was killed: its second attempt waits for somebody for ever.
PATIENCE_S = {OURS: 200, TORCHRUN: 120}


def peers():
    if not (PEERS / "bin/python").exists() or (PEERS / ".elastic-run-unfinished").exists():
        pytest.fail(f"the frameworks' environment {PEERS} is not there, or not whole: scripts/test makes it")
    return PEERS


@dataclasses.dataclass
class Launchers:
    """elastic-run and torchrun, called alike. `python` is the directory of the Python that workers get."""

    programs: harness.Programs
    case: str
    python: pathlib.Path = pathlib.Path(sys.prefix) / "bin"

    def start(self, launcher, *arguments, env=None, **options):
        environment = {"PATH": f"{self.python}:/usr/bin:/bin", "OMP_NUM_THREADS": "1",
                       "PYTHONDONTWRITEBYTECODE": "1"} | (env or {})
        program = {OURS: [self.programs.binary],
                   TORCHRUN: [self.python / "python3", "-m", "torch.distributed.run"]}[launcher]
        return self.programs.start(*arguments, program=program, env=environment, **options)

    def run(self, launcher, *arguments, **options):
        """A Result; None if it did not end in its time, and torchrun is allowed not to."""
        return self.wait(launcher, self.start(launcher, *arguments, **options))

    def wait(self, launcher, running):
        try:
            result = running.wait(PATIENCE_S[launcher])
        except harness.HarnessError:
            if launcher == OURS:
                raise
            self.tell(launcher, f"does not end in {PATIENCE_S[launcher]} s", PATIENCE_S[launcher])
            return None
        self.tell(launcher, f"exit {result.returncode}", result.duration)
        return result

    def tell(self, launcher, outcome, seconds):
        if table := os.environ.get("ELASTIC_RUN_PEERS_TABLE"):
            line = {"case": self.case, "launcher": launcher, "outcome": outcome, "seconds": round(seconds, 1)}
            with open(table, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
