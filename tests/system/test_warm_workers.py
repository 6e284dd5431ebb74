"""Warm workers: after a restart, workers forked from an interpreter that has imported their modules. A stand-in for torch
makes that cheap; what a warm worker is compared with a fresh one test_warm_scripts.py looks at."""

import os
import re
import signal
import subprocess
import sys

import pytest
from harness import alive, wait_until

# All that the rehearsal of a first step asks of torch.
TORCH = """
class Anything:
    def __getattr__(self, name):
        return Anything()
    def __call__(self, *_, **__):
        return Anything()
nn = optim = Anything()
class cuda:
    _is_in_bad_fork = staticmethod(lambda: False)
default_generator = Anything()
def __getattr__(name):
    return Anything()
"""
ANY = "def __getattr__(name):\n    return lambda *_, **__: None\n"

# Tells what it is. Rank 0 of each round of `FAILS` fails when it is told to, and the others wait for their end.
WORKER = """
import gc, os, sys, time
import torch
rank, count = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
start = "warm" if gc.get_freeze_count() else "fresh"
os.write(1, f"{start} {count} {rank} {os.getpid()}\\n".encode())
while not os.path.exists(f"{sys.argv[1]}.{count}"):
    time.sleep(0.005)
if rank == 0 and count < int(sys.argv[2]):
    os._exit(3)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python whose torch is a stand-in."""
    place = tmp_path_factory.mktemp("python") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    packages, = place.glob("lib/python*/site-packages")
    for name, text in {"torch/__init__.py": TORCH, "torch/distributed.py": ANY, "torch/utils/__init__.py": "",
                       "torch/utils/data.py": ""}.items():
        (packages / name).parent.mkdir(exist_ok=True)
        (packages / name).write_text(text)
    return place / "bin" / "python"


class Job:
    def __init__(self, elastic_run, script, python):
        self.go = elastic_run.directory / "go"
        self.worker = script("worker.py", WORKER)
        self.elastic_run = elastic_run
        self.python = python

    def start(self, *arguments, nproc=2, restarts=3, fails=2, warm="on", after="0", worker=None, **options):
        self.nproc = nproc
        env = {"OMP_NUM_THREADS": "1", "PYTHON_EXEC": str(self.python), **options.pop("env", {})}
        self.run = self.elastic_run.start(
            f"--nproc-per-node={nproc}", f"--max-restarts={restarts}", f"--warm-workers={warm}", f"--warm-after={after}",
            "--log-level=info", *arguments, worker or self.worker, self.go, str(fails), env=env, **options)
        return self.run

    def workers(self, count):
        """How the workers of that round were started, and their pids by rank."""
        found = {}
        starts = set()
        for _ in range(self.nproc):
            match = self.run.wait_for_line(rf"^(warm|fresh) {count} (\d) (\d+)$", stream="stdout")
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
        self.run.wait_for_line("warm workers? waits? for the next round")

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


@pytest.fixture
def job(elastic_run, script, python):
    return Job(elastic_run, script, python)


def test_each_restart_takes_the_workers_that_wait_and_others_wait_then(job):
    job.start(nproc=4)
    seen = set()
    for count in range(3):
        pids = job.are(count, "fresh" if count == 0 else "warm")
        assert sorted(pids) == [0, 1, 2, 3] and not seen & set(pids.values())
        seen |= set(pids.values())
        job.wait_until_parked()
        _, waiting = job.server()
        assert len(waiting) == 4
        job.ends(count)
    result = job.run.wait()
    assert result.returncode == 0, result
    assert "warning: workers start" not in result.stderr
    assert "2 of 3 restarts were used" in result.stderr


def test_a_warm_worker_is_a_child_of_the_launcher_and_leads_its_session(job):
    job.start(fails=1)
    job.workers(0)
    job.wait_until_parked()
    job.ends(0)
    pids = job.are(1, "warm")
    found = {each.pid: each for each in job.run.processes()}
    for pid in pids.values():
        worker = found[pid]
        assert (worker.parent, worker.group, worker.session) == (job.run.launcher(), pid, pid)
        assert worker.command == f"{job.python} -u {job.worker} {job.go} 1"
    assert job.ends_all().returncode == 0


