"""The command line against the real argparse parser of torchrun, and what wrong ones are answered.

How elastic-run understood a command line is read off `--dry-run=json`, which starts nothing.
"""
# ctest: gate

import contextlib
import io
import json
import re

import pytest
from torch.distributed.run import get_args_parser

# Per option of torchrun a value that is right and not the default; "" for switches.
VALUES = {
    "nnodes": "1", "nproc_per_node": "2", "rdzv_backend": "c10d", "rdzv_endpoint": "127.0.0.1:29501",
    "rdzv_id": "job", "rdzv_conf": "timeout=5", "standalone": "", "max_restarts": "3",
    "monitor_interval": "2.5", "start_method": "fork", "event_log_handler": "console", "role": "r",
    "module": "", "no_python": "", "run_path": "", "log_dir": "logs", "redirects": "3", "tee": "3",
    "log_line_prefix_template": "x", "local_ranks_filter": "0", "duplicate_stdout_filters": "x",
    "duplicate_stderr_filters": "x", "node_rank": "1", "master_addr": "localhost",
    "master_port": "29501", "local_addr": "localhost", "logs_specs": "x", "numa_binding": "node",
    "signals_to_handle": "SIGTERM", "shutdown_timeout": "5", "virtual_local_rank": "",
    "print_completion": "bash", "help": "",
}
DLROVER_OPTIONS = {
    "--network-check": "", "--network_check": "", "--node_unit": "2", "--node-unit": "2",
    "--auto_config": "", "--auto-config": "", "--auto_tunning": "", "--auto-tunning": "",
    "--exclude-straggler": "", "--exclude_straggler": "", "--save_at_breakpoint": "",
    "--save-at-breakpoint": "", "--accelerator": "ascend-npu", "--comm-perf-test": "",
    "--comm_perf_test": "", "--training_port": "60001", "--training-port": "60001", "--precheck": "1",
    "--numa-affinity": "", "--numa_affinity": "", "--membind-policy": "bind",
    "--membind_policy": "bind", "--ucp_device_type": "cuda",
}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    """The parser of torchrun reads PET_ variables from the environment of the tests."""
    for name in VALUES:
        monkeypatch.delenv(f"PET_{name.upper()}", raising=False)


@pytest.fixture
def train(script):
    """A script that would leave a file behind if anything ever started it."""
    return script("train.py", "import pathlib; pathlib.Path(__file__ + '.started').touch()\n")


@pytest.fixture
def understood(elastic_run):
    """understood(arguments): the dry run of elastic-run with these arguments, as JSON."""

    def run(*arguments, **options):
        result = elastic_run("--dry-run=json", *arguments, **options)
        assert result.returncode == 0, result
        return json.loads(result.stdout)

    return run


def ask_argparse(*arguments):
    """(status, namespace): what torchrun's own parser makes of the arguments; None for no exit."""
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stderr(quiet), contextlib.redirect_stdout(quiet):
            return None, vars(get_args_parser().parse_args(list(arguments)))
    except SystemExit as end:
        return end.code, None


def torchrun_actions():
    return [action for action in get_args_parser()._actions if action.option_strings]


def written(option, value):
    return f"{option}={value}" if value else option


# --- Options -----------------------------------------------------------------------------------------


def test_every_option_of_torchrun_is_there_with_its_default(understood, train):
    flags = understood(train)["flags"]
    for action in torchrun_actions():
        if action.dest == "help":
            continue
        if action.default is False:
            expected = "false"
        else:
            expected = None if action.default in (None, []) else str(action.default)
        assert flags[action.dest] == {"value": expected, "origin": "default"}, action.dest
    assert {action.dest for action in torchrun_actions()} == set(VALUES)


SAME_CODE = "hundreds of launches through the same code: the parser's unit tests have the sanitizers, too"


