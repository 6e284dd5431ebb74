"""The manual page, docs/command-line.md and --help against the table of flags; docs/health.md against that of findings."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("ELASTIC_RUN_BINARY", ROOT / "build/release/elastic-run"))
GENERATOR = BINARY.with_name("generate_docs")
GENERATED = ["man/elastic-run.1", "docs/command-line.md"]


def run(*command):
    return subprocess.run([os.fspath(part) for part in command], capture_output=True, text=True,
                          timeout=200, check=False)


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """The names of all flags, with dashes."""
    script = tmp_path_factory.mktemp("script") / "train.py"
    script.touch()
    result = run(BINARY, "--dry-run=json", script)
    assert result.returncode == 0, result
    return ["--" + name.replace("_", "-") for name in json.loads(result.stdout)["flags"]]


@pytest.fixture
def copy(tmp_path):
    """A copy of the directories that generate_docs writes to."""
    for name in GENERATED:
        (tmp_path / name).parent.mkdir()
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_manual_and_docs_are_what_the_table_makes(copy):
    for name in GENERATED:  # what is in the copy does not matter but for the text around
        text = (copy / name).read_text()
        (copy / name).write_text(text.replace("| `--nnodes=N", "| `--old=N").replace(".SH NAME", ".SH OLD"))
    result = run(GENERATOR, copy)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    for name in GENERATED:
        assert (copy / name).read_bytes() == (ROOT / name).read_bytes(), \
            f"{name} is not what the table of flags says; scripts/generate-docs writes it"


def test_a_page_without_the_marks_is_not_touched(copy):
    page = copy / "docs/command-line.md"
    page.write_text("# Another page\n")
    result = run(GENERATOR, copy)
    assert result.returncode == 1
    assert "docs/command-line.md" in result.stderr
    assert page.read_text() == "# Another page\n"


def test_every_flag_stands_in_help_manual_and_docs(flags):
    assert len(flags) > 40
    texts = {
        "--help": run(BINARY, "--help").stdout,
        "the manual": (ROOT / "man/elastic-run.1").read_text().replace(r"\-", "-").replace(r"\fB", "\n"),
        "docs/command-line.md": (ROOT / "docs/command-line.md").read_text(),
    }
    for shell in ("bash", "zsh", "fish"):
        script = run(BINARY, "--print-completion", shell).stdout
        texts[f"the completion for {shell}"] = script.replace(" -l ", " --")
    for where, text in texts.items():
        for flag in flags:
            assert re.search(rf"(?<![\w-]){flag}(?![\w-])", text), f"{flag} is missing in {where}"


def test_messages_in_docs_are_the_real_ones():
    text = (ROOT / "docs/command-line.md").read_text()
    shown = re.findall(r"^elastic-run: error: .*\n", text, re.MULTILINE)
    environment = {"PATH": os.environ["PATH"]}
    real = [subprocess.run([BINARY, *arguments, "train.py"], env=environment | variables, text=True,
                           capture_output=True, timeout=200, check=False).stderr
            for arguments, variables in ((["--nodes=2"], {}), ([], {"PET_MAX_RESTARTS": "abc"}))]
    assert shown == real


def test_help_fits_80_columns():
    lines = run(BINARY, "--help").stdout.splitlines()
    assert len(lines) > 60
    assert not [line for line in lines if len(line) > 80 or line != line.rstrip()]


def test_no_flag_is_said_to_have_no_effect():
    assert not re.search(r"^\*", run(BINARY, "--help").stdout, re.MULTILINE)
    for page in ("docs/command-line.md", "man/elastic-run.1"):
        assert "no effect yet" not in (ROOT / page).read_text().lower()


def test_the_manual_is_clean_for_mandoc_and_groff():
    page = ROOT / "man/elastic-run.1"
    mandoc = run("mandoc", "-T", "lint", page)
    assert (mandoc.returncode, mandoc.stdout, mandoc.stderr) == (0, "", "")
    groff = run("groff", "-man", "-Tutf8", "-ww", "-z", page)
    assert (groff.returncode, groff.stdout, groff.stderr) == (0, "", "")


def test_the_manual_can_be_read_by_man():
    result = run("man", "--local-file", ROOT / "man/elastic-run.1")
    assert result.returncode == 0
    assert "SYNOPSIS" in result.stdout and "EXIT STATUS" in result.stdout


def test_the_completion_for_bash_is_clean_for_shellcheck(tmp_path):
    script = tmp_path / "completion"
    script.write_text(run(BINARY, "--print-completion", "bash").stdout)
    result = run("shellcheck", "--shell=bash", script)
    assert (result.returncode, result.stdout) == (0, "")


def host_thresholds():
    """The rows of docs/health.md that health/host/thresholds.h asks for."""
    text = (ROOT / "health/host/thresholds.h").read_text()
    words = r'((?:"[^"]*"\s*)+)'
    found = re.findall(rf"HostThreshold{{\s*HostRule::(k\w+),\s*{words},\s*{words},\s*([\d.]+),\s*{words},\s*"
                       rf"Severity::k(\w+),\s*{words}}}", text)
    rules = re.findall(r"k\w+", re.search(r"enum class HostRule {(.*?)}", text, re.DOTALL).group(1))
    assert [rule for rule, *_ in found] == rules, "a row of the table that this test cannot read"
    swapped_out = re.search(r"kSwappedOutGib = (\d+);", text).group(1)
    rows = []
    for _, name, when, limit, unit, severity, remedy in found:
        name, when, unit, remedy = ("".join(re.findall('"([^"]*)"', each)) for each in (name, when, unit, remedy))
        if name == "swap":
            assert f"more than {swapped_out} GiB swapped out" in when
        told = " ".join(filter(None, [when, "" if limit == "0" else limit, unit]))
        rows.append(f"| `{name}` | {told} | {severity.lower()} | {remedy} |")
    return rows


def test_the_host_findings_in_docs_are_those_of_the_table():
    shown = re.search(r"^\| name \| told if \|.*\n\|[-|]+\n((?:\|.*\n)+)", (ROOT / "docs/health.md").read_text(), re.MULTILINE)
    assert shown.group(1).splitlines() == host_thresholds()
