"""What a worker finds in its environment, and the directories that the variables name."""
# ctest: gate

import os
import re
import signal
import stat
import sys

import pytest
import workers

OMP_WARNING = (
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your "
    "system being overloaded, please further tune the variable for optimal performance in your "
    "application as needed.")


@pytest.fixture
def report(elastic_run, script, tmp_path):
    """report(options...): runs one job of scripts that tell their environment, which must succeed;
    returns what they told by (restart count, rank), and the launcher's Result."""
    reporter = script("report.py", workers.REPORT)
    jobs = []

    def run(*options, env=None, arguments=(), program=None):
        directory = tmp_path / f"reports-{len(jobs)}"
        jobs.append(directory)
        directory.mkdir()
        result = elastic_run(*options, reporter, *arguments, program=program,
                             env={"REPORTS": str(directory)} | (env or {}))
        assert result.returncode == 0, result
        return workers.read_reports(directory), result

    return run


def environment_of(told, rank=0, restart=0):
    return told[restart, rank]["environment"]


def added(programs, told, rank=0, restart=0):
    """What a worker has beyond what the launcher itself was given; nothing of that may be gone."""
    given = programs.environment({"REPORTS": None}).items()
    seen = environment_of(told, rank, restart)
    assert given <= seen.items()
    return {name: value for name, value in seen.items() if name != "REPORTS" and (name, value) not in given}


