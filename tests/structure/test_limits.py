"""docs/limits.md against the rows in the sources, and the reader of these rows."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import limits_page  # noqa: E402

HEADER = """#pragma once
// | a key | {kKeyBytes}, with its `/` | that connection
// is closed |
inline constexpr std::size_t kKeyBytes = 8'192;
// | a time; a number; another | {kTimeMs}; {kNumber}; {kNumber:bytes} | it waits |
inline constexpr std::int64_t kTimeMs = 1'500;
inline constexpr std::size_t kNumber = 2 * kKeyBytes;
"""


def tree(folder, header):
    (folder / "rendezvous/store").mkdir(parents=True)
    (folder / "rendezvous/store/limits.h").write_text(header)
    (folder / "docs").mkdir()
    (folder / "docs/limits.md").write_text(f"Limits.\n{limits_page.BEGIN}\nold\n{limits_page.END}\nMore.\n")
    return folder


def test_the_page_is_what_the_sources_say():
    assert (ROOT / "docs/limits.md").read_text() == limits_page.page(ROOT), "run scripts/generate-docs"


def test_a_row_has_the_values_of_its_constants_in_their_units(tmp_path):
    page = limits_page.page(tree(tmp_path, HEADER))
    assert "| a key | 8 KiB, with its `/` | that connection is closed |" in page
    assert "| a time; a number; another | 1.5 s; 16,384; 16 KiB | it waits |" in page
    assert page.startswith("Limits.\n") and page.endswith("\nMore.\n") and "old" not in page


@pytest.mark.parametrize("old, new, found", [
    ("{kTimeMs}; ", "", "kTimeMs is in no row"),
    ("{kKeyBytes}", "{kKeyByte}", "{kKeyByte}: no such constant is known"),
    ("{kNumber:bytes}", "{kNumber:bits}", "{kNumber:bits}: no such constant is known, or no such unit"),
    ("{kKeyBytes}", "{kKeyBytes }", "a name in braces is not as"),
    ("= 2 * kKeyBytes", "= sizeof(int)", "{kNumber}: no such constant is known"),
    ("1'500;", "1'500;\ninline constexpr int kMore =\n    sizeof(int);", "kMore is in no row"),
    ("| it waits |", "| it waits", "does not end with"),
    ("| it waits |", "| it | waits |", "has 4 cells, not 3"),
])
def test_a_row_that_does_not_fit_is_found(tmp_path, old, new, found):
    assert old in HEADER
    wrong = tree(tmp_path, HEADER.replace(old, new))
    with pytest.raises(limits_page.Wrong, match=re.escape(found)):
        limits_page.page(wrong)


def test_a_constant_that_is_broken_over_two_lines_has_its_value(tmp_path):
    page = limits_page.page(tree(tmp_path, HEADER.replace("= 1'500", "=\n    2'500")))
    assert "| a time; a number; another | 2.5 s;" in page


def test_bounds_of_a_folder_without_a_section_and_a_name_that_two_folders_have_are_found(tmp_path):
    folder = tree(tmp_path, HEADER)
    (folder / "cli").mkdir()
    (folder / "cli/limits.h").write_text("// | a | {kTimeMs} | b |\ninline constexpr int kTimeMs = 7;\n")
    with pytest.raises(limits_page.Wrong, match="another limits.h has a kTimeMs"):
        limits_page.page(folder)
    (folder / "cli/limits.h").rename(folder / "cli/bounds.h")
    assert "| a | 7 ms | b |" in limits_page.page(folder)
    (folder / "cli/elsewhere").mkdir()
    (folder / "cli/bounds.h").rename(folder / "cli/elsewhere/bounds.h")
    with pytest.raises(limits_page.Wrong, match="cli/elsewhere: it has bounds, and is in no section"):
        limits_page.page(folder)
