"""What the scripts of all frameworks share: when a rank dies, what is told in the end, and how a script leaves."""

import os
import signal
import sys

STEPS = 6
DIES_AFTER = 3  # steps, in the first attempt, if ELASTIC_RUN_PEERS_KILL is set
RANK_THAT_DIES = 1


def after_step(step):
    """To be called by every rank after each optimiser step, from 1 on. One rank of the first attempt kills itself; the
    others then wait for it in the next step's collective."""
    if (os.environ.get("ELASTIC_RUN_PEERS_KILL") and step == DIES_AFTER and
            os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and int(os.environ["RANK"]) == RANK_THAT_DIES):
        os.kill(os.getpid(), signal.SIGKILL)


def tell(framework, steps, world_size, parameters):
    """Rank 0 prints the result: it depends on every step of every rank, and on nothing else."""
    if int(os.environ["RANK"]) == 0:
        total = sum(float(parameter.detach().double().abs().sum()) for parameter in parameters)
        print(f"result: {framework} steps={steps} world={world_size} weights={total:.6f}", flush=True)


def leave():
    """The end of PyTorch's own threads aborts a process now and then, which is not what is tested."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
