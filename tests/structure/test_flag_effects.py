"""Every flag has an entry in tests/guarantees.txt with the test that fails if the flag has no effect.

That the tests are there, and run, test_guarantees.py looks at.
"""

import pathlib
import re

import pytest
from guarantees import read_tests

ROOT = pathlib.Path(__file__).resolve().parents[2]


def flags_of(table):
    """Each row of cli/flag_table.cpp, as the flag is typed."""
    rows = re.split(r"\{\.id = FlagId::", table)[1:]
    return [f"--{name}" for row in rows for name in re.findall(r'\.name = "([^"]+)"', row)]


def flags_with_entries(text):
    return [flag for _, section, flag, _ in read_tests(text) if section == "Flags"]


def check(table, text):
    """What is wrong with the entries."""
    flags = flags_of(table)
    rows = flags_with_entries(text)
    wrong = [f"{flag} has no entry" for flag in flags if flag not in rows]
    wrong += [f"{flag} has {rows.count(flag)} entries" for flag in flags if rows.count(flag) > 1]
    wrong += [f"{flag} has an entry and is no flag" for flag in rows if flag not in flags]
    if not wrong and rows != flags:
        wrong.append("the entries are not in the order of the flags")
    return wrong


def test_every_flag_has_an_entry_and_nothing_else_has():
    table = (ROOT / "cli/flag_table.cpp").read_text()
    assert len(flags_of(table)) == table.count(".id = FlagId::") > 90
    wrong = check(table, (ROOT / "tests/guarantees.txt").read_text())
    assert not wrong, "tests/guarantees.txt, Flags:\n" + "\n".join(wrong)


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


def entries(*flags, heading="## Flags"):
    rows = "".join(f"{flag}\n  unit: it works\n" for flag in flags)
    return f"## Before\n\nIt works\n  unit: it works\n\n{heading}\n\n{rows}\n## Behind\n\nIt works again\n  unit: it works\n"


def test_entries_that_are_right_are_accepted():
    assert check(TABLE, entries("--one", "--two-words", "--last")) == []


@pytest.mark.parametrize("flags, wrong", [
    (["--one", "--last"], ["--two-words has no entry"]),
    (["--one", "--two-words"], ["--last has no entry"]),
    (["--one", "--two-words", "--one", "--last"], ["--one has 2 entries"]),
    (["--one", "--two-words", "--three", "--last"], ["--three has an entry and is no flag"]),
    (["--one", "--two_words", "--last"], ["--two-words has no entry", "--two_words has an entry and is no flag"]),
    (["--two-words", "--one", "--last"], ["the entries are not in the order of the flags"]),
], ids=str)
def test_entries_that_are_wrong_are_found(flags, wrong):
    assert check(TABLE, entries(*flags)) == wrong


def test_entries_of_another_section_do_not_count():
    assert len(check(TABLE, entries("--one", "--two-words", "--last", heading="## Options"))) == 3
