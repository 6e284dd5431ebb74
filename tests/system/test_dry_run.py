"""--dry-run: the launch plan, each value with where it came from; and nothing happens."""
# ctest: gate

import json
import os
import shutil
import socket
import stat
import subprocess

import pytest
import workers


@pytest.fixture
def plan(elastic_run):
    """plan(options...): what --dry-run=json prints, which must be all that is printed."""

    def run(*arguments, **options):
        result = elastic_run("--dry-run=json", *arguments, **options)
        assert (result.returncode, result.stderr) == (0, ""), result
        return json.loads(result.stdout)

    return run


TRUE = ["--no-python", "true"]
PLAN = {"nodes", "workers on this node", "role", "program", "job id", "worker store", "restarts", "stop",
        "who gets a signal", "signals that end the job", "log directory", "stdout", "stderr", "stderr kept"}


def test_every_value_of_the_plan_has_an_origin(plan):
    planned = plan("--max-restarts=3", "--nproc-per-node", "2", *TRUE,
                   env={"PET_ROLE": "trainer", "OMP_NUM_THREADS": "1", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "7"})
    assert set(planned["plan"]) == PLAN | {"crash loop"}
    entries = {name: (entry["value"], entry["origin"]) for name, entry in planned["plan"].items()}
    assert entries["workers on this node"] == ("2", "command line: --nproc-per-node 2")
    assert entries["restarts"] == ("3", "command line: --max-restarts=3")
    assert entries["role"] == ("trainer", "environment: PET_ROLE")
    assert entries["nodes"] == ("1", "default")
    assert entries["stop"] == ("SIGTERM, then SIGKILL after 7 s", "environment: TORCH_ELASTIC_SHUTDOWN_TIMEOUT")
    assert entries["who gets a signal"][0].startswith("a worker alone that handles it, and its group when it has ended")
    assert entries["program"] == ("/usr/bin/true", "command line")
    assert entries["job id"][1] == "random, for a job of one node"
    assert workers.matches(workers.UUID4, entries["job id"][0])
    assert all(origin for _, origin in entries.values())


def test_every_flag_has_a_value_and_an_origin(plan):
    planned = plan("--max-r", "3", *TRUE, env={"PET_STANDALONE": "1"})
    flags = planned["flags"]
    assert flags["max_restarts"] == {"value": "3", "origin": "command line: --max-r 3"}
    assert flags["standalone"] == {"value": "true", "origin": "environment: PET_STANDALONE"}
    assert flags["nproc_per_node"] == {"value": "1", "origin": "default"}
    assert flags["log_dir"] == {"value": None, "origin": "default"}
    for name, flag in flags.items():
        assert set(flag) == {"value", "origin"} and flag["origin"], name


def test_where_output_goes_is_in_the_plan(plan):
    def entries(*options, env=None):
        planned = plan("--nproc-per-node=3", *options, *TRUE, env={"OMP_NUM_THREADS": "1"} | (env or {}))["plan"]
        return {name: (entry["value"], entry["origin"]) for name, entry in planned.items()}

    default = entries()
    assert default["stdout"] == default["stderr"] == ("console", "default")
    assert default["stderr kept"] == ("64 KiB of each rank, for the failure report", "default")
    assert entries("-r", "3", "-t", "0:1,1:3")["stdout"] == (
        "local ranks 0-1: log file and console; 2: log file", "command line: -r 3, command line: -t 0:1,1:3")
    cut = entries("--local-ranks-filter=1", env={"PET_TEE": "1"})
    assert cut["stdout"] == ("local ranks 0, 2: log file; 1: log file and console",
                             "environment: PET_TEE, command line: --local-ranks-filter=1")
    assert cut["stderr"][0] == "local ranks 0, 2: nowhere (--local-ranks-filter); 1: console"
    assert cut["line prefix"] == ("[${role_name}${local_rank}]:", "default")
    named = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "$rank "}
    assert entries("-t", "3", env=named)["line prefix"] == ("$rank ", f"environment: {list(named)[0]}")
    assert entries("-t", "3", "--log-line-prefix-template=x:", env=named)["line prefix"] == (
        "x:", "command line: --log-line-prefix-template=x:")
    assert entries("-t", "3", "--log-line-prefix-template=", env=named)["line prefix"] == (
        "none", "command line: --log-line-prefix-template=")
    assert entries("-t", "1", "--duplicate-stdout-filters=loss,a b")["filtered_stdout.log"] == (
        "lines of --tee with loss or 'a b'", "command line: '--duplicate-stdout-filters=loss,a b'")
    assert entries("--stderr-tail=never")["stderr kept"] == ("not kept", "command line: --stderr-tail=never")
    assert entries(env={"PET_LOG_MAX_BYTES": "1M"})["log files"] == (
        "at most 1048576 bytes each, and one older file", "environment: PET_LOG_MAX_BYTES")
    without = entries("--log-dir=/dev/null", "-t", "3", "-r", "3", "--log-max-bytes=1M", "--local-ranks-filter=0")
    assert without["stdout"][0] == without["stderr"][0] == "console"
    assert not {"line prefix", "log files"} & set(without)


