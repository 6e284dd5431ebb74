"""cmake/units.py: which sources are compiled together."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))

import units  # noqa: E402


def alone(first, second):
    """Whether two files of one folder are compiled one by one."""
    names = units.units({"src/net/a_test.cpp": first, "src/net/b_test.cpp": second}, 1000)
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
    text = "\n" * 500
    names = units.units({"src/net/a_test.cpp": text, "src/base/b_test.cpp": text, "src/net/c_test.cpp": text,
                         "src/net/d_test.cpp": text}, 1000)
    assert names == {"src/net/a_test.cpp": "src_net_0", "src/base/b_test.cpp": "src_base_0",
                     "src/net/c_test.cpp": "src_net_0", "src/net/d_test.cpp": "src_net_1"}


def test_a_file_that_is_replaced_by_one_with_a_mistake_stays_alone_and_so_does_what_is_no_cpp():
    planted = sorted(units.PLANTED)[0]
    folder = planted.rpartition("/")[0]
    sources = {planted: "", f"{folder}/b.cpp": "", f"{folder}/c.cpp": "", f"{folder}/d.S": ""}
    names = units.units(sources, 1000)
    assert [path for path, name in names.items() if path == name] == [planted, f"{folder}/d.S"]
    assert names[f"{folder}/b.cpp"] == names[f"{folder}/c.cpp"]


def test_a_unit_is_written_without_the_path_of_the_clone_and_only_if_it_is_another(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"src/{name}.cpp").parent.mkdir(exist_ok=True)
        (tmp_path / f"src/{name}.cpp").write_text("class Host;\n" if name == "c" else "int Host();\n" if name == "a" else "")

    def written():
        return list(units.write_units(tmp_path, tmp_path / "units", "net", 100, ["src/a.cpp", "src/b.cpp", "src/c.cpp"]))

    unit = tmp_path / "units/net.src_0.cpp"
    assert written() == [unit, tmp_path / "src/c.cpp"]
    assert unit.read_text() == units.IN_A_UNIT + '#include "src/a.cpp"\n#include "src/b.cpp"\n'
    os.utime(unit, (0, 0))
    assert written()[0] == unit and unit.stat().st_mtime == 0
    unit.write_text("")
    assert written()[0].read_text() != ""


@pytest.mark.parametrize("is_test, most_lines", [(True, 1000), (False, 400)])
def test_most_sources_are_compiled_with_others(is_test, most_lines):
    tops = ("cli", "health", "rendezvous", "src")
    paths = [path for top in tops for path in sorted((ROOT / top).rglob("*.cpp")) if path.stem.endswith("_test") == is_test]
    names = units.units({str(path.relative_to(ROOT)): path.read_text() for path in paths}, most_lines)
    assert len(paths) > 200 and len(set(names.values())) < len(paths) / 2
