"""Warm workers: after a restart, workers forked from an interpreter that has imported their modules. A stand-in for torch
makes that cheap; what a warm worker is compared with a fresh one test_warm_scripts.py looks at, and when workers are fresh
after all test_warm_fallbacks.py."""
# ctest: gate-pytorch
# ctest: clock

import os
import re
import shutil
import signal
import sys
import sysconfig

import pytest
from harness import alive, wait_until
from warm_jobs import WORKER, Job
from warm_torch import make_python, packages_of


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python whose torch is a stand-in."""
    return make_python(tmp_path_factory.mktemp("python") / "venv", sys.executable)


@pytest.fixture
def job(elastic_run, script, python):
    return Job(elastic_run, script, python)


@pytest.mark.gate
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
    job.start(fails=1, env={"ELASTIC_RUN_PATIENCE": "1"})
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
    job.start(after="12")
    job.workers(0)
    job.wait_until_parked()
    job.ends(0)
    job.are(1, "warm")
    job.ends(1)
    job.are(2, "fresh")
    assert re.search(r"a round of warm workers failed after (\d|1[01]) s", job.ends_all().stderr)


def test_packages_that_were_changed_meanwhile_are_imported_anew(job, python):
    job.start()
    job.workers(0)
    job.wait_until_parked()
    (packages_of(python) / "another.py").touch()
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
                                          ("--numa-binding=node", "--numa-binding asks for CPUs of each worker's own"),
                                          ("--numa-affinity", "--numa-affinity asks for CPUs of each worker's own"),
                                          ("--no-python", "--no-python runs no Python")])
def test_the_plan_says_why_workers_cannot_be_warm(elastic_run, job, argument, why):
    result = elastic_run("--dry-run", "--warm-workers=on", argument, job.worker)
    assert result.returncode == 0 and why in result.stdout, result


def test_script_and_local_module_that_are_edited_between_failures_are_run_as_they_are_then(job):
    text = WORKER.replace("import torch\n", 'import torch, local\nos.write(1, f"script {} local {local.value}\\n".encode())\n')
    local = job.worker.parent / "local.py"
    for count in range(3):
        job.worker.write_text(text.replace("{}", str(count)))
        local.write_text(f"value = {10 ** count}\n")  # of another length, by which Python knows a stale .pyc
        if count == 0:
            job.start()
        else:
            job.ends(count - 1)
        job.are(count, "warm" if count else "fresh")
        job.wait_until_parked()
    result = job.ends_all()
    assert result.returncode == 0, result
    told = re.findall(r"^script (\d) local (\d+)$", result.stdout, re.MULTILINE)
    assert sorted(told) == [(str(count), str(10 ** count)) for count in range(3) for _ in range(2)]


def test_modules_of_the_user_that_a_flag_names_are_imported_before_the_restart(job):
    (job.worker.parent / "local.py").write_text("import os\npid = os.getpid()\n")
    text = 'import torch, local, os\nos.write(1, f"imported here: {local.pid == os.getpid()}\\n".encode())\n'
    job.worker.write_text(WORKER.replace("import torch\n", text))
    job.start("--warm-import=local", fails=1)
    job.are(0, "fresh")
    job.wait_until_parked()
    job.ends(0)
    job.are(1, "warm")
    result = job.ends_all()
    assert result.returncode == 0, result
    assert re.findall("^imported here: (.*)$", result.stdout, re.MULTILINE) == ["True", "True", "False", "False"]


def test_extension_modules_that_a_running_worker_has_loaded_are_imported_though_no_statement_names_them(job, python):
    """The package is named by a text only. That it is loaded is seen from outside."""
    plugged = packages_of(python) / "plugged"
    plugged.mkdir()
    (plugged / "__init__.py").touch()
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    shutil.copy(f"{sysconfig.get_config_var('DESTSHARED')}/_queue{suffix}", plugged)
    job.worker.write_text(WORKER.replace("import torch\n", """import torch
os.write(1, f"plug-in {'plugged._queue' in sys.modules}\\n".encode())
__import__("plugged" + "._queue")
"""))
    job.start(fails=1, env={"IN_SERVER": job.waits_in_server()})
    job.are(0, "fresh")
    job.goes_on_in_server()
    job.wait_until_parked()
    job.ends(0)
    job.are(1, "warm")
    result = job.ends_all()
    assert re.findall(r"^plug-in (\w+)$", result.stdout, re.MULTILINE) == ["False"] * 2 + ["True"] * 2
