"""Bad input: a message that names the input, the reason and the remedy, before anything is started."""
# ctest: gate

import errno
import os
import re
import resource
import socket
import subprocess

import pytest
from harness import PATIENT
import workers

# One line: what was given, what is wrong with it, what to do.
MESSAGE = re.compile(r"elastic-run: error: (?P<input>.+?): (?P<reason>.+); (?P<remedy>.+)\n")


@pytest.fixture
def refused(elastic_run, script, tmp_path):
    """refused("what the message begins with", arguments...): runs elastic-run, which must refuse that
    with exit status 2, and start nothing and print nothing else; returns the message. Without a script
    among the arguments one is added that would leave a trace."""
    started = tmp_path / "started"
    trace = script("trace.py", f"open({str(started)!r}, 'w')\n")

    def run(given, *arguments, add_script=True, **options):
        before = sorted(tmp_path.iterdir())
        result = elastic_run(*arguments, *([trace] if add_script else []), **options)
        assert (result.returncode, result.stdout) == (2, ""), result
        match = MESSAGE.fullmatch(result.stderr)
        assert match, result
        assert match["input"].startswith(given), result
        assert sorted(tmp_path.iterdir()) == before
        assert os.listdir(tmp_path / "tmp") == []
        return result.stderr

    return run


# --- Flags and variables

@pytest.mark.parametrize("arguments", [
    ["--nproc-per-node=0"], ["--nproc-per-node=-1"], ["--nproc-per-node=4097"],
    ["--nproc-per-node=99999999999999999999"], ["--nproc-per-node=1.5"], ["--nproc-per-node="],
    ["--nproc-per-node=many"], ["--nproc-per-node=tpu"],
    ["--nnodes=0"], ["--nnodes=-1"], ["--nnodes=2:1"], ["--nnodes=0:2"], ["--nnodes=1:2:3"],
    ["--nnodes=x"], ["--nnodes="], ["--nnodes=:"], ["--nnodes=2", "--standalone"],
    ["--max-restarts=-1"], ["--max-restarts=x"], ["--max-restarts=1e3"],
    ["--monitor-interval=0"], ["--monitor-interval=x"], ["--monitor-interval=nan"],
    ["--shutdown-timeout=-1"], ["--shutdown-timeout=soon"], ["--shutdown-timeout=999999999999"],
    ["--signals-to-handle=SIGKILL"], ["--signals-to-handle=SIGTERM,SIGSTOP"], ["--forward-signals=SIGNONE"],
    ["--rdzv-backend=etcd"], ["--rdzv-backend=etcd-v2"], ["--rdzv-backend=mine"], ["--rdzv-backend="],
    ["--rdzv-conf=x"], ["--rdzv-conf==1"], ["--rdzv-conf=join_timeout=soon"], ["--rdzv-conf=rank=0,,"],
    ["--master-port=65536"], ["--master-port=-1"], ["--master-port=http"],
    ["--master-port=0", "--nnodes=2"],
    ["--node-rank=-1"], ["--node-rank=x"],
    ["--redirects=4"], ["--redirects=0:4"], ["--redirects=x"], ["--tee=1,2"], ["-t", "0:1,"],
    ["--local-ranks-filter=a"], ["--local-ranks-filter=0,,1"],
    ["--start-method=thread"], ["--logs-specs=mine"], ["--event-log-handler=mine"], ["--numa-binding=cpu"],
    ["--precheck=3"], ["--dry-run=yaml"], ["--print-completion=tcsh"],
], ids=" ".join)
def test_a_value_that_makes_no_sense_is_refused_by_name(refused, arguments):
    refused(arguments[0].partition("=")[0], *arguments)


