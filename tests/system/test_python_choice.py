"""Which Python runs the script: PYTHON_EXEC, the active environment, python3, python."""

import os

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

    def start(path, *options, arguments=("train.py", "a b"), **variables):
        env = {name: str(value) for name, value in variables.items()}
        env["PATH"] = os.pathsep.join(map(str, path))
        return elastic_run(*options, *arguments, env=env)

    return start


@pytest.fixture
def everything(interpreter, tmp_path):
    """Every Python that there may be, and the variables that lead to them."""
    for name in ("exec/mine", "venv/bin/python", "conda/bin/python", "bin/python3", "bin/python"):
        interpreter(name)
    return {"PYTHON_EXEC": tmp_path / "exec/mine", "VIRTUAL_ENV": tmp_path / "venv",
            "CONDA_PREFIX": tmp_path / "conda"}


@pytest.mark.parametrize("without, chosen", [
    ([], "exec/mine"),
    (["PYTHON_EXEC"], "venv/bin/python"),
    (["PYTHON_EXEC", "VIRTUAL_ENV"], "conda/bin/python"),
    (["PYTHON_EXEC", "VIRTUAL_ENV", "CONDA_PREFIX"], "bin/python3"),
])
def test_the_first_of_python_exec_venv_conda_and_path_is_chosen(run, everything, tmp_path, without, chosen):
    result = run([tmp_path / "bin"], **{name: everything[name] for name in everything if name not in without})
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


@pytest.mark.parametrize("wanted, reason", [("none", "not found on PATH"), ("./none", "no executable file"),
                                            ("train.py", "not found on PATH"), ("/", "no executable file")])
def test_a_python_exec_that_cannot_be_run_is_an_error_and_no_other_is_taken(
        run, interpreter, tmp_path, wanted, reason):
    interpreter("bin/python3")
    result = run([tmp_path / "bin"], PYTHON_EXEC=wanted)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"elastic-run: error: PYTHON_EXEC={wanted}: {reason}; ")


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_environment_without_python_is_passed_over_with_a_warning(run, interpreter, tmp_path, variable):
    python = interpreter("bin/python3")
    result = run([tmp_path / "bin"], **{variable: tmp_path / "gone"})
    assert result.stdout.startswith(f"{python} ")
    assert result.stderr == (f"elastic-run: warning: {variable}={tmp_path}/gone has no bin/python; "
                             "looking on PATH\n")


def test_no_python_anywhere_is_an_error_that_says_what_was_looked_for(run, tmp_path):
    (tmp_path / "empty").mkdir()
    result = run([tmp_path / "empty"])
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "elastic-run: error: no Python: neither python3 nor python is on PATH, and no virtual environment is "
        "active; activate one, set PYTHON_EXEC, or use --no-python for another program\n")


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