def test_the_text_has_what_the_json_has(elastic_run, plan, script):
    path = script("train.py", "")
    arguments = ["--nproc-per-node=2", "--rdzv-id=job7", "--log-dir=logs", path, "${local_rank}", "a b"]
    planned = plan(*arguments, env={"OMP_NUM_THREADS": "1"})
    result = elastic_run("--dry-run", *arguments, env={"OMP_NUM_THREADS": "1"})
    assert (result.returncode, result.stderr) == (0, "")
    head, *parts = result.stdout.split("\n\nlocal rank ")
    lines = [line.split("  ", 1) for line in head.splitlines()]
    shown = {name: rest.strip() for name, rest in lines}
    assert set(shown) == set(planned["plan"])
    for name, entry in planned["plan"].items():
        value, origin = entry["value"], entry["origin"]
        assert shown[name].startswith(value) and shown[name].endswith(f"  ({origin})"), name
    assert len(parts) == 2
    for rank, (part, worker) in enumerate(zip(parts, planned["workers"], strict=True)):
        command, *environment = part.splitlines()
        assert command == f"{rank}: {planned['plan']['program']['value']} -u {path} {rank} 'a b'"
        assert environment == [f"  {name}={value}" for name, value in worker["environment"].items()]


@pytest.mark.parametrize("options, env", [
    ([], {}),
    (["--nproc-per-node=3", "--max-restarts=2", "--role=r", "--rdzv-id=job7"], {"OMP_NUM_THREADS": "4"}),
    (["--master-port={port}", "--nproc-per-node=2"], {"OMP_NUM_THREADS": "4"}),
    (["--log-dir=/dev/null", "--rdzv-id=x", "--signals-to-handle=TERM"],
     {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}),
    (["--virtual-local-rank", "--nproc-per-node=2"], {"CUDA_VISIBLE_DEVICES": "5,6", "OMP_NUM_THREADS": "4"}),
    (["--hang=restart"], {"OMP_NUM_THREADS": "4"}),
])
def test_the_real_launch_is_what_the_dry_run_said(elastic_run, plan, script, tmp_path, options, env):
    reports = tmp_path / "reports"
    reports.mkdir()
    arguments = [*(option.format(port=workers.free_port()) for option in options),
                 script("report.py", workers.REPORT), "${local_rank}", "--x"]
    env = env | {"REPORTS": str(reports)}
    planned = plan(*arguments, env=env)
    assert list(reports.iterdir()) == []
    assert elastic_run(*arguments, env=env).returncode == 0
    told = workers.read_reports(reports)
    assert sorted(told) == [(0, rank) for rank in range(len(planned["workers"]))]
    for rank, worker in enumerate(planned["workers"]):
        seen = told[0, rank]
        assert worker["local_rank"] == rank
        assert worker["command"] == seen["arguments"]
        assert worker["program"] == seen["arguments"][0]
        said = worker["environment"]
        for name, value in said.items():
            real = seen["environment"][name]
            if value == "<a free port>":
                assert int(real) > 0
            elif value == "<by the round>":
                assert name == "ELASTIC_RUN_FENCE" and workers.matches(workers.FENCE, real)
            elif value == "localhost:<a free port>":
                assert name == "NCCL_RAS_ADDR" and workers.matches(r"localhost:\d+", real)
            elif value == "<directory of the job>/fr_":
                assert workers.matches(r".*/elastic_run_[a-zA-Z0-9]{6}/fr_", real)
            elif value.startswith("<directory of the job>/"):
                assert name == "ELASTIC_RUN_PROGRESS" and workers.matches(workers.PROGRESS.format(rank=rank), real)
            elif value.startswith("<run directory>/"):
                assert real.endswith(value.removeprefix("<run directory>"))
            elif name == "TORCHELASTIC_RUN_ID" and "--rdzv-id" not in " ".join(options):
                assert workers.matches(workers.UUID4, real) or value == real == "none"
            else:
                assert value == real, name
        # And there is no more than it said.
        given = elastic_run.environment(env)
        assert set(seen["environment"]) == set(said) | set(given)


