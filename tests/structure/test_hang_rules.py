"""docs/hangs.md has the table of rules by which a job that hangs is judged, as health/hang/hang_rules.cpp has it."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = "health/hang/hang_rules.cpp"
PAGE = "docs/hangs.md"


def rules_of(source):
    """(number, name, fact, at fault, example) of each row."""
    table = re.search(r"constexpr HangRule kRules\[\] = \{\n(.*?)\n\};", source, re.DOTALL)[1]
    row = re.compile(r"\{(\d+),\s*" + r",\s*".join([r'((?:"(?:[^"\\]|\\.)*"\s*)+)'] * 4) + r",\s*\w+\}")
    return [(match[1], *("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)) for text in match.groups()[1:]))
            for match in row.finditer(table)]


def rows_of(page):
    return [tuple(cell.strip() for cell in line.strip("|\n").split("|"))
            for line in page.splitlines() if re.match(r"\| \d+ \|", line)]


def test_the_page_has_the_rules_of_the_program_in_their_order():
    rules = rules_of((ROOT / RULES).read_text())
    assert [rule[0] for rule in rules] == [str(number) for number in range(1, 12)]
    assert rows_of((ROOT / PAGE).read_text()) == rules


def test_a_rule_that_has_changed_is_found():
    source = (ROOT / RULES).read_text()
    assert rules_of(source.replace('"a debugger, a freezer"', '"a debugger"')) != rows_of((ROOT / PAGE).read_text())