@pytest.mark.time_limit(300)
def test_every_prefix_that_torchrun_takes_means_the_same(elastic_run, train, sanitized):
    if sanitized:
        pytest.skip(SAME_CODE)
    prefixes = {option[:end]: (action.dest, written(option[:end], VALUES[action.dest]))
                for action in torchrun_actions() for option in action.option_strings
                for end in range(2, len(option) + 1)}
    taken = 0
    for prefix, (dest, typed) in prefixes.items():
        if ask_argparse(typed, str(train))[0] == 2:
            continue  # ambiguous there
        taken += 1
        result = elastic_run("--dry-run=json", typed, train)
        if dest == "help":
            assert result.returncode == 0 and result.stdout.startswith("Usage: "), result
        elif dest == "print_completion":
            assert result.returncode == 0 and result.stdout.startswith("# bash completion"), result
        elif dest == "logs_specs":
            assert result.returncode == 2 and f"error: {typed}: it names a plug-in" in result.stderr
        else:
            assert result.returncode == 0, result
            assert json.loads(result.stdout)["flags"][dest] == {
                "value": VALUES[dest] or "true", "origin": f"command line: {typed}"}, result
    assert taken > 300  # of torchrun 2.15's options; the loop was not idle


def test_every_option_of_dlrover_run_is_there_in_both_spellings(understood, train):
    for option, value in DLROVER_OPTIONS.items():
        flag = understood(written(option, value), train)["flags"][option[2:].replace("-", "_")]
        assert flag == {"value": value or "true", "origin": f"command line: {written(option, value)}"}


def test_every_prefix_of_an_option_of_dlrover_run_that_fits_no_other_means_that_option(elastic_run, train, sanitized):
    if sanitized:
        pytest.skip(SAME_CODE)
    # Two spellings of one option are one: argparse's own answer would be that they are ambiguous.
    names = {option: action.dest for action in torchrun_actions() for option in action.option_strings
             if option.startswith("--")}
    names |= {option: option[2:].replace("-", "_") for option in DLROVER_OPTIONS}
    taken = 0
    for option, value in DLROVER_OPTIONS.items():
        for end in range(3, len(option) + 1):
            prefix = option[:end]
            if prefix not in names and len({dest for name, dest in names.items() if name.startswith(prefix)}) > 1:
                continue
            taken += 1
            typed = written(prefix, value)
            result = elastic_run("--dry-run=json", typed, train)
            assert result.returncode == 0, result
            assert json.loads(result.stdout)["flags"][names[option]] == {
                "value": value or "true", "origin": f"command line: {typed}"}, result
    assert taken > 150  # the loop was not idle


def test_every_option_of_torchrun_can_be_set_by_its_variable(understood, train):
    for action in torchrun_actions():
        if action.dest in ("help", "print_completion", "logs_specs", "numa_binding"):
            continue
        name, value = f"PET_{action.dest.upper()}", VALUES[action.dest] or "1"
        flag = understood(train, env={name: value})["flags"][action.dest]
        assert flag == {"value": VALUES[action.dest] or "true", "origin": f"environment: {name}"}


# --- argparse's habits ---------------------------------------------------------------------------------

