"""docs/architecture.md answers where something is decided and where a change goes, with paths that exist."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = 20


def check(root, least=ROWS):
    """What is wrong with the table of questions, one line each."""
    page = (root / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| (Where [^|]*\?) \| (.*) \|$", page, re.MULTILINE)
    broken = []
    if len(rows) < least:
        broken.append(f"docs/architecture.md: {len(rows)} rows say where something is, and {least} are promised")
    for question, answer in rows:
        paths = re.findall(r"`([\w.-]+/[\w./-]+)`", answer)
        if not paths:
            broken.append(f"docs/architecture.md: names no path: {question}")
        broken += [f"docs/architecture.md: there is no {path}: {question}" for path in paths if not (root / path).exists()]
    return broken


def test_every_place_that_the_page_names_is_there():
    assert check(ROOT) == []


@pytest.mark.parametrize("row, found", [
    ("Where would I add a flag? | `cli/flags.cpp`", "there is no cli/flags.cpp"),
    ("Where would I add a flag? | `cli/flag_table.cpp`, then `cli/gone.h`", "there is no cli/gone.h"),
    ("Where would I add a flag? | in the table", "names no path"),
    ("Why is it so? | `cli/flag_table.cpp`", "0 rows say where"),
])
def test_a_row_that_leads_nowhere_is_found(tmp_path, row, found):
    for path, text in {"cli/flag_table.cpp": "", "docs/architecture.md": f"| question | look at |\n|---|---|\n| {row} |\n"}.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    broken = check(tmp_path, least=1)
    assert len(broken) == 1 and found in broken[0]


def test_a_row_that_leads_somewhere_is_accepted(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/architecture.md").write_text("| Where is this page? | `docs/architecture.md` (`check`) |\n")
    assert check(tmp_path, least=1) == []
