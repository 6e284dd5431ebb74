"""README.md stays short, with one table of figures; every figure of docs/performance.md has the command that prints it."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README_LINES = 120
COMMAND = re.compile(r"\bscripts/(bench|soak)(?: ([a-z_]+)((?: --?[\w-]+(?:[= ][\w,.]+)?)*))?")


def tables(text):
    """Each table of a page, as the list of its rows of cells, without heading and ruler."""
    found, previous = [], ""
    for line in text.splitlines():
        if not line.startswith("|"):
            previous = ""
            continue
        if not previous:
            found.append([])
        found[-1].append([cell.strip() for cell in line.strip().strip("|").split("|")])
        previous = line
    return [table[2:] for table in found]


def has_figures(table):
    return any(re.match(r"[<>]?\d", cell) for row in table for cell in row[1:])


def check_readme(text):
    broken = []
    lines = len(text.splitlines())
    if lines > README_LINES:
        broken.append(f"README.md: {lines} lines, and {README_LINES} are enough to begin")
    of_figures = [table for table in tables(text) if has_figures(table)]
    if len(of_figures) != 1:
        broken.append(f"README.md: {len(of_figures)} tables of figures, and one convinces; docs/performance.md has the others")
    broken += [f"README.md: no command prints the figure '{row[0]}'" for table in of_figures for row in table
               if not COMMAND.search(row[-1])]
    return broken


def sections(text):
    """(heading, what stands below it) of each section."""
    return [part.split("\n", 1) for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]


def check_page(text):
    """Each section begins with the one command that prints its figures, in a block of its own."""
    broken = []
    if not sections(text):
        broken.append("docs/performance.md: has no section")
    for heading, body in sections(text):
        if not re.match(r"\n```\nscripts/(bench|soak) [^\n]+\n```\n", body):
            broken.append(f"docs/performance.md: '{heading}' does not begin with the command that prints its figures")
    return broken


def check_commands(name, text, known, options_of):
    """Each scripts/bench and scripts/soak of a page has a name that the script knows, and options that its --help has."""
    broken = []
    for script, what, options in COMMAND.findall(text):
        if what and what not in known[script]:
            broken.append(f"{name}: scripts/{script} knows no {what}")
            continue
        for option in re.findall(r" (--?[\w-]+)", options):
            if option not in options_of(script, what):
                broken.append(f"{name}: scripts/{script} {what} has no {option}")
    return broken


def run(*command):
    result = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=200, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def known_names():
    """{script: the names that it lists}."""
    return {script: set(re.findall(r"^([a-z_]+) +[A-Z0-9]", run(ROOT / "scripts" / script), re.MULTILINE))
            for script in ("bench", "soak")}


def options_of(script, what):
    return re.findall(r"(?<!\S)--?[\w-]+", run(ROOT / "scripts" / script, what, "--help"))


def test_readme_is_short_and_has_one_table_of_figures_each_with_its_command():
    assert check_readme((ROOT / "README.md").read_text()) == []


def test_each_section_of_the_figures_begins_with_the_command_that_prints_them():
    assert check_page((ROOT / "docs/performance.md").read_text()) == []


def test_each_benchmark_and_soak_of_the_docs_is_one_that_the_scripts_know():
    known = known_names()
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "tests").glob("**/*.md"))]
    assert [line for page in pages
            for line in check_commands(page.relative_to(ROOT), page.read_text(), known, options_of)] == []


def test_the_scripts_list_what_they_know():
    known = known_names()
    assert len(known["bench"]) >= 10 and len(known["soak"]) >= 5


# --- The checks are seen to fail. -------------------------------------------------------------


FIGURES = "| | ours | by |\n|---|---|---|\n| start | 9.8 ms | `scripts/bench startup` |\n"


@pytest.mark.parametrize("text, found", [
    (FIGURES + "line\n" * README_LINES, "lines, and"),
    (FIGURES + "\n" + FIGURES, "2 tables of figures"),
    ("| | |\n|---|---|\n| docs | words |\n", "0 tables of figures"),
    (FIGURES.replace("scripts/bench startup", "a watch"), "no command prints the figure 'start'"),
])
def test_a_readme_that_has_grown_is_found(text, found):
    assert any(found in line for line in check_readme(text))


def test_a_readme_as_it_should_be_is_accepted():
    assert check_readme(FIGURES + "\n| | |\n|---|---|\n| docs | words |\n") == []


@pytest.mark.parametrize("text", ["", "## Start\n\n9.8 ms\n", "## Start\n\n9.8 ms\n\n```\nscripts/bench startup\n```\n",
                                  "## Start\n\n```\na watch\n```\n"])
def test_figures_without_a_command_before_them_are_found(text):
    assert len(check_page(text)) == 1


@pytest.mark.parametrize("text, found", [
    ("`scripts/bench startup`, `scripts/bench`", []), ("scripts/bench startup --runs 3 --json FILE", []),
    ("scripts/bench stratup", ["x: scripts/bench knows no stratup"]),
    ("scripts/soak startup", ["x: scripts/soak knows no startup"]),
    ("scripts/bench startup --laps=3", ["x: scripts/bench startup has no --laps"]),
])
def test_a_command_that_does_not_exist_is_found(text, found):
    known = {"bench": {"startup"}, "soak": {"load"}}
    assert check_commands("x", text, known, lambda script, what: ["--runs", "--json"]) == found