def expected(rank, ranks, **values):
    return {
        "LOCAL_RANK": str(rank), "RANK": str(rank), "GROUP_RANK": "0",
        "ROLE_RANK": str(rank), "ROLE_NAME": "default",
        "LOCAL_WORLD_SIZE": str(ranks), "WORLD_SIZE": str(ranks), "GROUP_WORLD_SIZE": "1",
        "ROLE_WORLD_SIZE": str(ranks),
        "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    } | ({"OMP_NUM_THREADS": "1"} if ranks > 1 else {}) | values


def take(environment, name, pattern):
    """Removes a variable whose value is chosen at the start, and holds it to a pattern."""
    value = environment.pop(name)
    assert workers.matches(pattern, value), f"{name}={value}"
    return value


@pytest.mark.parametrize("options", [(), ("--standalone",)])
def test_workers_of_a_standalone_job_have_exactly_these_variables(elastic_run, report, tmp_path, options):
    told, _ = report(*options, "--nproc-per-node=3")
    assert sorted(told) == [(0, 0), (0, 1), (0, 2)]
    common = set()
    for rank in range(3):
        seen = added(elastic_run, told, rank)
        job = take(seen, "TORCHELASTIC_RUN_ID", workers.UUID4)
        fence = take(seen, "ELASTIC_RUN_FENCE", workers.FENCE)
        take(seen, "ELASTIC_RUN_PROGRESS", workers.PROGRESS.format(rank=rank))
        port = take(seen, "MASTER_PORT", r"\d+")
        file = take(seen, "TORCHELASTIC_ERROR_FILE",
                    rf"{tmp_path}/tmp/torchelastic_[a-z0-9_]{{8}}/{job}_[a-z0-9_]{{8}}/attempt_0/{rank}"
                    "/error.json")
        assert seen == expected(rank, 3, MASTER_ADDR="127.0.0.1")
        common.add((job, fence, port, file.split("/attempt_0/")[0]))
    assert len(common) == 1


def test_with_hang_restart_workers_say_more_of_a_hang_and_what_the_user_has_set_is_kept(elastic_run, report, tmp_path):
    told, _ = report("--hang=restart", env={"TORCH_NCCL_TRACE_BUFFER_SIZE": "7"})
    plain, _ = report(env={"TORCH_NCCL_TRACE_BUFFER_SIZE": "7"})
    seen = environment_of(told)
    more = {name: seen[name] for name in seen.keys() - environment_of(plain).keys()}
    assert take(more, "NCCL_RAS_ADDR", r"localhost:\d+")
    assert take(more, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", r".*/elastic_run_[a-zA-Z0-9]{6}/fr_")
    dumps = take(more, "TORCH_FR_DUMP_TEMP_FILE", rf"{tmp_path}/tmp/torchelastic_[a-z0-9_]{{8}}/[^/]*/fr_rank_")
    assert more == {"PYTHONFAULTHANDLER": "1", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": dumps}
    assert seen["TORCH_NCCL_TRACE_BUFFER_SIZE"] == "7"


@pytest.mark.parametrize("options, address, job", [
    (["--master-port={port}"], "127.0.0.1", "none"),
    (["--master-port={port}", "--rdzv-id=job7"], "127.0.0.1", "job7"),
    (["--master-addr=localhost", "--master-port={port}", "--node-rank=0"], "localhost", "none"),
    (["--rdzv-backend=static", "--rdzv-endpoint=localhost:{port}"], "localhost", "none"),
])
def test_workers_of_a_static_job_have_exactly_these_variables(elastic_run, report, options, address, job):
    port = str(workers.free_port())
    told, _ = report(*(option.format(port=port) for option in options), "--nproc-per-node=2")
    for rank in range(2):
        seen = added(elastic_run, told, rank)
        take(seen, "ELASTIC_RUN_FENCE", workers.FENCE)
        take(seen, "ELASTIC_RUN_PROGRESS", workers.PROGRESS.format(rank=rank))
        take(seen, "TORCHELASTIC_ERROR_FILE", rf".*/{job}_[a-z0-9_]{{8}}/attempt_0/{rank}/error.json")
        assert seen == expected(rank, 2, MASTER_ADDR=address, MASTER_PORT=port, TORCHELASTIC_RUN_ID=job)


@pytest.mark.parametrize("program, options", [
    (None, ["--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]),
    (["torchrun"], ["--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]),
    (None, ["--standalone"]), (None, []),
])
def test_a_local_address_is_where_workers_of_one_node_find_their_store_as_with_torchrun(elastic_run, script, program, options):
    worker = script("connects.py", "import os, socket\n"
                    "place = os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])\n"
                    "print(socket.create_connection(place).getpeername()[0])\n")
    result = elastic_run(*options, "--local-addr=127.0.0.3", worker, program=program)
    assert (result.returncode, result.stdout) == (0, "127.0.0.3\n"), result


@pytest.mark.parametrize("options, env", [
    (["--master-port=0"], {}),
    (["--master-addr=127.0.0.1", "--master-port=0", "--node-rank=0"], {}),
    ([], {"PET_MASTER_PORT": "0"}),
])
def test_port_0_of_a_master_of_one_node_is_a_free_port_for_all_its_ranks(elastic_run, script, options, env):
    """Two such jobs run at once."""
    worker = script("connects.py", "import os, signal, socket\n"
                    "port = os.environ['MASTER_PORT']\n"
                    "socket.create_connection((os.environ['MASTER_ADDR'], int(port)))\n"
                    "os.write(1, f'up {port}\\n'.encode())\n"
                    "signal.pause()\n")
    both = [elastic_run.start("--nproc-per-node=2", *options, worker, env={"OMP_NUM_THREADS": "1"} | env) for _ in range(2)]
    ports = [{running.wait_for_line(r"^up (\d+)$", stream="stdout").group(1) for _ in range(2)} for running in both]
    assert [len(found) for found in ports] == [1, 1]
    assert ports[0] != ports[1]
    for running in both:
        running.send_signal(signal.SIGTERM)
        assert running.wait().stderr == "elastic-run: stopped by SIGTERM; all workers have ended\n"


def test_a_local_address_is_no_matter_to_a_static_job(report):
    told, _ = report("--master-addr=127.0.0.1", f"--master-port={workers.free_port()}", "--local-addr=127.0.0.3")
    assert environment_of(told)["MASTER_ADDR"] == "127.0.0.1"


# What torchrun chooses anew for each job, in its form.
ANY_PORT = r"\d{4,5}"
ERROR_FILE = (r"/.*/torchelastic_[a-z0-9_]{{8}}/{job}_[a-z0-9_]{{8}}/attempt_0/{rank}/error\.json")


@pytest.mark.parametrize("kind", ["standalone", "static"])
def test_environment_and_arguments_are_those_of_the_installed_torchrun(elastic_run, report, kind):
    """Intended differences: a standalone job's MASTER_ADDR is 127.0.0.1, where torchrun has the host's
    name; a plain job keeps the id that it was given; $$ in an argument stays (a test below); torchrun has no fence and no
    ELASTIC_RUN_PROGRESS."""
    port = str(workers.free_port())
    options = ["--nproc-per-node=2", "--max-restarts=3", "--role=trainer", "--rdzv-id=job7"]
    env = {"RANK": "77", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0", "INHERITED": "yes"}
    if kind == "static":
        options += [f"--master-port={port}", "--virtual-local-rank", "--signals-to-handle=SIGTERM,SIGUSR1"]
        env |= {"CUDA_VISIBLE_DEVICES": "5, GPU-abc", "OMP_NUM_THREADS": "3"}
    arguments = ["${local_rank}", "$local_rank", "${other}", "--rank=${local_rank}.", ""]
    theirs, _ = report(*options, env=env, arguments=arguments, program=["torchrun"])
    ours, _ = report(*options, env=env, arguments=arguments)
    assert sorted(ours) == sorted(theirs) == [(0, 0), (0, 1)]
    for worker in ours:
        mine, other = ours[worker], theirs[worker]
        assert mine["arguments"] == other["arguments"]
        assert mine["cwd"] == other["cwd"]
        assert mine["error_directory"] and other["error_directory"]
        take(mine["environment"], "ELASTIC_RUN_FENCE", workers.FENCE)
        take(mine["environment"], "ELASTIC_RUN_PROGRESS", workers.PROGRESS.format(rank=worker[1]))
        for seen in (mine["environment"], other["environment"]):
            seen.pop("REPORTS")
            job = seen["TORCHELASTIC_RUN_ID"]
            take(seen, "TORCHELASTIC_ERROR_FILE", ERROR_FILE.format(job=job, rank=worker[1]))
            if kind == "standalone":
                take(seen, "TORCHELASTIC_RUN_ID", workers.UUID4 if seen is other["environment"] else "job7")
                take(seen, "MASTER_PORT", ANY_PORT)
        if kind == "standalone":
            assert mine["environment"].pop("MASTER_ADDR") == "127.0.0.1"
            other["environment"].pop("MASTER_ADDR")
        assert mine["environment"] == other["environment"]


def test_python_is_unbuffered_and_the_working_directory_stays(report, tmp_path):
    told, _ = report(arguments=["a", "b c"])
    assert told[0, 0]["arguments"] == [f"{os.path.dirname(sys.executable)}/python3", "-u",
                                       str(tmp_path / "report.py"), "a", "b c"]
    assert told[0, 0]["cwd"] == str(tmp_path)


# --- OMP_NUM_THREADS and what else a user may have set

@pytest.mark.parametrize("ranks, given, seen, warned", [
    (1, None, None, False),
    (2, None, "1", True),
    (2, "6", "6", False),
    (2, "", "", False),
    (1, "6", "6", False),
])
def test_threads_are_limited_only_for_several_workers_of_a_user_who_has_not_chosen(
        report, ranks, given, seen, warned):
    told, result = report(f"--nproc-per-node={ranks}", env={"OMP_NUM_THREADS": given})
    for rank in range(ranks):
        assert environment_of(told, rank).get("OMP_NUM_THREADS") == seen
    assert result.stderr == (f"elastic-run: warning: {OMP_WARNING}\n" if warned else "")


def test_nccl_error_handling_that_the_user_has_set_is_kept(report):
    told, _ = report(env={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"})
    assert environment_of(told)["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "3"


def test_ranks_that_the_launcher_itself_was_given_are_not_those_of_its_workers(report):
    outer = {"RANK": "5", "LOCAL_RANK": "5", "WORLD_SIZE": "9", "MASTER_ADDR": "elsewhere",
             "MASTER_PORT": "1", "TORCHELASTIC_RESTART_COUNT": "4", "TORCHELASTIC_RUN_ID": "outer",
             "TORCHELASTIC_ERROR_FILE": "/outer/error.json", "TORCHELASTIC_USE_AGENT_STORE": "False"}
    told, _ = report(env=outer)
    seen = environment_of(told)
    assert not {name for name in outer if seen[name] == outer[name]}


def test_a_timer_file_that_nobody_here_reads_is_not_handed_on(report):
    told, result = report(env={"TORCHELASTIC_TIMER_FILE": "/tmp/nobody-reads-this"})
    assert "TORCHELASTIC_TIMER_FILE" not in environment_of(told)
    assert result.stderr == ""


def test_file_timers_add_their_variable_alone(report):
    told, result = report("--nproc-per-node=2", env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "OMP_NUM_THREADS": "1"})
    without, _ = report("--nproc-per-node=2", env={"TORCHELASTIC_ENABLE_FILE_TIMER": "0", "OMP_NUM_THREADS": "1"})
    assert result.stderr == ""
    for rank in range(2):
        names, names_without = set(environment_of(told, rank)), set(environment_of(without, rank))
        assert names - names_without == {"TORCHELASTIC_TIMER_FILE"} and names_without <= names


def test_role_and_signals_are_told_to_workers(report):
    told, _ = report("--role=trainer", "--signals-to-handle", "SIGTERM, USR1")
    assert environment_of(told)["ROLE_NAME"] == "trainer"
    assert environment_of(told)["TORCHELASTIC_SIGNALS_TO_HANDLE"] == "SIGTERM, USR1"


@pytest.mark.parametrize("value, shared", [("1", "False"), ("0", "True"), ("true", "True"), (None, "True")])
def test_workers_host_their_store_only_where_sharing_is_disabled_by_1(report, value, shared):
    told, _ = report(env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": value})
    assert environment_of(told)["TORCHELASTIC_USE_AGENT_STORE"] == shared
    assert environment_of(told)["MASTER_ADDR"] == "127.0.0.1"
    assert int(environment_of(told)["MASTER_PORT"]) > 0


def test_a_static_job_shares_its_store_even_where_sharing_is_disabled(report):
    told, _ = report(f"--master-port={workers.free_port()}", env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})
    assert environment_of(told)["TORCHELASTIC_USE_AGENT_STORE"] == "True"


# --- The job's id

def test_every_standalone_job_has_another_random_id(report):
    ids = {environment_of(report("--standalone")[0])["TORCHELASTIC_RUN_ID"] for _ in range(2)}
    assert len(ids) == 2


def test_an_id_that_was_given_is_kept_by_a_plain_job_and_overwritten_by_standalone(report):
    assert environment_of(report("--rdzv-id=mine")[0])["TORCHELASTIC_RUN_ID"] == "mine"
    assert environment_of(report(env={"PET_RDZV_ID": "mine"})[0])["TORCHELASTIC_RUN_ID"] == "mine"
    told, _ = report("--standalone", "--rdzv-id=mine")
    assert workers.matches(workers.UUID4, environment_of(told)["TORCHELASTIC_RUN_ID"])


def test_an_empty_id_is_replaced_by_a_random_one_with_a_warning(report):
    told, result = report("--rdzv-id=", f"--master-port={workers.free_port()}")
    job = environment_of(told)["TORCHELASTIC_RUN_ID"]
    assert workers.matches(workers.UUID4, job)
    assert result.stderr == f"elastic-run: warning: --rdzv-id is empty; the job's id is {job}\n"


# --- Virtual local ranks, and the macro in arguments

@pytest.mark.parametrize("given, cuda, hip", [
    ({}, ["0", "1"], [None, None]),
    ({"CUDA_VISIBLE_DEVICES": "7, GPU-5f3a"}, ["7", "GPU-5f3a"], [None, None]),
    ({"HIP_VISIBLE_DEVICES": "4,6", "CUDA_VISIBLE_DEVICES": "1"}, ["4", "6"], ["4", "6"]),
    ({"HIP_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": "3,2,1"}, ["3", "2"], ["", ""]),
])
def test_a_virtual_local_rank_is_0_with_one_device_each(report, given, cuda, hip):
    told, _ = report("--virtual-local-rank", "--nproc-per-node=2", env=given, arguments=["${local_rank}"])
    for rank in range(2):
        seen = environment_of(told, rank)
        assert (seen["LOCAL_RANK"], seen["RANK"], seen["LOCAL_WORLD_SIZE"]) == ("0", str(rank), "2")
        assert (seen["CUDA_VISIBLE_DEVICES"], seen.get("HIP_VISIBLE_DEVICES")) == (cuda[rank], hip[rank])
        assert f"/attempt_0/{rank}/error.json" in seen["TORCHELASTIC_ERROR_FILE"]
        assert told[0, rank]["arguments"][-1] == str(rank)


def test_visible_devices_stay_without_virtual_local_ranks(report):
    told, _ = report(env={"CUDA_VISIBLE_DEVICES": "3,2"})
    assert environment_of(told)["CUDA_VISIBLE_DEVICES"] == "3,2"


def test_the_local_rank_is_put_into_arguments_and_other_dollars_stay(report):
    given = ["${local_rank}", "$local_rank", "x${local_rank}y$local_rank-z", "$local_ranks", "${local_rank",
             "$$", "$$local_rank", "$HOME", "${}", "$"]
    told, _ = report("--nproc-per-node=2", arguments=given)
    for rank in "01":
        assert told[0, int(rank)]["arguments"][3:] == [
            rank, rank, f"x{rank}y{rank}-z", "$local_ranks", "${local_rank", "$$", "$$local_rank", "$HOME",
            "${}", "$"]


# --- Log directories

def run_directory(told):
    return re.fullmatch("(.*)/attempt_0/0/error.json",
                        environment_of(told)["TORCHELASTIC_ERROR_FILE"]).group(1)


def tree(path):
    """Every directory and file below a path, relative to it."""
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


FAIL_ONCE = workers.REPORT + "sys.exit(1 if rank == '1' and count == '0' else 0)\n"


def test_every_attempt_has_a_directory_for_each_rank_and_none_is_ever_removed(
        elastic_run, script, tmp_path):
    reports = tmp_path / "reports"
    reports.mkdir()
    result = elastic_run("--nproc-per-node=2", "--max-restarts=2", "--rdzv-id=job", "--log-dir=a/b",
                         script("fail_once.py", FAIL_ONCE), env={"REPORTS": str(reports)})
    assert result.returncode == 0, result
    (run,) = (tmp_path / "a/b").iterdir()
    assert workers.matches(r"job_[a-z0-9_]{8}", run.name)
    assert tree(run) == ["attempt_0", "attempt_0/0", "attempt_0/1", "attempt_1", "attempt_1/0", "attempt_1/1"]
    for (count, rank), told in workers.read_reports(reports).items():
        # A worker may change its directory: the path is absolute though --log-dir was not.
        assert told["environment"]["TORCHELASTIC_ERROR_FILE"] == f"{run}/attempt_{count}/{rank}/error.json"
        assert told["error_directory"]


def test_a_runs_directory_is_private_and_a_named_base_is_made_as_usual(report, tmp_path):
    told, _ = report("--log-dir=made/here")
    assert stat.S_IMODE(os.stat(run_directory(told)).st_mode) == 0o700
    umask = os.umask(0)
    os.umask(umask)
    for path in (tmp_path / "made", tmp_path / "made/here", f"{run_directory(told)}/attempt_0/0"):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o777 & ~umask


def test_the_default_base_is_private_and_only_stays_if_something_was_written(
        elastic_run, script, tmp_path):
    writer = script("write.py", "import os\nif os.environ['RANK'] == '1':\n"
                                "    open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').close()\n")
    assert elastic_run("--nproc-per-node=2", "--no-python", "true").returncode == 0
    assert os.listdir(tmp_path / "tmp") == []
    assert elastic_run("--nproc-per-node=2", writer).returncode == 0
    (base,) = (tmp_path / "tmp").iterdir()
    assert workers.matches("torchelastic_[a-z0-9_]{8}", base.name)
    assert stat.S_IMODE(base.stat().st_mode) == 0o700
    (run,) = base.iterdir()
    assert tree(run) == ["attempt_0", "attempt_0/1", "attempt_0/1/error.json"]


def test_two_runs_with_one_id_and_one_log_directory_share_nothing(report):
    runs = {run_directory(report("--rdzv-id=same", "--log-dir=logs")[0]) for _ in range(2)}
    assert len(runs) == 2


def test_dev_null_for_the_log_directory_means_no_files_at_all(elastic_run, script, tmp_path):
    result = elastic_run("--log-dir=/dev/null", script("show.py", (
        "import os\nprint(repr(os.environ['TORCHELASTIC_ERROR_FILE']))\n")))
    assert (result.returncode, result.stdout, result.stderr) == (0, "''\n", "")
    assert os.listdir(tmp_path / "tmp") == []


def test_an_empty_log_directory_means_the_default_one(report, tmp_path):
    told, _ = report("--log-dir=")
    assert run_directory(told).startswith(f"{tmp_path}/tmp/torchelastic_")


def test_a_slash_in_the_jobs_id_makes_no_further_directories(report, tmp_path):
    told, _ = report("--rdzv-id=team/job", "--log-dir=logs")
    assert environment_of(told)["TORCHELASTIC_RUN_ID"] == "team/job"
    assert workers.matches(rf"{tmp_path}/logs/team_job_[a-z0-9_]{{8}}", run_directory(told))
