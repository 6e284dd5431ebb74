"""Which Python runs the script: PYTHON_EXEC, that of the environment in which elastic-run lies, PATH's."""
# ctest: gate

import os
import shutil
import subprocess
import sys

import pytest


@pytest.fixture
def interpreter(tmp_path):
    """interpreter("bin/python3"): makes a program there that tells how it was called."""

    def make(name):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('#!/bin/sh\necho "$0" "$@"\n')
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def run(elastic_run, tmp_path):
    """run(PATH, variable=value...): the job of a script, with nothing else that could name a Python."""
    (tmp_path / "train.py").write_text("")

    def start(path, *options, arguments=("train.py", "a b"), program=None, **variables):
        env = {name: str(value) for name, value in variables.items()}
        env["PATH"] = os.pathsep.join(map(str, path))
        return elastic_run(*options, *arguments, env=env, program=program)

    return start


def test_python_exec_goes_before_the_environment_that_elastic_run_lies_in_and_that_before_path(
        run, interpreter, elastic_run, tmp_path):
    for name in ("exec/mine", "venv/bin/python", "bin/python3"):
        interpreter(name)
    (tmp_path / "venv/pyvenv.cfg").write_text("")
    inside = [shutil.copy(elastic_run.binary, tmp_path / "venv/bin")]
    for program, variables, chosen in [(inside, {"PYTHON_EXEC": tmp_path / "exec/mine"}, "exec/mine"),
                                       (inside, {}, "venv/bin/python"), (None, {}, "bin/python3")]:
        result = run([tmp_path / "bin"], program=program, **variables)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == f"{tmp_path}/{chosen} -u train.py a b\n"


@pytest.mark.parametrize("variable", ["PYTHON_EXEC", "VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_empty_variable_counts_as_not_set(run, interpreter, tmp_path, variable):
    python = interpreter("bin/python3")
    assert run([tmp_path / "bin"], **{variable: ""}).stdout == f"{python} -u train.py a b\n"


def test_python_is_taken_where_path_has_no_python3(run, interpreter, tmp_path):
    (tmp_path / "empty").mkdir()
    interpreter("first/python")
    python3 = interpreter("second/python3")
    python = tmp_path / "first/python"
    assert run([tmp_path / "empty", tmp_path / "first"]).stdout.startswith(f"{python} ")
    # python3 goes before python, wherever on PATH they are.
    assert run([tmp_path / "first", tmp_path / "second"]).stdout.startswith(f"{python3} ")


def test_what_cannot_be_executed_on_path_is_passed_over(run, interpreter, tmp_path):
    (tmp_path / "first/python3").mkdir(parents=True)
    (tmp_path / "second").mkdir()
    (tmp_path / "second/python3").write_text("not executable")
    python = interpreter("third/python3")
    result = run([tmp_path / name for name in ("first", "second", "nowhere", "third")])
    assert result.stdout.startswith(f"{python} ")


def test_an_empty_part_of_path_is_the_working_directory(run, interpreter):
    interpreter("python3")
    assert run(["/nowhere", ""]).stdout.startswith("./python3 ")


def test_python_exec_without_a_slash_is_looked_up_on_path(run, interpreter, tmp_path):
    interpreter("bin/python3")
    other = interpreter("bin/python3.99")
    assert run([tmp_path / "bin"], PYTHON_EXEC="python3.99").stdout.startswith(f"{other} ")


@pytest.mark.parametrize("wanted, reason", [("none", "not found on PATH"), ("./none", "not an executable file"),
                                            ("train.py", "not found on PATH"), ("/", "not an executable file")])
def test_a_python_exec_that_cannot_be_run_is_an_error_and_no_other_is_taken(
        run, interpreter, tmp_path, wanted, reason):
    interpreter("bin/python3")
    result = run([tmp_path / "bin"], PYTHON_EXEC=wanted)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"elastic-run: error: PYTHON_EXEC={wanted}: {reason}; ")


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_a_variable_of_an_environment_that_was_left_loses_with_one_warning(run, interpreter, tmp_path, variable):
    python = interpreter("bin/python3")
    interpreter("left/bin/python")
    result = run([tmp_path / "bin"], **{variable: tmp_path / "left"})
    assert (result.returncode, result.stdout) == (0, f"{python} -u train.py a b\n")
    assert result.stderr == (f"elastic-run: warning: {variable}={tmp_path}/left: its bin is not on PATH; {python} runs; "
                             "to choose, set PYTHON_EXEC\n")
    result = run([tmp_path / "bin"], **{variable: tmp_path / "gone"})
    assert result.stdout == f"{python} -u train.py a b\n"
    assert result.stderr == f"elastic-run: warning: {variable}={tmp_path}/gone has no bin/python; {python} runs\n"


def test_no_python_anywhere_is_an_error_that_says_what_was_looked_for(run, tmp_path):
    (tmp_path / "empty").mkdir()
    result = run([tmp_path / "empty"])
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "elastic-run: error: no Python: neither python3 nor python is on PATH or beside elastic-run; "
        "activate an environment, set PYTHON_EXEC, or use --no-python for another program\n")


