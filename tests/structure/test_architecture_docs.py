"""docs/architecture.md answers where something is decided and where a change goes, with paths that exist, and names
whatever polls, by the names of our constants. Each folder of sources says in a README what it is about."""

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


TOPS = ["src", "cli", "rendezvous", "health"]
# A pause, or a timer that begins again: our constants of such times are called so.
POLLS = re.compile(r"sleep_for\(|poll\(nullptr, 0|start\(std::max\(lease\.renewal_ms|"
                   r"\b(start|wait|plan_look)\([^;{]*\bk(\w*Look|Every|Hold|AMoment|Another|Between)\w*")


def sources(root):
    for top in TOPS:
        for file in sorted((root / top).rglob("*.cpp")):
            if not re.search(r"_test\b|_test_", file.name):
                yield file


def unnamed_polls(root):
    """Files in which a loop looks, and that docs/architecture.md does not name."""
    page = (root / "docs/architecture.md").read_text()
    found = [file.relative_to(root).as_posix() for file in sources(root) if POLLS.search(file.read_text())]
    return found, [file for file in found if file not in page]


def test_the_page_names_each_place_that_polls():
    found, unnamed = unnamed_polls(ROOT)
    assert len(found) >= 10 and unnamed == []


@pytest.mark.parametrize("line", [
    "std::this_thread::sleep_for(kBetween);", "poll(nullptr, 0, 10);", "timer_.start(kLookMs, [this] { look(); });",
    "timer_.start(std::max(lease.renewal_ms(), kShortestLookMs), [this] { look(); });", "timer_.start(kEveryMs, [this] { ask(); });",
])
def test_a_place_that_polls_and_has_no_row_is_found(tmp_path, line):
    for path, text in {"src/a.cpp": line, "docs/architecture.md": ""}.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    assert unnamed_polls(tmp_path)[1] == ["src/a.cpp"]


def readmes(root):
    """What is wrong with the READMEs of the folders of sources, one line each."""
    broken = []
    folders = {file.parent for top in TOPS for file in (root / top).rglob("*.h")}
    for folder in sorted(folders):
        name, page = folder.relative_to(root).as_posix(), folder / "README.md"
        lines = page.read_text().splitlines() if page.exists() else []
        kinds = [re.match(r"- (Must not know:|Begin:|)", line) for line in lines[2:]]
        if [kind and kind[1] for kind in kinds] != ["", "Must not know:", "Begin:"] or lines[:2] != [f"# {name}", ""]:
            broken.append(f"{name}/README.md: it is to say in five lines what is decided, what is not known, where to begin")
            continue
        for word in re.findall(r"`([\w./-]+)`", "\n".join(lines)):
            base = root if word.split("/")[0] in [*TOPS, "tests"] else folder
            if re.search(r"[./]", word) and not any(base.glob(f"{word}*")):
                broken.append(f"{name}/README.md: there is no {word}")
    return broken


def test_each_folder_says_what_it_decides_and_where_to_begin():
    assert readmes(ROOT) == []


@pytest.mark.parametrize("text, found", [
    ("# src/a\n\n- Decides b.\n- Must not know: c.\n", "in five lines"),
    ("# src/b\n\n- Decides b.\n- Must not know: c.\n- Begin: `a.h`.\n", "in five lines"),
    ("# src/a\n\n- Decides b.\n- Must not know: c.\n- Begin: `gone.h`.\n", "there is no gone.h"),
    ("# src/a\n\n- Decides b.\n- Must not know: `src/b/c`.\n- Begin: `a.h`.\n", "there is no src/b/c"),
    ("", "in five lines"),
])
def test_a_folder_that_says_less_is_found(tmp_path, text, found):
    (tmp_path / "src/a").mkdir(parents=True)
    (tmp_path / "src/a/a.h").write_text("")
    (tmp_path / "src/a/README.md").write_text(text)
    broken = readmes(tmp_path)
    assert len(broken) == 1 and found in broken[0]
