"""Every flag has a row in docs/guarantees.md with the test that fails if the flag has no effect.

That the tests are there, and run, test_guarantees.py looks at.
"""

import pathlib
import re

import pytest
from guarantees import read_rows

ROOT = pathlib.Path(__file__).resolve().parents[2]


def flags_of(table):
    """Each row of cli/flag_table.cpp, as the flag is typed."""
    rows = re.split(r"\{\.id = FlagId::", table)[1:]
    return [f"--{name}" for row in rows for name in re.findall(r'\.name = "([^"]+)"', row)]


def flags_with_rows(page):
    section = re.search(r"^## Flags\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return [first.strip("`") for _, first, _ in read_rows(section.group(1))] if section else []


def check(table, page):
    """What is wrong with the rows."""
    flags = flags_of(table)
    rows = flags_with_rows(page)
    wrong = [f"{flag} has no row" for flag in flags if flag not in rows]
    wrong += [f"{flag} has {rows.count(flag)} rows" for flag in flags if rows.count(flag) > 1]
    wrong += [f"{flag} has a row and is no flag" for flag in rows if flag not in flags]
    if not wrong and rows != flags:
        wrong.append("the rows are not in the order of the flags")
    return wrong


def test_every_flag_has_a_row_and_nothing_else_has():
    table = (ROOT / "cli/flag_table.cpp").read_text()
    assert len(flags_of(table)) == table.count(".id = FlagId::") > 90
    wrong = check(table, (ROOT / "docs/guarantees.md").read_text())
    assert not wrong, "docs/guarantees.md, Flags:\n" + "\n".join(wrong)


# --- The check is seen to fail. ---------------------------------------------------------------


TABLE = """
    {.id = FlagId::kOne,
     .name = "one",
     .help = "the first"},
    {.id = FlagId::kTwoWords,
     .name = "two-words",
     .state = kAccepted,
     .help = "not needed"},
    {.id = FlagId::kLast,
     .name = "last",
     .state = FlagState::kRefused,
     .help = "an error"},
"""


def page(*flags, heading="## Flags"):
    rows = "".join(f"| `{flag}` | `unit: it works` |\n" for flag in flags)
    return (f"# Guarantees\n\n## Before\n\n| behaviour | test |\n|---|---|\n| It works | `unit: it works` |\n\n"
            f"{heading}\n\nText.\n\n| flag | test |\n|---|---|\n{rows}\n## Behind\n\n"
            "| behaviour | test |\n|---|---|\n| It works again | `unit: it works` |\n")


def test_rows_that_are_right_are_accepted():
    assert check(TABLE, page("--one", "--two-words", "--last")) == []


@pytest.mark.parametrize("flags, wrong", [
    (["--one", "--last"], ["--two-words has no row"]),
    (["--one", "--two-words"], ["--last has no row"]),
    (["--one", "--two-words", "--one", "--last"], ["--one has 2 rows"]),
    (["--one", "--two-words", "--three", "--last"], ["--three has a row and is no flag"]),
    (["--one", "--two_words", "--last"], ["--two-words has no row", "--two_words has a row and is no flag"]),
    (["--two-words", "--one", "--last"], ["the rows are not in the order of the flags"]),
], ids=str)
def test_rows_that_are_wrong_are_found(flags, wrong):
    assert check(TABLE, page(*flags)) == wrong


def test_rows_of_another_section_do_not_count():
    assert len(check(TABLE, page("--one", "--two-words", "--last", heading="## Options"))) == 3
