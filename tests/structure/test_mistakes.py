"""The mistakes that the simulator and the fuzzer must find stand in tests/mistakes.py, and nowhere in the product."""

import pathlib
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
                assert "mutant" not in text and '#include "tests/' not in text, path


@pytest.mark.parametrize("program", mistakes.MISTAKES)
def test_every_mistake_still_finds_its_place(program):
    for file in {mistake.file for mistake in mistakes.MISTAKES[program]}:
        source = (ROOT / file).read_text()
        assert mistakes.planted(program, file, source).count("\n") > source.count("\n")


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