def test_the_error_file_is_empty_where_no_logs_are_kept(plan):
    (worker,) = plan("--log-dir=/dev/null", *TRUE)["workers"]
    assert worker["environment"]["TORCHELASTIC_ERROR_FILE"] == ""


@pytest.mark.parametrize("form", ["--dry-run", "--dry-run=text", "--dry-run=json"])
def test_nothing_is_started_and_nothing_is_made(elastic_run, script, tmp_path, form):
    path = script("program", "#!/bin/sh\necho started > started\n")
    before = sorted(tmp_path.rglob("*"))
    for option in ("--log-dir=logs", "--rdzv-id=x"):
        result = elastic_run(form, option, "--nproc-per-node=2", "--no-python", path,
                             env={"OMP_NUM_THREADS": "1"})
        assert (result.returncode, result.stderr) == (0, "")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_port_that_is_taken_is_no_matter(elastic_run):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        result = elastic_run("--dry-run", f"--master-port={holder.getsockname()[1]}", *TRUE)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_port_is_opened_no_directory_made_and_no_process_started(elastic_run, sanitized, tmp_path):
    if sanitized:
        pytest.skip("the leak sanitizer does not work under strace")
    for options in ([], [f"--master-port={workers.free_port()}"]):
        calls = tmp_path / "calls"
        strace = ["strace", "-f", "-o", calls, "-e", "trace=%network,%process,mkdir,mkdirat,kill"]
        result = elastic_run("--dry-run", *options, *TRUE, program=[*map(str, strace), elastic_run.binary])
        assert result.returncode == 0
        names = {line.split()[1].split("(")[0] for line in calls.read_text().splitlines()}
        assert names - {"+++"} == {"execve", "exit_group"}


def test_warnings_are_told_and_are_in_the_json(elastic_run):
    result = elastic_run("--dry-run=json", "--nproc-per-node=2", *TRUE, env={"VIRTUAL_ENV": "/nowhere"})
    assert result.returncode == 0
    (warning,) = json.loads(result.stdout)["warnings"]
    assert result.stderr == f"elastic-run: warning: {warning}\n"
    assert "OMP_NUM_THREADS" in warning


def test_what_would_be_refused_is_refused(elastic_run):
    for arguments in (["--nproc-per-node=0", *TRUE], ["none.py"], ["--no-python", "none"], []):
        result = elastic_run("--dry-run=json", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("elastic-run: error: ")


def test_arguments_of_any_bytes_give_json_and_a_line_that_bash_reads_back(plan, elastic_run, script):
    path = script("train.py", "")
    odd = [b"\xff", b"a\nb", b'"quoted"', b"it's", b"", b"$HOME `x` *", b"\\", "\u00e4".encode(), b"~", b"#"]
    (worker,) = plan(path, *odd)["workers"]
    assert worker["command"][4:] == [text.decode() for text in odd[1:]]
    result = elastic_run("--dry-run", path, *odd)
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("local rank 0: ")]
    words = subprocess.run(["bash", "-c", f"printf '%s\\0' {line.removeprefix('local rank 0: ')}"],
                           capture_output=True, check=True).stdout.split(b"\0")[:-1]
    assert words[2:] == [os.fsencode(path), *odd]


def test_a_reader_that_has_gone_is_no_success(elastic_run):
    reading, writing = os.pipe()
    os.close(reading)
    running = elastic_run.start("--dry-run", *TRUE, stdout=writing)
    os.close(writing)
    assert running.wait().returncode != 0


def test_the_program_is_the_file_that_would_be_executed(plan, script, tmp_path):
    path = script("here", "#!/bin/sh\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    (worker,) = plan("--no-python", "here", "x", env={"PATH": f"/nowhere:{tmp_path}"})["workers"]
    assert (worker["program"], worker["command"]) == (str(path), ["here", "x"])