def test_a_program_without_python_needs_no_python(run, interpreter, tmp_path):
    interpreter("bin/program")
    result = run([tmp_path / "bin"], "--no-python", arguments=["program", "x"])
    assert result.stdout == f"{tmp_path}/bin/program x\n"


def test_a_module_is_given_to_python_by_m_and_its_name(run, interpreter, tmp_path):
    python = interpreter("bin/python3")
    assert run([tmp_path / "bin"], "-m", arguments=["package.train", "-m", "--x"]).stdout == (
        f"{python} -u -m package.train -m --x\n")


def test_run_path_gives_python_a_stub_the_script_and_its_arguments(run, interpreter, tmp_path):
    python = interpreter("bin/python3")
    result = run([tmp_path / "bin"], "--run-path", arguments=["train.py", "--x"])
    assert result.stdout.startswith(f"{python} -u -c ")
    assert result.stdout.endswith(" train.py --x\n")
    assert "runpy.run_path" in result.stdout


def test_run_path_goes_before_module_and_no_python(run, interpreter, tmp_path):
    interpreter("bin/python3")
    result = run([tmp_path / "bin"], "--run-path", "-m", "--no-python")
    assert (result.returncode, "runpy.run_path" in result.stdout) == (0, True)


def test_an_option_of_python_may_stand_in_the_scripts_place_after_two_dashes(elastic_run):
    assert elastic_run("--", "-c", "print('from -c')").stdout == "from -c\n"


# --- Where nobody has activated anything

# What each of them gives to a program that it starts: a few variables, and a PATH that knows no environment.
CRON = {"SHELL": "/bin/sh", "PATH": "/usr/bin:/bin", "LOGNAME": "root", "HOME": "/root"}
SYSTEMD = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "INVOCATION_ID": "0"}
CONTAINER = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": "c0ffee"}


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    """A virtual environment without packages, in which elastic-run is installed as pip installs it: as a file in bin."""
    place = tmp_path_factory.mktemp("opt") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    shutil.copy(os.environ["ELASTIC_RUN_BINARY"], place / "bin/elastic-run")
    return place


@pytest.fixture
def prefix(elastic_run, script, tmp_path):
    """prefix(command line, its environment): starts it with a script; returns the environment whose Python ran it, after
    the warnings."""
    script("prefix.py", "import sys\nprint(sys.prefix)\n")

    def start(command, environment, **changes):
        env = dict.fromkeys(elastic_run.environment()) | environment | {"TMPDIR": str(tmp_path / "tmp")} | changes
        del env["ELASTIC_RUN_TEST_ID"]
        result = elastic_run("prefix.py", program=command, env=env)
        assert result.returncode == 0, result
        return result.stderr + result.stdout.rstrip("\n")

    return start


def test_its_own_environment_is_found_from_cron_systemd_and_an_images_command(prefix, venv):
    command = f"{venv}/bin/elastic-run"
    assert prefix(["/bin/sh", "-c", f'{command} "$@"', "cron"], CRON) == str(venv)
    assert prefix([command], SYSTEMD) == str(venv)
    assert prefix([command], CONTAINER) == str(venv)
    assert prefix([command], {}) == str(venv)


def test_its_own_environment_is_found_from_ssh_by_a_link_on_path(prefix, venv, tmp_path):
    (tmp_path / "local").mkdir()
    (tmp_path / "local/torchrun").symlink_to(venv / "bin/elastic-run")
    environment = {"PATH": f"{tmp_path}/local:/usr/bin:/bin", "SSH_CONNECTION": "::1 1 ::1 22"}
    assert prefix(["/bin/bash", "-c", 'torchrun "$@"', "ssh"], environment) == str(venv)
    # Through a link to the directory, and from within it.
    (tmp_path / "current").symlink_to(venv)
    assert prefix([f"{tmp_path}/current/bin/elastic-run"], environment) in (str(venv), f"{tmp_path}/current")
    shell = 'cd "$0" && ./bin/elastic-run "$OLDPWD/$1"'
    assert prefix(["/bin/sh", "-c", shell, venv], environment) == str(venv)


def test_a_link_in_an_environment_to_an_elastic_run_outside_runs_that_environment(prefix, venv, elastic_run):
    (venv / "bin/torchrun").symlink_to(elastic_run.binary)
    assert prefix([f"{venv}/bin/torchrun"], CRON) == str(venv)


