"""Every line of docs/guarantees.md has a test that holds it."""

import pathlib

import guarantees
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_guarantee_has_its_test():
    broken = guarantees.check(ROOT)
    assert not broken, "\n" + "\n".join(broken)


# --- The check is seen to fail. ---------------------------------------------------------------


UNIT = r'''
#include <doctest/doctest.h>
TEST_CASE("a plain sentence") {}
TEST_CASE(
    "a sentence over "
    "two lines") {}
TEST_CASE("a \"quoted\" word") {}
TEST_CASE_FIXTURE(Loop, "with a fixture") {}
TEST_CASE("not run" * doctest::skip()) {}
// TEST_CASE("commented out") {}
'''
PYTHON = '''
import pytest
def test_one(): pass
@pytest.mark.parametrize("x", [1])
def test_many(x): pass
@pytest.mark.skip(reason="later")
def test_skipped(): pass
@pytest.mark.requires_gpu
def test_gpu(): pass
class TestGroup:
    def test_inside(self): pass
def helper(): pass
# def test_gone(): pass
'''


@pytest.fixture
def verdict(tmp_path):
    """verdict((sentence, [test, ...]), ...): what check() says of these promises and their tests."""
    for path, text in {"src/base/x_test.cpp": UNIT, "tests/system/test_x.py": PYTHON,
                       "tests/other/test_x.py": PYTHON}.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)

    def judge(*rows, page=None):
        (tmp_path / "docs").mkdir(exist_ok=True)
        promised = [sentence for sentence, _ in rows] if page is None else page
        (tmp_path / "docs/guarantees.md").write_text(
            "# Guarantees\n\nText, `not a test`.\n\n" + "".join(f"- {sentence}\n" for sentence in promised))
        (tmp_path / "tests/guarantees.txt").write_text("# What holds them.\n\n## Some\n\n" + "".join(
            f"{sentence}\n" + "".join(f"  {test}\n" for test in tests) for sentence, tests in rows))
        return guarantees.check(tmp_path)

    return judge


PLAIN = ["unit: a plain sentence"]


@pytest.mark.parametrize("test", [
    "unit: a plain sentence", "unit: a sentence over two lines", 'unit: a "quoted" word',
    "unit: with a fixture", "tests/system/test_x.py::test_one", "tests/system/test_x.py::test_many",
    "tests/system/test_x.py::test_many[1]", "tests/system/test_x.py::test_gpu",
    "tests/system/test_x.py::TestGroup::test_inside",
])
def test_a_test_that_exists_is_accepted(verdict, test):
    assert verdict(("it works", [test])) == []


@pytest.mark.parametrize("test,why", [
    ("unit: a plain sentenc", "no TEST_CASE"), ("unit: commented out", "no TEST_CASE"),
    ("unit: not run", "is skipped"), ("a plain sentence", "neither"),
    ("tests/system/test_x.py::test_gone", "no such test"),
    ("tests/system/test_x.py::helper", "no such test"),
    ("tests/system/test_x.py::test_inside", "no such test"),
    ("tests/system/test_y.py::test_one", "no such test"),
    ("tests/other/test_x.py::test_one", "no such test"),
    ("tests/system/test_x.py::test_skipped", "is skipped"),
])
def test_a_test_that_is_gone_or_skipped_is_found(verdict, test, why):
    broken = verdict(("it works", PLAIN), ("it is fast", [test]))
    assert len(broken) == 1 and broken[0].startswith("tests/guarantees.txt:7: ") and why in broken[0]


def test_every_test_of_a_line_is_looked_for(verdict):
    assert "unit: b" in verdict(("it works", [*PLAIN, "unit: b"]))[0]


def test_a_line_without_a_test_is_found(verdict):
    assert "names no test" in verdict(("it works", []))[0]
    broken = verdict(("it works", PLAIN), page=["it works", "it is fast"])
    assert broken == ["docs/guarantees.md:6: tests/guarantees.txt has no tests of it: it is fast"]


def test_tests_of_a_line_that_is_gone_are_found(verdict):
    broken = verdict(("it works", PLAIN), ("it is fast", PLAIN), page=["it works"])
    assert broken == ["tests/guarantees.txt:7: docs/guarantees.md does not promise it: it is fast"]


def test_a_promise_made_twice_is_found(verdict):
    broken = verdict(("it works", PLAIN), ("it works", PLAIN))
    assert "line 5 already" in broken[0] and "stands there twice" in broken[1]


def test_an_empty_page_is_found(verdict):
    assert verdict() == ["docs/guarantees.md: promises nothing"]
