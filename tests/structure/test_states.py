"""docs/states.md is what the tables of states and events say; the machines' own files compare states almost nowhere else."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import states_page  # noqa: E402

COMPARISON = re.compile(r"\bstate(?:_|\(\))?\s*[!=]=\s*(?:\w+::)*State::k|\bState::k\w+\s*[!=]=\s*(?:\w+[.>-]+)?state(?:_|\b)")
# {the files of a machine: how often they may compare its state outside its table and its invariants}. It only shrinks.
COMPARISONS = {"rendezvous/agent/lifecycle": 4, "rendezvous/coordinator/coordinator": 6}


def comparisons(root, machine):
    files = [path for path in root.glob(f"{machine}*") if path.suffix in (".h", ".cpp")
             and not re.search(r"_(table|test|test_support|invariants)\.", path.name) and "_test" not in path.name]
    return sum(len(COMPARISON.findall(path.read_text())) for path in files)


def test_the_page_is_what_the_tables_say():
    assert (ROOT / "docs/states.md").read_text() == states_page.page(ROOT), "run scripts/generate-docs"


@pytest.mark.parametrize("header", [header for _, header, _ in states_page.TABLES])
def test_no_row_of_a_table_is_missed(header):
    text = (ROOT / header).read_text()
    rows = states_page.table_of(text)[2]
    assert len(rows) == len(re.findall(r"\bon<|\brow\(On", text)) > 25


@pytest.mark.parametrize("machine, most", COMPARISONS.items())
def test_states_are_compared_in_the_table(machine, most):
    assert comparisons(ROOT, machine) == most, "a cell of the table says it; and the number here only shrinks"


HEADER = """// A machine as a table.
//   one   the first
//   two   the second
static constexpr std::tuple kRows{
    on<Begin>({ROW}),
};
"""


@pytest.mark.parametrize("row, found", [
    (".one = ignored", "Begin: no cell for two"),
    (".three = &L::go, .others = ignored", "Begin: there is no state three"),
])
def test_a_row_without_a_cell_or_with_an_unknown_state_is_found(row, found):
    with pytest.raises(states_page.Wrong, match=re.escape(found)):
        states_page.table_of(HEADER.replace("ROW", row))


def test_a_comparison_is_found(tmp_path):
    (tmp_path / "a_ending.cpp").write_text("if (state_ ==\n  State::kOne || job.state() != Job::State::kTwo) return;\n"
                                           "if (State::kOne == state_ || member_state_ == MemberState::kReady) return;\n")
    (tmp_path / "a_table.h").write_text("state_ == State::kOne")
    assert comparisons(tmp_path, "a") == 3
