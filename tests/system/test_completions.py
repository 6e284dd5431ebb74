"""The completions, loaded by the real shells: what a TAB makes of a line.

bash and zsh run on a terminal; after the TAB a key of the test's own hands out the line as it then
stands. fish answers without a terminal.
"""
# ctest: gate

import json
import os
import pty

import harness
import pytest

# A key, Ctrl-X d, writes the line that is being edited to the pipe and empties it.
BASH_START = """
PS1=$'READY\\n> '
{prepare}
bind 'set bell-style none'
source "$COMPLETION"
dump() {{ printf '%s' "$READLINE_LINE" >"$PIPE"; READLINE_LINE=; READLINE_POINT=0; }}
bind -x '"\\C-xd": dump'
"""
ZSH_START = """
PS1=$'READY\\n> '
autoload -Uz compinit
{load}
dump() {{ print -rn -- "$BUFFER" >"$PIPE"; BUFFER= }}
zle -N dump
bindkey '^Xd' dump
"""
BASH_PREPARES = {
    "bash": "",
    "bash-whole-words": "COMP_WORDBREAKS=${COMP_WORDBREAKS//[=:]}",  # as some users have it
}
ZSH_LOADS = {
    "zsh": 'compinit -D -u; source "$COMPLETION"',
    "zsh-by-name": "fpath=($HOME/functions $fpath); compinit -D -u",  # found as _elastic-run
}

VALUES = [  # typed, completed
    ("--rdzv-backend=c1", "--rdzv-backend=c10d"),
    ("--rdzv-backend c1", "--rdzv-backend c10d"),
    ("--start-method forks", "--start-method forkserver"),
    ("--numa-binding=core", "--numa-binding=core-complex"),
    ("--nproc-per-node=a", "--nproc-per-node=auto"),
    ("--dry-run=j", "--dry-run=json"),
    ("--print-completion f", "--print-completion fish"),
    ("--accelerator=as", "--accelerator=ascend-npu"),
    ("--log-dir di", "--log-dir directory/"),  # and not the file beside it
]
FILES = [
    ("long_n", "long_name.py"),
    ("--nnodes 1:2 -r 3 --standalone long_n", "--nnodes 1:2 -r 3 --standalone long_name.py"),
    ("-m --role=a long_n", "-m --role=a long_name.py"),
    ("-- long_n", "-- long_name.py"),
    ("long_name.py --input long_n", "long_name.py --input long_name.py"),
]
UNTOUCHED = [  # options of the script are the script's affair
    "long_name.py --nn",
    "--nproc-per-node 2 long_name.py --nn",
    "-- --nn",
]


def make_files(directory):
    (directory / "long_name.py").touch()
    (directory / "direct.py").touch()
    (directory / "directory").mkdir()


class InteractiveShell:
    """bash or zsh on a terminal of its own, with the completion loaded."""

    def __init__(self, elastic_run, kind, directory):
        name = kind.split("-")[0]
        completion = elastic_run("--print-completion", name).stdout
        (directory / "completion").write_text(completion)
        (directory / "home/functions").mkdir()
        (directory / "home/functions/_elastic-run").write_text(completion)
        make_files(directory)
        if name == "bash":
            start = directory / "start"
            start.write_text(BASH_START.format(prepare=BASH_PREPARES[kind]))
            command = ["bash", "--noprofile", "--rcfile", start, "-i"]
        else:
            (directory / "home/.zshrc").write_text(ZSH_START.format(load=ZSH_LOADS[kind]))
            command = ["zsh", "-d", "-i"]  # -d: not the machine's own configuration
        self.pipe = directory / "pipe"
        os.mkfifo(self.pipe)
        self.terminal, inside = pty.openpty()
        self.running = elastic_run.start(
            program=command, stdin=inside, stdout=inside, stderr=inside,
            env={"TERM": "dumb", "COMPLETION": str(directory / "completion"), "PIPE": str(self.pipe)})
        os.close(inside)
        self.output = harness.Output(os.fdopen(os.dup(self.terminal), "rb", 0))
        assert self.output.wait_for_line("READY", timeout=harness.PATIENCE), self.output.text

    def complete(self, line):
        """The line after a TAB, without what the shell sets behind a whole word."""
        os.write(self.terminal, f"elastic-run {line}\t\x18d".encode())
        completed = self.pipe.read_text()  # waits for the shell
        assert completed.startswith("elastic-run "), completed
        return completed.removeprefix("elastic-run ").rstrip(" ")

    def close(self):
        os.write(self.terminal, b"exit\n")
        assert self.running.wait().returncode == 0
        os.close(self.terminal)


class Fish:
    """fish lists what it would insert; it does so where the answer is one."""

    def __init__(self, elastic_run, directory):
        self.elastic_run = elastic_run
        (directory / "completion").write_text(elastic_run("--print-completion", "fish").stdout)
        make_files(directory)

    def complete(self, line):
        result = self.elastic_run(
            program=["fish", "--no-config", "-c", "source completion; complete -C $argv[1]",
                     f"elastic-run {line}"])
        assert result.returncode == 0 and result.stderr == "", result
        # "--dry-run" and "--dry-run=" are one answer.
        answers = list({line.split("\t")[0].rstrip("=") for line in result.stdout.splitlines()})
        head, _, word = line.rpartition(" ")
        answer = answers[0] if len(answers) == 1 else word
        return f"{head} {answer}".lstrip(" ")

    def close(self):
        pass


@pytest.fixture(params=["bash", "bash-whole-words", "zsh", "zsh-by-name", "fish"])
def shell(request, elastic_run, tmp_path):
    if request.param == "fish":
        started = Fish(elastic_run, tmp_path)
    else:
        started = InteractiveShell(elastic_run, request.param, tmp_path)
    yield started
    started.close()


def test_every_option_is_completed(shell, elastic_run, script):
    plan = json.loads(elastic_run("--dry-run=json", script("train.py", "")).stdout)
    options = ["--" + name.replace("_", "-") for name in plan["flags"]]
    assert len(options) > 40
    for option in options:
        beginning = option[:-1]
        if sum(other.startswith(beginning) for other in options) > 1:
            beginning = option  # --event: it may be --event-log-handler
        assert shell.complete(beginning).rstrip("=") == option


def test_values_that_are_known_are_completed(shell):
    for typed, completed in VALUES:
        assert shell.complete(typed) == completed


def test_script_and_its_files_are_completed(shell):
    for typed, completed in FILES:
        assert shell.complete(typed) == completed


def test_options_are_not_completed_where_they_are_not_ours(shell):
    for typed in UNTOUCHED:
        assert shell.complete(typed) == typed