def test_an_environment_that_was_activated_is_known_by_path_and_of_two_the_later_one_runs(
        prefix, venv, elastic_run, tmp_path):
    outside = [elastic_run.binary]
    activated = {"VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin:/usr/bin:/bin"}
    assert prefix(outside, activated) == str(venv)
    # `conda activate` puts its own before the other's, and leaves VIRTUAL_ENV as it is.
    conda = tmp_path / "conda"
    (conda / "conda-meta").mkdir(parents=True)
    (conda / "bin").mkdir()
    (conda / "bin/python").write_text("#!/bin/sh\necho conda\n")
    (conda / "bin/python").chmod(0o755)
    within = activated | {"CONDA_PREFIX": str(conda), "PATH": f"{conda}/bin:{activated['PATH']}"}
    assert prefix(outside, within) == "conda"
    # The other way round, as where conda's base is always active.
    within["PATH"] = f"{venv}/bin:{conda}/bin:/usr/bin:/bin"
    assert prefix(outside, within) == str(venv)
    # In conda's bin it is conda's.
    shutil.copy(elastic_run.binary, conda / "bin")
    assert prefix([f"{conda}/bin/elastic-run"], CRON) == "conda"


def test_a_dry_run_says_which_python_and_why(elastic_run, venv, tmp_path):
    (tmp_path / "train.py").write_text("")

    def program(*command, **variables):
        result = elastic_run("--dry-run", "train.py", program=[*command], env=variables)
        return next(line for line in result.stdout.splitlines() if line.startswith("program "))

    assert program(f"{venv}/bin/elastic-run").endswith(
        f"{venv}/bin/python  (beside {venv}/bin/elastic-run, in a virtual environment)")
    path = f"{venv}/bin:/usr/bin"
    assert program(elastic_run.binary, PATH=path).endswith(f"{venv}/bin/python3  (PATH)")
    assert program(elastic_run.binary, PATH=path, VIRTUAL_ENV=str(venv)).endswith("(PATH, as VIRTUAL_ENV says)")
    assert program(elastic_run.binary, PYTHON_EXEC="python3").endswith("(environment: PYTHON_EXEC)")
    wrapped = program(elastic_run.binary, PYTHON_EXEC="env -i python3")
    assert wrapped.split()[1] == "/usr/bin/env"
    assert wrapped.endswith("(environment: PYTHON_EXEC, a wrapper, which finds the script itself)")


# --- A wrapper

# Runs what follows the image's name where the job's files are at another place.
APPTAINER = """\
#!/bin/sh
[ "$1" = exec ] || exit 64
cd "$2" || exit 65
shift 2
exec "$@"
"""


@pytest.fixture
def image(tmp_path, script):
    """The directory of an "image", which alone holds the script; apptainer, as far as a test needs it, is in bin."""
    (tmp_path / "my image").mkdir()
    (tmp_path / "my image/train.py").write_text("import os, sys\nprint(os.environ['RANK'], *sys.argv)\n")
    (tmp_path / "bin").mkdir()
    script("bin/apptainer", APPTAINER)
    script("bin/in-image", '#!/bin/sh\nexec apptainer exec "my image" /usr/bin/python3 "$@"\n')
    return tmp_path / "my image"


@pytest.mark.parametrize("wrapper", ["apptainer exec 'my image' /usr/bin/python3", "in-image"])
def test_a_wrapper_runs_a_script_that_is_not_there_outside(run, image, tmp_path, wrapper):
    result = run([tmp_path / "bin", "/usr/bin", "/bin"], PYTHON_EXEC=wrapper, arguments=["none/train.py"])
    assert result.returncode == 1  # Python itself has not found it
    assert "can't open file" in result.stderr and f"{wrapper} FAILED" in result.stderr
    (tmp_path / "train.py").unlink()
    result = run([tmp_path / "bin", "/usr/bin", "/bin"], PYTHON_EXEC=wrapper)
    assert (result.returncode, result.stdout, result.stderr) == (0, "0 train.py a b\n", "")


def test_without_a_wrapper_a_script_that_is_not_there_is_an_error_before_the_start(run, image, tmp_path):
    for wanted in ("", "/usr/bin/python3", "python3"):
        result = run([tmp_path / "bin", "/usr/bin", "/bin"], PYTHON_EXEC=wanted, arguments=["none.py"])
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("elastic-run: error: none.py: no such file; ")


def test_a_wrapper_that_cannot_be_run_or_read_is_an_error(run, image, tmp_path):
    for wanted, reason in [("gone exec image python", "gone: not found on PATH"),
                           ("./gone exec image python", "./gone: not an executable file"),
                           ("apptainer exec 'my image python", "a quote is not closed")]:
        result = run([tmp_path / "bin"], PYTHON_EXEC=wanted)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"elastic-run: error: PYTHON_EXEC={wanted}: {reason}; ")