# Each line is given to torchrun's parser and to elastic-run; -m, because then no script has to exist.
SAME_AS_ARGPARSE = [
    ["--nnodes=1", "-m", "t"],
    ["--nnodes", "1", "-m", "t", "a", "b"],
    ["--nproc_per_node=2", "--max_restarts", "3", "-m", "t"],
    ["-m", "t", "--nnodes", "3", "-x", "--standalone"],
    ["--standalone", "-m", "1", "t.py"],
    ["-mr3", "t"],
    ["-mr", "3", "t"],
    ["-m", "-r3", "-t", "3", "t"],
    ["-m", "-r", "3", "t"],
    ["-m", "-r=3", "t"],
    ["-m", "--", "t", "--foo"],
    ["-m", "--", "--foo", "t"],
    ["-m", "--", "--", "t"],
    ["-m", "t", "--", "--foo"],
    ["-m", "t", "--", "a", "--", "b"],
    ["-m", "t", "a", "--", "b"],
    ["-m", "--", "t", "--", "u"],
    ["-m", "t", "--"],
    ["-m", "--", "t", "--"],
    ["-m", "-", "t"],
    ["-m", "-1", "t"],
    ["-m", "-1.5", "t"],
    ["-m", "-a b", "t"],
    ["-m", "--role x", "t"],
    ["-m", "--bogus=1 2", "t"],
    ["-m", "--role", "-a b", "t"],
    ["-m", "--role", "-", "t"],
    ["-m", "--role", "-7", "t"],
    ["-m", "--role", "-.5", "t"],
    ["-m", "--role", "-1 2", "t"],
    ["-m", "--role", "", "t"],
    ["-m", "--role=", "t"],
    ["-m", "--role=a=b", "t"],
    ["-m", "--role=-x", "t"],
    ["-m", "--role=a b", "t"],
    ["-m", "--ro=a b", "t"],
    ["-m", "--role", "a", "--role", "b", "t"],
    ["-m", "--redirect=3", "t"],
    ["-m", "--te", "3", "t"],
    ["--mod", "t"],
    ["-m", "--rdzv-i", "x", "t"],
    ["-m", "--max-restarts", " 3 ", "t"],
    ["-m", "--max-restarts", "1_0", "t"],
    ["-m", "--max-restarts=+4", "t"],
    ["-m", "--monitor-interval", "1e-1", "t"],
    ["-m", "--duplicate-stdout-filters", "a,,b,c", "-t3", "t"],
    ["-m", "t", "${local_rank}", "*", "a b", ""],
]


@pytest.mark.parametrize("arguments", SAME_AS_ARGPARSE, ids=" ".join)
def test_understood_as_argparse_understands(understood, arguments):
    status, expected = ask_argparse(*arguments)
    assert status is None
    plan = understood(*arguments)
    for action in torchrun_actions():
        if action.dest in ("help", "print_completion"):
            continue
        text = plan["flags"][action.dest]["value"]
        if action.nargs == 0:
            value = text == "true"
        elif text is None:
            value = action.default
        else:
            value = action.type(text) if action.type else text
        assert value == expected[action.dest], action.dest
    script = [expected["training_script"], *expected["training_script_args"]]
    command = plan["workers"][0]["command"]
    assert command[command.index("-m") + 1:] == [part.replace("${local_rank}", "0") for part in script]


WRONG_FOR_BOTH = [
    (["--role", "-x", "t"], "--role"),
    (["--role", "--", "t"], "--role"),
    (["--role"], "--role"),
    (["--max-restarts", "-1e5", "t"], "--max-restarts"),
    (["--standalone=1", "t"], "--standalone=1"),
    (["-m=1", "t"], "-m=1"),
    (["-m1", "t"], "-m1"),
    (["-h1"], "-h1"),
    (["--bogus", "t"], "--bogus"),
    (["-x", "t"], "-x"),
    (["-nnodes", "2", "t"], "-nnodes"),
    (["--n=1", "t"], "--n=1"),
    (["--=3", "t"], "--=3"),
    (["--max-restarts=abc", "t"], "--max-restarts=abc"),
    (["--max-restarts=", "t"], "--max-restarts="),
    (["--max-restarts=1.5", "t"], "--max-restarts=1.5"),
    (["--max-restarts=x", "--max-restarts=1", "t"], "--max-restarts=x"),
    (["--monitor-interval=fast", "t"], "--monitor-interval=fast"),
    (["--start-method=bad", "t"], "--start-method=bad"),
    (["--numa-binding=bad", "t"], "--numa-binding=bad"),
    (["--print-completion=csh"], "--print-completion=csh"),
    ([], "SCRIPT"),
    (["--nnodes=1"], "SCRIPT"),
    (["--"], "SCRIPT"),
]


@pytest.mark.parametrize("arguments, named", WRONG_FOR_BOTH, ids=lambda part: str(part))
def test_wrong_for_argparse_is_wrong_here(elastic_run, arguments, named):
    assert ask_argparse(*arguments)[0] == 2
    refused(elastic_run(*arguments), named)


# --- Where elastic-run does better -----------------------------------------------------------------------