def test_a_signal_ends_a_round_of_warm_workers_and_their_server(job):
    job.start()
    job.workers(0)
    job.wait_until_parked()
    job.ends(0)
    job.workers(1)
    job.wait_until_parked()
    job.run.send_signal(signal.SIGTERM)
    assert job.run.wait().returncode != 0


@pytest.mark.parametrize("who", ["launcher", "guardian"])
def test_nothing_is_left_when_one_of_elastic_runs_processes_is_killed(job, who):
    job.start()
    job.workers(0)
    job.wait_until_parked()
    server, waiting = job.server()
    os.kill(job.run.launcher() if who == "launcher" else job.run.pid, signal.SIGKILL)
    job.run.wait()
    for each in [server, *waiting]:
        wait_until(lambda pid=each.pid: not alive(pid), what="its end")


@pytest.mark.parametrize("who,why", [("server", "the import server was killed by SIGKILL|the import server has ended"),
                                     ("waiting", "has ended, or cannot be told its rank"),
                                     ("stopped", "did not take its rank in time")])
def test_fresh_workers_start_where_what_should_be_warm_is_dead_or_hangs(job, who, why):
    job.start(fails=1)
    job.workers(0)
    job.wait_until_parked()
    server, waiting = job.server()
    victim = server if who == "server" else waiting[0]
    os.kill(victim.pid, signal.SIGSTOP if who == "stopped" else signal.SIGKILL)
    if who != "stopped":
        wait_until(lambda: not alive(victim.pid), what="its end")
    job.ends(0)
    assert sorted(job.are(1, "fresh")) == [0, 1]
    result = job.ends_all()
    assert result.returncode == 0, result
    assert re.search(why, result.stderr)


def test_a_server_that_was_killed_is_started_again(job):
    job.start()
    job.workers(0)
    job.wait_until_parked()
    server, _ = job.server()
    os.kill(server.pid, signal.SIGKILL)
    job.wait_until_parked()
    job.ends(0)
    job.are(1, "warm")
    assert job.ends_all().returncode == 0


def test_a_round_of_warm_workers_that_fails_soon_makes_the_job_cold(job):
    job.start(after="5")
    job.workers(0)
    job.wait_until_parked()
    job.ends(0)
    job.are(1, "warm")
    job.ends(1)
    job.are(2, "fresh")
    assert "a round of warm workers failed after 0 s" in job.ends_all().stderr


def test_packages_that_were_changed_meanwhile_are_imported_anew(job, python):
    job.start()
    job.workers(0)
    job.wait_until_parked()
    packages, = python.parent.parent.glob("lib/python*/site-packages")
    (packages / "another.py").touch()
    job.ends(0)
    job.are(1, "fresh")
    job.wait_until_parked()
    job.ends(1)
    job.are(2, "warm")
    assert "packages have been installed or removed" in job.ends_all().stderr


def test_without_torch_workers_are_fresh_and_only_on_says_so(job):
    job.python = f"{sys.base_prefix}/bin/python3"
    job.worker.write_text(WORKER.replace("import torch", ""))
    for warm in ("on", "auto"):
        job.start(warm=warm, fails=1)
        job.are(0, "fresh")
        if warm == "on":
            job.run.wait_for_line("warning: workers start as fresh interpreters: there is no PyTorch")
        job.ends(0)
        job.are(1, "fresh")
        result = job.ends_all()
        assert ("fresh interpreters" in result.stderr) == (warm == "on")
        for count in range(10):
            (job.go.parent / f"go.{count}").unlink()


@pytest.mark.parametrize("argument,why", [("--wrap=0:env", "--wrap starts other programs"),
                                          ("--run-path", "--run-path starts the script in another way"),
                                          ("--no-python", "--no-python runs no Python")])
def test_the_plan_says_why_workers_cannot_be_warm(elastic_run, job, argument, why):
    result = elastic_run("--dry-run", "--warm-workers=on", argument, job.worker)
    assert result.returncode == 0 and why in result.stdout, result
