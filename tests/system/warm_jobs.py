"""Jobs of warm workers whose torch is a stand-in (tests/warm_torch.py)."""

from harness import PATIENT

# Tells what it is. Rank 0 of each round of `FAILS` fails when it is told to, and the others wait for their end.
WORKER = """
import os, sys, time
import torch
rank, count = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
frame, files = sys._getframe(), set()
while frame:
    files.add(frame.f_code.co_filename)
    frame = frame.f_back
start = "warm" if "<elastic-run>" in files else "fresh"
os.write(1, f"{start} {count} {rank} {os.getpid()}\\n".encode())
while not os.path.exists(f"{sys.argv[1]}.{count}"):
    time.sleep(0.005)
if rank == 0 and count < int(sys.argv[2]):
    os._exit(3)
"""


class Job:
    patience = 60  # seconds for workers to come, and for others to wait

    def __init__(self, elastic_run, script, python):
        self.go = elastic_run.directory / "go"
        self.worker = script("worker.py", WORKER)
        self.elastic_run = elastic_run
        self.python = python

    def start(self, *arguments, nproc=2, restarts=3, fails=2, warm="on", after="0", worker=None, log="info",
              **options):
        self.nproc = nproc
        env = {"OMP_NUM_THREADS": "1", "PYTHON_EXEC": str(self.python), **PATIENT, **options.pop("env", {})}
        self.run = self.elastic_run.start(
            f"--nproc-per-node={nproc}", f"--max-restarts={restarts}", f"--warm-workers={warm}", f"--warm-after={after}",
            f"--log-level={log}", *arguments, worker or self.worker, self.go, str(fails), env=env, **options)
        return self.run

    def workers(self, count):
        """How the workers of that round were started, and their pids by rank."""
        found = {}
        starts = set()
        for _ in range(self.nproc):
            match = self.run.wait_for_line(rf"^(warm|fresh) {count} (\d) (\d+)$", stream="stdout", timeout=self.patience)
            starts.add(match.group(1))
            assert int(match.group(2)) not in found
            found[int(match.group(2))] = int(match.group(3))
        assert len(starts) == 1, starts  # a node's workers are started one way
        return starts.pop(), found

    def are(self, count, how):
        """The workers of that round were started that way; their pids by rank."""
        start, found = self.workers(count)
        assert start == how, self.run.so_far()
        return found

    def wait_until_parked(self):
        self.run.wait_for_line("warm workers? waits? for the next round", timeout=self.patience)

    def waits_in_server(self):
        """For IN_SERVER: the import server hangs until goes_on_in_server()."""
        return f"import time\nwhile not os.path.exists({str(self.go) + '.server'!r}): time.sleep(0.005)"

    def goes_on_in_server(self):
        (self.go.parent / "go.server").touch()

    def ends(self, count):
        (self.go.parent / f"go.{count}").touch()

    def ends_all(self):
        for count in range(10):
            self.ends(count)
        return self.run.wait()

    def server(self):
        """The import server and the workers that wait."""
        launcher = self.run.launcher()
        found = [each for each in self.run.processes() if "_elastic_run_warm" in each.command]
        server, = [each for each in found if each.session == each.pid]
        waiting = [each for each in found if each.session == server.pid and each.pid != server.pid and each.parent == launcher]
        return server, waiting
