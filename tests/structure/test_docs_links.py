"""Every link in the documents leads to a file, and to a heading in it, that is there."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def anchors(text):
    """The names that GitHub gives to the headings of a page."""
    found = []
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.append(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


def check(root):
    root = pathlib.Path(root)
    broken = []
    for page in sorted([*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("examples/**/*.md"), *root.glob("tests/**/*.md")]):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
            file, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", file):
                continue
            target = (page.parent / file) if file else page
            if not target.exists():
                broken.append(f"{page.relative_to(root)}: there is no {link}")
            elif anchor and anchor not in anchors(target.read_text()):
                broken.append(f"{page.relative_to(root)}: no heading is called {link}")
    return broken


def test_every_link_of_the_docs_leads_somewhere():
    assert check(ROOT) == []


@pytest.mark.parametrize("text, found", [
    ("[here](#the-end), [there](docs/a.md#one-two), [web](https://example.com/#x), `[code](gone.md)`\n\n## The end\n", []),
    ("[here](gone.md)\n", ["README.md: there is no gone.md"]),
    ("[here](#no-such)\n", ["README.md: no heading is called #no-such"]),
    ("[here](docs/a.md#one)\n", ["README.md: no heading is called docs/a.md#one"]),
    ("[here](docs/a.md#in-code)\n", ["README.md: no heading is called docs/a.md#in-code"]),
])
def test_a_link_that_leads_nowhere_is_found(tmp_path, text, found):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A page\n\n## One: `two`\n\n```\n# in code\n```\n")
    (tmp_path / "README.md").write_text(text)
    assert check(tmp_path) == found


@pytest.mark.parametrize("page", ["docs/b.md", "examples/job/README.md", "tests/peers/README.md"])
def test_pages_that_stand_elsewhere_are_read_too(tmp_path, page):
    (tmp_path / page).parent.mkdir(parents=True)
    (tmp_path / page).write_text("[here](gone.md)\n")
    assert check(tmp_path) == [f"{page}: there is no gone.md"]
