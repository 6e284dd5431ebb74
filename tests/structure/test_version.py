"""The version stands in CMakeLists.txt; everything else follows it, and CHANGELOG.md has an entry for it."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Sources in which a version would be a second place.
SOURCES = ["cli", "cmake", "packaging", "scripts", "src", "health", "rendezvous", "examples"]
RELEASE = re.compile(r"^## (\S+) \((not released|\d{4}-\d\d-\d\d)\)$", flags=re.M)


def version(root):
    return re.search(r"^project\(.* VERSION (\d+\.\d+\.\d+) ", (root / "CMakeLists.txt").read_text(),
                     flags=re.M).group(1)


def check(root):
    """What is wrong with versions below `root`, one line each."""
    wrong = []
    ours = version(root)
    changelog = (root / "CHANGELOG.md").read_text()
    releases = RELEASE.findall(changelog)
    if len(releases) != len(re.findall(r"^## ", changelog, flags=re.M)):
        wrong.append("CHANGELOG.md: a heading is not like '## 1.2.3 (2027-03-01)' or '## 1.2.3 (not released)'")
    numbers = [tuple(map(int, number.split("."))) for number, _ in releases]
    if not releases or releases[0][0] != ours:
        wrong.append(f"CHANGELOG.md: the first entry is not that of {ours}, the version in CMakeLists.txt")
    if numbers != sorted(set(numbers), reverse=True):
        wrong.append("CHANGELOG.md: the entries are not in order, newest first, one to a version")
    if any(date == "not released" for _, date in releases[1:]):
        wrong.append("CHANGELOG.md: only the first entry may be '(not released)'")
    for number, text in zip((number for number, _ in releases), re.split(r"^## .*$", changelog, flags=re.M)[1:]):
        if "\n- " not in text:
            wrong.append(f"CHANGELOG.md: the entry of {number} says nothing")
    title = (root / "man/elastic-run.1").read_text().splitlines()[1]
    if f'"elastic\\-run {ours}"' not in title:
        wrong.append(f"man/elastic-run.1: not the page of {ours}: {title}")
    for name in SOURCES:
        for path in sorted((root / name).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and "_test." not in path.name:
                code = re.sub(r"//.*", "", path.read_text(errors="replace"))  # a comment may give an example
                # 10.0.1.0 and 0.1.0.5 are no versions of ours.
                if re.search(rf"(?<![\d.]){re.escape(ours)}(?![\d.]*\d)", code):
                    wrong.append(f"{path.relative_to(root)}: the version {ours} stands there, too")
    return wrong


def test_the_version_stands_in_one_place_and_the_changelog_has_its_entry():
    assert check(ROOT) == []


# --- The check is seen to fail. ---------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    files = {
        "CMakeLists.txt": "project(x VERSION 1.2.0 LANGUAGES C)\n",
        "CHANGELOG.md": "# Changelog\n\n## 1.2.0 (not released)\n\n- new\n\n## 1.1.0 (2027-01-02)\n\n- old\n",
        "man/elastic-run.1": '.\\" made\n.TH ELASTIC\\-RUN 1 "2027-01-01" "elastic\\-run 1.2.0" "User Commands"\n',
        "src/a.cpp": 'said = "1.2.0.1 and 11.2.0";  // 1.2.0\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def change(tree, name, old, new):
    text = (tree / name).read_text()
    assert old in text
    (tree / name).write_text(text.replace(old, new))


def test_a_tree_that_agrees_is_accepted(tree):
    assert check(tree) == []


@pytest.mark.parametrize("name, old, new, found", [
    ("CMakeLists.txt", "1.2.0", "1.3.0", "the first entry is not that of 1.3.0"),
    ("CHANGELOG.md", "- new\n", "", "the entry of 1.2.0 says nothing"),
    ("CHANGELOG.md", "1.1.0 (2027-01-02)", "1.1.0 (not released)", "only the first entry"),
    ("CHANGELOG.md", "1.1.0 (2027-01-02)", "1.1.0, January", "a heading is not like"),
    ("CHANGELOG.md", "1.1.0", "1.4.0", "not in order"),
    ("man/elastic-run.1", "1.2.0", "1.1.0", "not the page of 1.2.0"),
    ("src/a.cpp", "1.2.0.1", "v1.2.0.", "src/a.cpp: the version 1.2.0 stands there"),
])
def test_what_does_not_agree_is_found(tree, name, old, new, found):
    change(tree, name, old, new)
    assert any(found in line for line in check(tree)), check(tree)
