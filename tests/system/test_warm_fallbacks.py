"""Warm workers that cannot be: each reason is provoked, fresh interpreters start, all ranks of them once, and only
--warm-workers=on says why. A stand-in for torch (tests/warm_torch.py) does in the import server what no fork survives."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest
from harness import alive, wait_until
from warm_jobs import WORKER, Job
from warm_torch import make_python

# What the import server must not have done: the statement that does it, and why workers are fresh then.
DOES = {
    "starts a thread": ("import threading, time\nthreading.Thread(target=time.sleep, args=[1000], daemon=True).start()",
                        "torch starts threads at import"),
    "leaves a file open": ("kept = open('/dev/null')", "torch leaves /dev/null open at import"),
    "starts a process": ("import subprocess\nchild = subprocess.Popen(['sleep', '1000'])", "a module has started a process"),
    "reads a rank": ("os.environ.get('RANK')", "torch reads RANK at import"),
    "initialises CUDA": ("cuda._is_in_bad_fork = staticmethod(lambda: True)", "a module has initialised CUDA"),
    "fails in the rehearsal": ("nn = None", "the rehearsal of a first step failed"),
    "fails at import": ("raise ImportError", "there is no PyTorch"),
    "raises SystemExit": ("sys.exit(0)", "there is no PyTorch"),
    "exits": ("os._exit(4)", "the import server exited with code 4"),
    "dies": ("os.kill(os.getpid(), 11)", "the import server was killed by SIGSEGV"),
}


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return make_python(tmp_path_factory.mktemp("python") / "venv", sys.executable)


@pytest.fixture
def job(elastic_run, script, python):
    return Job(elastic_run, script, python)


both = pytest.mark.parametrize("warm", ["on", "auto"])
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes mounts in a namespace of its own")


def stays_fresh(job, warm, why, *arguments, times=1, **how):
    """The job's workers are fresh before and after a failure, and one warning, or none, says why."""
    job.start(*arguments, warm=warm, fails=1, log="debug", **how)
    assert sorted(job.are(0, "fresh")) == [0, 1]
    for _ in range(times):
        job.run.wait_for_line("workers start as fresh interpreters: " + why, timeout=60)
    job.ends(0)
    assert sorted(job.are(1, "fresh")) == [0, 1]
    result = job.ends_all()
    assert result.returncode == 0, result
    assert result.stderr.count("warning: workers start as fresh") == (1 if warm == "on" else 0), result
    assert "1 of 3 restarts were used" in result.stderr, result


@both
@pytest.mark.parametrize("what", DOES)
def test_workers_are_fresh_where_an_import(job, what, warm):
    statement, why = DOES[what]
    # A server that is killed is started again.
    stays_fresh(job, warm, why, env={"IN_SERVER": statement}, times=5 if what == "dies" else 1)


@both
def test_workers_are_fresh_without_ctypes(job, tmp_path, warm):
    (tmp_path / "path").mkdir()
    (tmp_path / "path/ctypes.py").write_text("raise ImportError('No module named _ctypes')\n")
    stays_fresh(job, warm, "this Python has no ctypes that can run a script: No module named _ctypes",
                env={"PYTHONPATH": str(tmp_path / "path")})


@both
@pytest.mark.parametrize("kind", ["directory", "archive"])
def test_workers_are_fresh_where_the_script_is_no_file_of_python(job, tmp_path, kind, warm):
    place = tmp_path / "program"
    if kind == "directory":
        place.mkdir()
        (place / "__main__.py").write_text(WORKER)
    else:
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("__main__.py", WORKER)
    stays_fresh(job, warm, "the script is a directory or an archive", worker=place)


@both
def test_workers_are_fresh_where_the_script_sets_what_imports_read(job, warm):
    job.worker.write_text("import os\nos.environ['OMP_NUM_THREADS'] = '3'\n" + WORKER)
    stays_fresh(job, warm, "the script sets OMP_NUM_THREADS, which modules read when they are imported")