def test_script_arguments_that_look_like_prefixes_go_to_the_script(understood):
    for argument in ("--r=16", "--log", "--d", "--no", "--ma", "--p", "--print", "--nproc"):
        plan = understood("-m", "t", argument)
        assert plan["workers"][0]["command"][-2:] == ["t", argument]


def test_two_spellings_of_one_option_are_no_ambiguity(understood, train):
    assert understood("--nproc", "3", train)["flags"]["nproc_per_node"]["value"] == "3"
    assert understood("--node=1", train)["flags"]["node_rank"]["value"] == "1"


def test_joined_options_take_an_equals_sign_whatever_the_python(understood):
    assert understood("-mr=3", "t")["flags"]["redirects"]["value"] == "3"


def test_flags_with_nothing_to_do_are_silent(elastic_run, train):
    result = elastic_run("--dry-run", "--monitor-interval=5", "--start-method=fork",
                         "--event-log-handler=dynamic_rendezvous", "--ucp-device-type=cuda", train)
    assert result.returncode == 0 and result.stderr == "", result


def test_arguments_of_any_bytes_reach_the_worker(elastic_run):
    odd = [bytes([byte]) for byte in range(1, 256)] + [b"", b"a b", b"--nnodes=2"]
    result = elastic_run("--no-python", "/usr/bin/printf", "%s|", *odd)
    assert result.returncode == 0, result
    assert result.stdout_bytes == b"".join(part + b"|" for part in odd)


# --- Help and its like -------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, begins", [
    (["--help"], "Usage: elastic-run "), (["-h"], "Usage: elastic-run "),
    (["-mh"], "Usage: elastic-run "), (["--bogus", "--help"], "Usage: elastic-run "),
    (["--version"], "elastic-run "), (["--print-completion", "bash"], "# bash completion"),
    (["--print-completion=zsh"], "#compdef elastic-run"),
    (["--print-completion=fish"], "# fish completion")], ids=str)
def test_what_is_asked_for_goes_to_stdout(elastic_run, arguments, begins):
    # A wrong variable must not stand between a user and the help.
    result = elastic_run(*arguments, env={"PET_NNODES": "", "PET_MAX_RESTARTS": "x", "PET_STANDALONE": ""})
    assert result.returncode == 0 and result.stderr == "", result
    assert result.stdout.startswith(begins) and result.stdout.endswith("\n")


# --- Wrong values ----------------------------------------------------------------------------------------

# Found by torchrun only later, with status 1 or not at all; here before anything is started.
WRONG = [
    "--nnodes=0", "--nnodes=a", "--nnodes=", "--nnodes=1:2:3", "--nnodes=3:2", "--nnodes=0:2",
    "--nproc-per-node=0", "--nproc-per-node=-1", "--nproc-per-node=1000000", "--nproc-per-node=many",
    "--nproc-per-node=tpu", "--nproc-per-node=",
    "--rdzv-backend=mine", "--rdzv-backend=etcd", "--rdzv-backend=",
    "--rdzv-endpoint=h", "--rdzv-endpoint=h:x", "--rdzv-endpoint=h:65536", "--rdzv-endpoint=a/b:1",
    "--rdzv-conf=join_timeout", "--rdzv-conf==1", "--rdzv-conf=min_nodes=2", "--rdzv-conf=join_timeout=x",
    "--rdzv-conf=is_host=maybe", "--rdzv-conf=read_timeout=0", "--rdzv-conf=store_type=etcd",
    "--max-restarts=-1", "--shutdown-timeout=-1", "--monitor-interval=0", "--monitor-interval=nan",
    "--master-port=65536", "--master-port=-1", "--node-rank=-1",
    "--redirects=4", "--redirects=0:1,", "--tee=x", "--local-ranks-filter=a", "--local-ranks-filter=0,",
    "--signals-to-handle=SIGKILL", "--signals-to-handle=SIGSTOP", "--forward-signals=SIGFOO",
    "--event-log-handler=mine", "--logs-specs=mine",
    "--precheck=3", "--accelerator=abacus", "--node_unit=0", "--training_port=70000", "--http-port=65536", "--dry-run=xml",
]


