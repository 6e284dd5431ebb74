"""tests/units.py: which unit tests are compiled together."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import units  # noqa: E402


def alone(first, second):
    """Whether two tests of one folder are compiled one by one."""
    names = units.units({"src/net/a_test.cpp": first, "src/net/b_test.cpp": second})
    return names["src/net/a_test.cpp"] != names["src/net/b_test.cpp"]


@pytest.mark.parametrize("declaration", [
    "struct Host {\n};\n",
    "class Host : public Base {\n};\n",
    "enum class Host { kUp };\n",
    "using Host = std::string;\n",
    "#define Host 1\n",
    "constexpr int Host = 1;\n",
    "const std::vector<int> Host{1};\n",
    "char Host[2];\n",
    "Listener* Host(int);\n",
    "template <class T> T Host(const T& t) {\n}\n",
    "template <class T>\nT Host(const T& t) {\n}\n",
    "std::map<int, std::string> Host(\n    int a) {\n}\n",
])
def test_a_name_of_one_file_that_another_says_keeps_them_apart(declaration):
    assert alone(declaration, declaration)
    assert alone(declaration, "TEST_CASE() {\n  const Host host;\n}\n")
    assert alone("TEST_CASE() {\n  const Host host;\n}\n", declaration)
    assert not alone(declaration, 'TEST_CASE("a Host") {\n  name.Host = other::Host;  // Host\n}\n')


def test_what_is_declared_within_a_test_keeps_nothing_apart():
    local = "TEST_CASE() {\n  struct Host {};\n  const int at = 1;\n}\n"
    assert not alone(local, local)


def test_a_unit_has_files_of_one_folder_and_so_many_lines():
    text = "\n" * (units.MOST_LINES // 2)
    names = units.units({"src/net/a_test.cpp": text, "src/base/b_test.cpp": text, "src/net/c_test.cpp": text,
                         "src/net/d_test.cpp": text})
    assert names == {"src/net/a_test.cpp": "src_net_0", "src/base/b_test.cpp": "src_base_0",
                     "src/net/c_test.cpp": "src_net_0", "src/net/d_test.cpp": "src_net_1"}


def test_most_tests_are_compiled_with_others():
    tops = ("cli", "health", "rendezvous", "src")
    paths = [path for top in tops for path in sorted((ROOT / top).rglob("*_test.cpp"))]
    names = units.units({str(path.relative_to(ROOT)): path.read_text() for path in paths})
    assert len(paths) > 200 and len(set(names.values())) < len(paths) / 2
