"""The layout of the C++ and C sources: .clang-format, and the column at which lines end."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAST_COLUMN = 120
FOLDERS = ("cli", "rendezvous", "health", "src", "tests", "examples", "packaging")


def sources():
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".cpp", ".h", ".c"))


def clang_format(*files):
    return subprocess.run(["clang-format-14", "--dry-run", "-Werror", *files], cwd=ROOT, text=True, capture_output=True,
                          check=False)


def test_every_source_stands_as_clang_format_writes_it():
    assert len(sources()) > 500
    violations = clang_format(*sources()).stderr
    assert not violations, violations[:4000] + "\nremedy: clang-format-14 -i FILE"


def test_no_line_is_longer_than_the_limit():
    """clang-format leaves what it cannot break, such as a raw string; those are broken by hand."""
    long_lines = [f"{path.relative_to(ROOT)}:{number}" for path in sources()
                  for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
                  if len(line) > LAST_COLUMN]
    assert not long_lines, "longer than 120 columns: " + ", ".join(long_lines)


def test_a_source_that_stands_otherwise_is_found(tmp_path):
    (tmp_path / ".clang-format").write_text((ROOT / ".clang-format").read_text())
    wrong = tmp_path / "wrong.cpp"
    wrong.write_text("int  main( ){return 0;}\n")
    assert clang_format(wrong).returncode != 0
    wrong.write_text("int main() { return 0; }\n")
    assert clang_format(wrong).returncode == 0
