"""The mistakes that simulator, fuzzer and gate must find stand in tests/mistakes.py, and nowhere in the product."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import mistakes  # noqa: E402


def test_no_source_of_the_product_knows_of_tests():
    for folder in ("cli", "rendezvous", "health", "src"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cpp", ".h", ".c") and not path.stem.endswith("_test"):
                text = path.read_text()
                assert not any(word in text for word in ("mutant", *mistakes.SEAMS, '#include "tests/')), path


@pytest.mark.parametrize("program", mistakes.MISTAKES)
def test_every_mistake_still_finds_its_place(program):
    for file in {mistake.file for mistake in mistakes.MISTAKES[program]}:
        source = (ROOT / file).read_text()
        assert mistakes.planted(program, file, source).count("\n") > source.count("\n")


@pytest.mark.parametrize("program", mistakes.MISTAKES)
def test_a_mistake_is_off_unless_its_own_letter_or_word_is_asked_for(program):
    for mistake in mistakes.MISTAKES[program]:
        asked = set(re.findall(r"""(mutant|planted)::is\(['"](\w+)['"]\)""", mistake.becomes))
        seam = "planted" if program == "elastic-run-planted" else "mutant"
        assert asked == ({(seam, mistake.letter)} if mistake.letter else set()), mistake


@pytest.mark.parametrize("program", mistakes.MISTAKES)
def test_a_source_with_a_mistake_includes_what_switches_it_and_nothing_else_of_tests(program):
    for file in {mistake.file for mistake in mistakes.MISTAKES[program]}:
        text = mistakes.planted(program, file, (ROOT / file).read_text())
        wanted = [header for word, header in mistakes.SEAMS.items() if word in text]
        assert text.startswith("".join(f'#include "{header}"\n' for header in wanted) + f'#line 1 "{file}"\n')
        assert len(wanted) <= 1 and all((ROOT / header).exists() for header in wanted), file


def test_the_gates_eight_mistakes_have_words_that_name_a_directory_and_are_told():
    found = [mistake for mistake in mistakes.MISTAKES["elastic-run-planted"] if mistake.meaning]
    words = [mistake.letter for mistake in found]
    assert len(words) == len(set(words)) == 8
    assert all(re.fullmatch("[a-z0-9_]+", word) for word in words)
    assert {mistake.letter for mistake in mistakes.MISTAKES["elastic-run-planted"]} == set(words)


def test_a_mistake_whose_place_has_gone_is_an_error(tmp_path):
    result = subprocess.run([sys.executable, ROOT / "tests/mistakes.py", "store_fuzzer_planted", "rendezvous/store/codec.cpp",
                             tmp_path, tmp_path / "out.cpp"], capture_output=True, text=True, check=False)
    assert result.returncode != 0
    (tmp_path / "rendezvous/store").mkdir(parents=True)
    (tmp_path / "rendezvous/store/codec.cpp").write_text("int nothing;\n")
    result = subprocess.run([sys.executable, ROOT / "tests/mistakes.py", "store_fuzzer_planted", "rendezvous/store/codec.cpp",
                             tmp_path, tmp_path / "out.cpp"], capture_output=True, text=True, check=False)
    assert result.returncode == 1 and "write the mistake anew" in result.stderr
    assert not (tmp_path / "out.cpp").exists()