@pytest.mark.parametrize("name, value", [
    ("PET_NNODES", "2:1"), ("PET_NPROC_PER_NODE", "0"), ("PET_MAX_RESTARTS", "x"), ("PET_MAX_RESTARTS", ""),
    ("PET_STANDALONE", "yes"), ("PET_NO_PYTHON", "true"), ("PET_RDZV_CONF", "x"), ("PET_REDIRECTS", "9"),
    ("PET_START_METHOD", "thread"), ("PET_MASTER_PORT", "70000"), ("PET_SIGNALS_TO_HANDLE", "SIGKILL"),
    ("PET_MONITOR_INTERVAL", "-1"), ("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "x"), ("ELASTIC_RUN_PATIENCE", "0"),
])
def test_a_variable_that_makes_no_sense_is_refused_by_name(refused, name, value):
    message = refused(f"{name}=", env={name: value})
    assert value in message


@pytest.mark.parametrize("option", ["--standalone", "--rdzv-backend=c10d"])
def test_a_bad_variable_is_no_matter_where_the_command_line_overrides_it(elastic_run, option):
    result = elastic_run("--max-restarts=0", option, "--no-python", "true", env={"PET_MAX_RESTARTS": "x"})
    assert (result.returncode, result.stderr) == (0, "")


def test_a_missing_script_is_refused(refused):
    assert "SCRIPT" in refused("", add_script=False)
    assert "SCRIPT" in refused("", "--standalone", "--nproc-per-node=2", add_script=False)


@pytest.mark.parametrize("arguments", [["--nosuch"], ["--nosuch=1"], ["-x"], ["--n=1"], ["--standalone=1"]],
                         ids=" ".join)
def test_an_option_that_is_not_known_or_not_clear_is_refused(refused, arguments):
    refused(arguments[0].partition("=")[0], *arguments)


def test_an_option_without_its_value_is_refused(refused):
    refused("--nnodes", "--nnodes", add_script=False)


@pytest.mark.parametrize("line, given, wrong", [
    ("--nnodes=$UNSET --nproc-per-node=$UNSET", "--nnodes=", "its value is empty"),
    ("--nproc-per-node=$UNSET", "--nproc-per-node=", "its value is empty"),
    ("--nproc-per-node $UNSET", "--nproc-per-node ", "its value is the script's name, "),
    ("--max-restarts $UNSET", "--max-restarts ", "its value is the script's name, "),
    ("--rdzv-endpoint $UNSET", "--rdzv-endpoint ", "its value is the script's name, "),
    ("--nproc-per-node $UNSET --max-restarts=1", "--nproc-per-node", "a value is missing, "),
])
def test_an_option_whose_value_was_in_a_variable_that_is_not_set_is_named(elastic_run, refused, line, given, wrong):
    """As a shell leaves it. The script's own options are not taken for what is wrong."""
    message = refused(given, "--lr", "1", add_script=False,
                      program=["sh", "-c", f'"$0" {line} train.py "$@"', elastic_run.binary])
    assert wrong in message and "perhaps because a variable is not set" in message


def test_an_empty_variable_of_an_option_is_named(refused):
    message = refused("PET_NNODES=", env={"PET_NNODES": ""})
    assert "its value is empty, perhaps because a variable is not set" in message


def test_module_together_with_no_python_is_refused(refused):
    assert "--no-python" in refused("-m and", "-m", "--no-python")


def test_fewer_devices_than_workers_with_virtual_local_ranks_are_refused(refused):
    refused("CUDA_VISIBLE_DEVICES=0", "--virtual-local-rank", "--nproc-per-node=2",
            env={"CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "1"})


# --- Scripts and programs

# As root, files are read and written whatever their permissions are. What this drops is gone for good.
CAPABILITIES = ["-dac_override", "-dac_read_search"]


@pytest.fixture
def permissions_count(elastic_run):
    """The command line with which elastic-run respects permissions, also where the tests run as root."""
    if os.geteuid() != 0:
        return [elastic_run.binary]
    return ["setpriv", "--bounding-set=" + ",".join(CAPABILITIES), "--inh-caps=" + ",".join(CAPABILITIES),
            elastic_run.binary]


@pytest.mark.parametrize("name", ["none.py", "no/such/directory/train.py", "", "a\nb.py"])
def test_a_script_that_is_not_there_is_refused(refused, name):
    message = refused("", name, add_script=False)
    assert "no such file" in message
    assert (name or "''").replace("\n", "\\x0a") in message


def test_a_directory_is_no_script(refused, tmp_path):
    (tmp_path / "package").mkdir()
    assert "directory" in refused(f"{tmp_path}/package", tmp_path / "package", add_script=False)


def test_a_directory_with_a_main_is_run_as_python_does_it(elastic_run, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__main__.py").write_text("print('main')\n")
    assert elastic_run("package").stdout == "main\n"


def test_a_script_that_cannot_be_read_is_refused(refused, script, permissions_count):
    path = script("secret.py", "print('run')\n")
    path.chmod(0)
    assert "permission denied" in refused(str(path), path, add_script=False, program=permissions_count)


def test_a_program_that_is_not_executable_is_refused(refused, script):
    path = script("train.sh", "#!/bin/sh\n")
    path.chmod(0o644)
    message = refused(str(path), "--no-python", path, add_script=False)
    assert "not executable" in message and "chmod +x" in message


def test_a_program_that_is_not_there_or_is_a_directory_is_refused(refused, tmp_path):
    assert "no such file" in refused("./none", "--no-python", "./none", add_script=False)
    assert "directory" in refused(str(tmp_path), "--no-python", tmp_path, add_script=False)


def test_a_program_that_is_not_on_path_is_refused_with_a_hint_at_the_file_here(refused, script):
    assert "not found on PATH" in refused("none", "--no-python", "none", add_script=False)
    script("here", "#!/bin/sh\n")
    assert "./here" in refused("here", "--no-python", "here", add_script=False)


@pytest.mark.parametrize("text, hint", [("echo no interpreter\n", "#! line"),
                                        ("#!/no/such/interpreter\n", "#! line")])
def test_a_program_that_the_system_cannot_execute_fails_the_job_without_a_restart(
        elastic_run, script, tmp_path, text, hint):
    path = script("program", text)
    result = elastic_run("--max-restarts=3", "--nproc-per-node=2", "--log-dir=logs", "--no-python", path,
                         env={"OMP_NUM_THREADS": "1"})
    assert (result.returncode, result.stdout) == (1, "")
    match = MESSAGE.fullmatch(result.stderr)
    assert match and f"cannot execute {path}" in match["reason"] and hint in match["remedy"]
    (run,) = (tmp_path / "logs").iterdir()
    assert sorted(os.listdir(run)) == ["attempt_0", "failure.json"]


def test_arguments_that_are_too_long_for_the_system_fail_the_job_with_its_reason(elastic_run):
    limit = min(resource.getrlimit(resource.RLIMIT_STACK)[0], 24 << 20) // 4
    pieces = ["x" * 50_000] * (limit // 50_009 - 1)
    for size in range(131_000, 0, -64):
        try:
            running = elastic_run.start("--no-python", "true", *pieces, "x" * size)
            break
        except OSError as error:
            assert error.errno == errno.E2BIG
    # So elastic-run itself could be executed just so, and its worker is given more variables.
    result = running.wait()
    assert (result.returncode, result.stdout) == (1, "")
    assert "Argument list too long" in result.stderr and "shorten" in result.stderr


# --- Log directories

def test_a_log_directory_that_is_a_file_or_lies_below_one_is_refused(refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert "it is a file" in refused("--log-dir=file", "--log-dir=file")
    refused("--log-dir=file/below", "--log-dir=file/below")
    assert (tmp_path / "file").read_text() == ""


def test_a_log_directory_that_cannot_be_written_is_refused(refused, tmp_path, permissions_count):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    for option in ("--log-dir=closed/new", "--log-dir=closed"):
        message = refused("", option, program=permissions_count)
        assert "closed" in message and "Permission denied" in message
    assert list(closed.iterdir()) == []


# --- Ports

def listen(port, family=socket.AF_INET, address="127.0.0.1"):
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen()
    return listener


@pytest.mark.parametrize("family, address", [
    (socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")])
def test_a_port_in_use_is_told_with_its_holder(elastic_run, script, family, address):
    port = workers.free_port()
    with listen(port, family, address):
        result = elastic_run(f"--master-port={port}", "--max-restarts=3", "--no-python", "echo", "started", env=PATIENT)
    assert (result.returncode, result.stdout) == (1, "")
    name = open("/proc/self/comm").read().strip()
    match = MESSAGE.fullmatch(result.stderr)
    assert match and f"port {port}" in match["input"]
    assert match["reason"] == f"Address already in use by process {os.getpid()} ({name})"
    assert "--master-port" in match["remedy"]


def test_a_second_job_on_a_port_is_told_that_elastic_run_holds_it(elastic_run):
    port = workers.free_port()
    first = elastic_run.start(f"--master-port={port}", "--no-python", "sh", "-c", "echo up; read line",
                              stdin=subprocess.PIPE)
    first.wait_for_line("^up$", stream="stdout")
    second = elastic_run(f"--master-port={port}", "--no-python", "echo", "started")
    assert (second.returncode, second.stdout) == (1, "")
    assert f"by process {first.pid} (elastic-run)" in second.stderr
    first.popen.stdin.close()
    first.wait()
    # The port is free again at once: what is left of old connections does not count.
    assert elastic_run(f"--master-port={port}", "--no-python", "true").returncode == 0


# --- Any bytes, any environment

SHOW_ARGUMENTS = """\
import os, sys
os.write(1, b"".join(os.fsencode(text) + b"\\0" for text in sys.argv[1:]))
"""
ODD = [b"\xff\xfe\x80", b"line\nline", b"\"'`$HOME\\", b"", b" ", b"--nproc-per-node=7", b"-h", b"--", b"*",
       "\u65e5\u672c".encode(), b"\x01\x1b[31m", b"-", b"\r\t"]


def test_arguments_of_any_bytes_arrive_unchanged(elastic_run, script):
    result = elastic_run(script("show.py", SHOW_ARGUMENTS), *ODD)
    assert result.returncode == 0
    assert result.stdout_bytes == b"".join(text + b"\0" for text in ODD)


def test_script_names_and_variables_of_any_bytes_work(elastic_run, tmp_path):
    name = b"train \xff'\n.py"
    (tmp_path / os.fsdecode(name)).write_text(
        "import os, sys\nos.write(1, os.fsencode(sys.argv[0]) + b'|' + os.environb[b'ODD'])\n")
    result = elastic_run(name, env={"ODD": "\udcff\n=\udc80"})
    assert result.stdout_bytes == name + b"|\xff\n=\x80"


def test_bytes_that_are_no_text_are_shown_readably_in_messages(elastic_run):
    result = elastic_run(b"none\xff\n.py")
    assert result.returncode == 2
    assert result.stderr.isascii() and result.stderr.count("\n") == 1


def test_an_environment_without_home_or_path_is_enough(elastic_run, script):
    path = script("show.py", "import os\nprint(sorted({'HOME', 'PATH'} & set(os.environ)))\n")
    result = elastic_run(path, env={"HOME": None, "PATH": None})
    assert (result.returncode, result.stdout, result.stderr) == (0, "[]\n", "")
    assert elastic_run("--no-python", "true", env={"HOME": None, "PATH": None}).returncode == 0


def test_an_empty_environment_is_enough(elastic_run, script):
    path = script("show.py", "import os\nprint(len(os.environ))\n")
    nothing = dict.fromkeys(elastic_run.environment())
    # The directory for logs would be made in /tmp, which is not ours.
    result = elastic_run("--log-dir=logs", path, env=nothing)
    assert (result.returncode, result.stderr) == (0, "")
    assert int(result.stdout) >= 18


# Executes its arguments in an environment of entries that some shells and programs leave behind.
ODD_ENVIRONMENT = r"""
#include <unistd.h>

int main(int argc, char** argv) {
  char* environment[] = {"NO_EQUALS", "=no name", "TWICE=1", "TWICE=2",
                         "RANK=9",    "RANK=8",   "OMP_NUM_THREADS", 0};
  (void)argc;
  execve(argv[1], argv + 1, environment);
  return 127;
}
"""


def test_an_environment_of_odd_entries_reaches_the_worker_and_its_rank_is_there_once(
        elastic_run, static_c):
    result = elastic_run(elastic_run.binary, "--log-dir=/dev/null", "--no-python", "cat",
                         "/proc/self/environ", program=[static_c(ODD_ENVIRONMENT)])
    assert (result.returncode, result.stderr) == (0, "")
    entries = result.stdout.rstrip("\0").split("\0")
    assert entries[:5] == ["NO_EQUALS", "=no name", "TWICE=1", "TWICE=2", "OMP_NUM_THREADS"]
    assert [entry for entry in entries if entry.startswith("RANK=")] == ["RANK=0"]


@pytest.mark.parametrize("program", [None, ["torchrun"]], ids=["elastic-run", "torchrun"])
def test_an_unknown_name_among_the_signals_to_handle_is_a_warning_as_with_torchrun(elastic_run, program):
    result = elastic_run("--signals-to-handle=SIGTERM,SIGNOPE", "--no-python", "sh", "-c",
                         'echo "$TORCHELASTIC_SIGNALS_TO_HANDLE"', program=program)
    assert (result.returncode, result.stdout) == (0, "SIGTERM,SIGNOPE\n")
    assert result.stderr.count("Failed to register signal handler for SIGNOPE") == 1
