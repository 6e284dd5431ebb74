"""elastic-run needs the kernel and nothing else: root directories that hold only it, only busybox, only musl, and the
system calls of an old kernel."""
# ctest: release-only

import os
import pathlib
import re
import shutil
import signal
import subprocess

import harness
import pytest
import roots

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root enters another root directory")

NOWHERE = {"TMPDIR": None, "HOME": None, "OMP_NUM_THREADS": "1"}
BUSYBOX = pathlib.Path("/bin/busybox")

# Fails once, is restarted, then says its rank; with "fails" it fails every time, with "waits" it waits for a signal.
SHELL_WORKER = """\
#!/bin/sh
case $1 in
  fails) echo "no luck for rank $RANK" >&2; [ "$RANK" = 1 ] && exit 7; exec sleep 1000000 ;;
  waits) trap 'echo told; exit 0' TERM; echo up; while :; do sleep 1000000 & wait; done ;;
esac
[ "$RANK.$TORCHELASTIC_RESTART_COUNT" != 1.0 ] || exit 3
[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exec sleep 1000000
echo "rank $RANK of $WORLD_SIZE"
"""
C_WORKER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  int rank = atoi(getenv("RANK")), count = atoi(getenv("TORCHELASTIC_RESTART_COUNT"));
  if (rank == 1 && count == 0) return 3;
  if (count == 0) for (;;) pause();
  printf("rank %d of %s\n", rank, getenv("WORLD_SIZE"));
  return 0;
}
"""


@pytest.fixture
def root(elastic_run, tmp_path):
    """A root directory with elastic-run and nothing else."""
    directory = tmp_path / "root"
    directory.mkdir()
    shutil.copy(elastic_run.binary, directory / "elastic-run")
    return directory


@pytest.fixture
def start(elastic_run, root):
    """start(arguments...): elastic-run in the root directory."""
    return lambda *arguments: elastic_run.start(
        program=roots.entered(root, "/elastic-run", *arguments), env=NOWHERE, cwd="/")


def program_headers(binary):
    return subprocess.run(["readelf", "--program-headers", "--wide", binary], capture_output=True, text=True,
                          check=True).stdout


@pytest.fixture(params=["no proc", "proc"])
def busybox(request, root):
    """The root directory with Debian's busybox-static, and a worker for its shell."""
    if not BUSYBOX.exists() or "INTERP" in program_headers(BUSYBOX):
        pytest.skip("there is no /bin/busybox; scripts/test installs it (busybox-static)")
    (root / "bin").mkdir()
    shutil.copy(BUSYBOX, root / "bin/busybox")
    for name in ("sh", "sleep"):
        (root / "bin" / name).symlink_to("busybox")
    (root / "worker").write_text(SHELL_WORKER)
    (root / "worker").chmod(0o755)
    if request.param == "proc":
        (root / "proc").mkdir()
    return root


# --- Root directories with little in them

@pytest.mark.parametrize("asked", ["--version", "--help", "--print-completion=bash"])
def test_what_only_prints_needs_nothing_but_the_binary(start, asked):
    result = start(asked).wait()
    assert (result.returncode, result.stderr) == (0, "") and "elastic-run" in result.stdout


def test_a_job_runs_in_a_root_that_holds_only_the_binary(start, root):
    result = start("--nproc-per-node=2", "--no-python", "/elastic-run", "--version").wait()
    version = start("--version").wait().stdout
    assert (result.returncode, result.stdout) == (0, version * 2), result
    assert (result.stderr, os.listdir(root)) == ("", ["elastic-run"])
    with_logs = start("--nproc-per-node=2", "--log-dir=/logs", "--no-python", "/elastic-run", "--version").wait()
    assert (with_logs.returncode, with_logs.stderr) == (0, ""), with_logs
    assert sorted(path.name for path in root.iterdir()) == ["elastic-run", "logs"]