def in_namespace(job, mounts):
    """The command line of elastic-run in a mount namespace of its own, after these shell commands."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", mounts + '\nexec "$0" "$@"', job.elastic_run.binary]


@as_root
@both
@pytest.mark.parametrize("where", ["host", "cgroup", "cgroup of version 1"])
def test_workers_are_fresh_where_little_memory_is_left(job, tmp_path, where, warm):
    if where == "host":
        (tmp_path / "meminfo").write_text("MemTotal: 64000 kB\nMemAvailable: 1000 kB\n")
        mounts = "mount --bind meminfo /proc/meminfo"
    else:
        files = {"memory.max": "1000000", "memory.current": "900000"}
        if "1" in where:
            files = {"memory/memory.limit_in_bytes": "1000000", "memory/memory.usage_in_bytes": "900000"}
        for name, text in files.items():
            (tmp_path / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "cgroup" / name).write_text(text + "\n")
        mounts = "mount --bind cgroup /sys/fs/cgroup"
        if (":memory:" if "1" in where else "0::") not in pathlib.Path("/proc/self/cgroup").read_text():
            pytest.skip(f"the processes of this machine are in no {where}")
    stays_fresh(job, warm, "too little memory is left", program=in_namespace(job, mounts), env={"ELASTIC_RUN_CGROUP": "off"})


@as_root
@both
def test_workers_are_fresh_where_a_device_is_open_in_the_server(job, warm):
    mounts = """
        mkdir devices; mount -t tmpfs none devices; touch devices/nvidiactl
        for name in null zero urandom; do touch devices/$name; mount --bind /dev/$name devices/$name; done
        mount --rbind devices /dev"""
    stays_fresh(job, warm, "torch leaves /dev/nvidiactl open at import", program=in_namespace(job, mounts),
                env={"IN_SERVER": "kept = open('/dev/nvidiactl')"})


def importing_server(job):
    return wait_until(lambda: next((each for each in job.run.processes()
                                    if "_elastic_run_warm" in each.command and each.session == each.pid), None),
                      what="an import server")


def test_workers_are_fresh_while_the_server_hangs_at_import(job):
    job.start(fails=1, env={"IN_SERVER": job.waits_in_server()})
    job.are(0, "fresh")
    importing_server(job)
    job.ends(0)
    job.are(1, "fresh")
    result = job.ends_all()
    assert result.returncode == 0 and "fresh interpreters: the import server is not ready" in result.stderr, result


def test_a_server_that_is_killed_while_it_imports_is_started_again(job):
    job.start(fails=1, env={"IN_SERVER": job.waits_in_server()})
    job.are(0, "fresh")
    server = importing_server(job)
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: not alive(server.pid), what="its end")
    job.goes_on_in_server()
    job.wait_until_parked()
    job.ends(0)
    assert sorted(job.are(1, "warm")) == [0, 1]
    assert job.ends_all().returncode == 0


def test_a_server_that_dies_during_the_order_leaves_all_ranks_to_start_once(job):
    """One that waits is stopped, so that the order lasts until it is given up."""
    job.start(fails=1)
    job.are(0, "fresh")
    job.wait_until_parked()
    server, waiting = job.server()
    os.kill(waiting[0].pid, signal.SIGSTOP)
    job.ends(0)
    others = {each.pid for each in waiting[1:]}
    # On a busy machine the order may be over before that is seen: then the server dies right after it.
    wait_until(lambda: any(each.session == each.pid for each in job.run.processes() if each.pid in others) or
               "did not take its rank in time" in job.run.stderr.text, what="one that has taken its order")
    with contextlib.suppress(ProcessLookupError):
        os.kill(server.pid, signal.SIGKILL)
    assert sorted(job.are(1, "fresh")) == [0, 1]
    result = job.ends_all()
    assert result.returncode == 0 and "1 of 3 restarts were used" in result.stderr, result


def test_a_server_that_dies_after_the_order_is_missed_by_nobody(job):
    job.start()
    job.are(0, "fresh")
    job.wait_until_parked()
    job.ends(0)
    pids = job.are(1, "warm")
    job.wait_until_parked()
    server, _ = job.server()
    os.kill(server.pid, signal.SIGKILL)
    job.wait_until_parked()
    assert all(alive(pid) for pid in pids.values())
    job.ends(1)
    job.are(2, "warm")
    result = job.ends_all()
    assert result.returncode == 0 and "2 of 3 restarts were used" in result.stderr, result


# The first process that the server forks for a worker that is to wait ends before it forks that.
FORKS_TOO_FEW = """
fork = os.fork
def forks_too_few():
    pid = fork()
    if pid == 0 and sys._getframe(1).f_code.co_name == "park":
        try:
            os.close(os.open({!r}, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return 0
        os._exit(0)
    return pid
os.fork = forks_too_few
"""


def test_a_server_that_forks_too_few_workers_is_asked_again(job, tmp_path):
    job.start(env={"IN_SERVER": FORKS_TOO_FEW.format(str(tmp_path / "was_lost"))})
    job.are(0, "fresh")
    importing_server(job)
    wait_until(lambda: len(job.server()[1]) == 1, what="one that waits")
    job.ends(0)
    job.are(1, "fresh")
    job.wait_until_parked()
    job.ends(1)
    assert sorted(job.are(2, "warm")) == [0, 1]
    result = job.ends_all()
    assert result.returncode == 0, result
    assert re.search("fresh interpreters: [01] of 2 workers wait", result.stderr), result


def python_of(version):
    """Its file, which pyenv may have; None if there is none."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"
    for found in [shutil.which(f"python{version}"), *sorted(versions.glob(f"{version}.*/bin/python"))]:
        # pyenv has programs on PATH that run nothing.
        if found and subprocess.run([found, "-c", "import venv, ctypes"], capture_output=True, check=False).returncode == 0:
            return found
    return None


@pytest.mark.parametrize("version", [f"3.{minor}" for minor in range(8, 15)])
def test_workers_of_other_pythons_are_warm(elastic_run, script, tmp_path, version):
    found = python_of(version)
    if found is None:
        pytest.skip(f"there is no Python {version}")
    job = Job(elastic_run, script, make_python(tmp_path / "venv", found))
    job.start(fails=1)
    job.are(0, "fresh")
    job.wait_until_parked()
    job.ends(0)
    job.are(1, "warm")
    assert job.ends_all().returncode == 0