def refused(result, named):
    """Status 2, an empty stdout, and one line on stderr: input, reason, remedy."""
    assert result.returncode == 2, result
    assert result.stdout == "", result
    line = re.fullmatch(r"elastic-run: error: (.*): .*; .*\n", result.stderr)
    assert line and line[1].startswith(named), result


def nothing_was_started(elastic_run, train):
    assert not train.with_name(train.name + ".started").exists()
    assert not list(elastic_run.temporary.iterdir())


@pytest.mark.parametrize("argument", WRONG)
def test_a_wrong_value_ends_with_status_2_before_anything_starts(elastic_run, train, argument):
    refused(elastic_run(argument, train), argument)
    nothing_was_started(elastic_run, train)


@pytest.mark.parametrize("name, value", [
    ("PET_NNODES", ""), ("PET_NNODES", "two"), ("PET_NPROC_PER_NODE", ""), ("PET_NPROC_PER_NODE", "0"),
    ("PET_MAX_RESTARTS", "abc"), ("PET_MAX_RESTARTS", ""), ("PET_MAX_RESTARTS", "-1"),
    ("PET_STANDALONE", "yes"), ("PET_STANDALONE", ""), ("PET_MODULE", "true"),
    ("PET_START_METHOD", "bad"), ("PET_RDZV_BACKEND", "mine"), ("PET_RDZV_CONF", "x"),
    ("PET_MASTER_PORT", "http"), ("PET_REDIRECTS", ""), ("PET_TEE", "9"), ("PET_MONITOR_INTERVAL", ""),
    ("PET_ACCELERATOR", "abacus"), ("PET_PRECHECK", "x"), ("PET_NETWORK_CHECK", "on"),
    ("PET_SIGNALS_TO_HANDLE", "SIGKILL"), ("PET_LOCAL_RANKS_FILTER", "all")])
def test_a_wrong_variable_ends_with_status_2_and_is_named(elastic_run, train, name, value):
    refused(elastic_run(train, env={name: value}), name)
    nothing_was_started(elastic_run, train)


def test_a_wrong_variable_is_not_looked_at_where_the_command_line_decides(understood, train):
    plan = understood("--max-restarts=2", train, env={"PET_MAX_RESTARTS": "abc"})
    assert plan["flags"]["max_restarts"] == {"value": "2", "origin": "command line: --max-restarts=2"}


def test_a_switch_on_the_command_line_wins_over_a_variable_that_says_no(understood, train):
    assert understood("--standalone", train,
                      env={"PET_STANDALONE": "0"})["flags"]["standalone"]["value"] == "true"


def test_a_module_without_python_is_refused(elastic_run, train):
    refused(elastic_run("-m", "--no-python", train), "-m and --no-python")
    nothing_was_started(elastic_run, train)


@pytest.mark.parametrize("typed, meant", [
    ("--nodes=2", "--nnodes"), ("--nproc-pernode=2", "--nproc-per-node"),
    ("--max_restart-s=1", "--max-restarts"),
    ("-standalone", "--standalone"), ("--rdzvid=1", "--rdzv-id"), ("--networkcheck", "--network-check")])
def test_an_unknown_option_is_answered_with_the_nearest_one(elastic_run, train, typed, meant):
    result = elastic_run(typed, train)
    refused(result, typed)
    assert f"did you mean {meant}?" in result.stderr


def test_an_option_of_the_script_is_answered_with_its_place(elastic_run, train):
    result = elastic_run("--learning-rate=0.1", train)
    refused(result, "--learning-rate=0.1")
    assert "options of the script go after its name" in result.stderr
    assert "did you mean" not in result.stderr


def test_odd_bytes_in_a_wrong_argument_are_shown_readably(elastic_run):
    result = elastic_run(b"--bo\xff\x1b[31m\n", "t")
    refused(result, r"--bo\xff\x1b[31m\x0a")