def test_a_shell_of_busybox_is_restarted(start, busybox):
    result = start("--nproc-per-node=2", "--max-restarts=1", "--log-dir=/logs", "--no-python", "/worker").wait()
    assert result.returncode == 0, result
    assert sorted(result.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    assert "restart 1 of 1" in result.stderr


def test_a_failure_among_busybox_is_reported_then_and_later(start, busybox):
    assert_reported(start, "/logs", "/worker", "fails")


def assert_reported(start, logs, *worker):
    failed = start("--nproc-per-node=2", f"--log-dir={logs}", "--no-python", *worker).wait()
    assert failed.returncode == 1
    assert "first failure: rank 1 " in failed.stderr and "exited with code 7" in failed.stderr, failed
    assert "its last 1 line of stderr:\n    no luck for rank 1\n" in failed.stderr, failed
    directory = re.search(r"log directory: (\S+)", failed.stderr).group(1)
    later = start("--report", directory).wait()
    assert later.returncode == 0, later
    assert "first failure: rank 1 " in later.stdout and "no luck for rank 1" in later.stdout


def test_a_signal_ends_a_job_among_busybox(start, busybox):
    running = start("--nproc-per-node=2", "--log-dir=/logs", "--no-python", "/worker", "waits")
    for _ in range(2):
        running.wait_for_line("^up$", stream="stdout")
    os.kill(running.launcher(), signal.SIGTERM)  # the child of unshare: PID 1 in there
    result = running.wait()
    assert result.stdout == "up\n" * 2 + "told\n" * 2
    assert result.stderr.endswith("elastic-run: stopped by SIGTERM; all workers have ended\n"), result


def musl_loader():
    """Where Debian's musl is found by programs that are linked with it."""
    (loader,) = pathlib.Path("/lib").glob("ld-musl-*.so.1")
    return loader


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="there is no musl-gcc; scripts/test installs it")
def test_workers_of_musl_train_where_there_is_no_other_c_library(start, root):
    loader = musl_loader()
    (root / "lib").mkdir()
    shutil.copy(loader.resolve(), root / loader.relative_to("/"))
    made = subprocess.run(["musl-gcc", "-O1", "-x", "c", "-", "-o", root / "worker"], input=C_WORKER, text=True,
                          capture_output=True, check=False)
    assert made.returncode == 0, made.stderr
    assert f"interpreter: {loader}]" in program_headers(root / "worker")  # it is musl's, or the test shows nothing
    result = start("--nproc-per-node=2", "--max-restarts=1", "--log-dir=/logs", "--no-python", "/worker").wait()
    assert result.returncode == 0, result
    assert sorted(result.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]


# --- The system calls of Linux 4.18; test_restricted.py has more of them

@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of other machines are not in this table")
def test_the_filter_refuses_every_system_call_that_is_younger_than_linux_4_18():
    text = subprocess.run(["gcc", "-E", "-dM", "-include", "asm/unistd_64.h", "-x", "c", "/dev/null"],
                          capture_output=True, text=True, check=True).stdout
    numbers = {name: int(number) for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", text, flags=re.M)}
    assert numbers["rseq"] == 334 and numbers["pidfd_open"] > 334  # rseq came with 4.18, and was its last
    error, first, last = map(int, re.split("[ -]", harness.YOUNGER_THAN_4_18))
    refused = {name for name, number in numbers.items() if first <= number <= last}
    assert refused == {name for name, number in numbers.items() if number > numbers["rseq"]}
    assert {"pidfd_send_signal", "clone3", "close_range", "openat2", "faccessat2", "epoll_pwait2"} <= refused
    assert error == 38  # ENOSYS


@pytest.fixture
def start_on_4_18(elastic_run, refusing):
    """start(arguments...): elastic-run under the filter."""
    return lambda *arguments: elastic_run.start(
        *arguments, program=[*refusing(harness.YOUNGER_THAN_4_18), elastic_run.binary], env={"OMP_NUM_THREADS": "1"})


def test_a_failure_is_reported_on_linux_4_18(start_on_4_18, script, tmp_path):
    assert_reported(start_on_4_18, tmp_path / "logs", script("worker.sh", SHELL_WORKER), "fails")


@pytest.mark.parametrize("check", [[], ["--network-check"]], ids=["plain", "checked"])
def test_two_nodes_meet_restart_and_end_on_linux_4_18(start_on_4_18, script, check):
    from ports import free_port

    worker = script("worker.sh", SHELL_WORKER)
    nodes = [start_on_4_18("--nnodes=2", "--nproc-per-node=1", "--max-restarts=1", "--rdzv-backend=c10d", *check,
                           f"--rdzv-endpoint=127.0.0.1:{port}", "--log-dir=/dev/null", "--no-python", worker)
             for port in [free_port()] for _ in range(2)]
    results = [node.wait(timeout=100) for node in nodes]
    assert [result.returncode for result in results] == [0, 0], results
    assert sorted(result.stdout for result in results) == [f"rank {rank} of 2\n" for rank in range(2)]
# ctest: gate
