"""A source includes what it uses. The precompiled header hides a missing include from the compiler, so this looks for the
names that it brings: each must come from an include of the file itself, or of a header of ours that it includes."""

import pathlib
import re

import floors
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRECOMPILED = "src/base/precompiled.h"

# What each header of the precompiled one is included for. <cstddef>, <cstdint> and <utility> come with all others.
NAMES = {
    "fmt/core.h": r"\bfmt::",
    "algorithm": r"\bstd::(sort|stable_sort|find_if|find_if_not|any_of|all_of|none_of|count_if|min_element|max_element|transform|"
                 r"remove_if|lower_bound|upper_bound|clamp|copy_if|nth_element|minmax|adjacent_find|mismatch|is_sorted)\b|"
                 r"\bstd::ranges::(sort|find|find_if|any_of|all_of|none_of|count|count_if|max_element|min_element|copy|copy_if|"
                 r"transform|contains|equal|lower_bound|for_each)\b",
    "array": r"\bstd::(array|to_array)\b",
    "chrono": r"\bstd::chrono\b",
    "deque": r"\bstd::deque\b",
    "expected": r"\bstd::(expected|unexpected)\b",
    "functional": r"\bstd::(function|move_only_function|ref|cref|less|greater|hash|invoke|plus)\b",
    "limits": r"\bstd::numeric_limits\b",
    "map": r"\bstd::(map|multimap)\b",
    "memory": r"\bstd::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this)\b",
    "optional": r"\bstd::(optional|nullopt|make_optional)\b",
    "set": r"\bstd::(set|multiset)\b",
    "span": r"\bstd::span\b",
    "string": r"\bstd::(string|to_string|stoi|stol|stoll|stoul|stod)\b",
    "string_view": r"\bstd::string_view\b",
    "variant": r"\bstd::(variant|visit|monostate|holds_alternative|get_if)\b",
    "vector": r"\bstd::vector\b",
}
# A header that the standard says to bring another one's names along.
BRINGS = {"string": {"string_view"}, "fmt/args.h": {"fmt/core.h"}, "fmt/format-inl.h": {"fmt/core.h"}}


def missing_includes(sources):
    found = []
    for path, source in sources.items():
        if not path.endswith((".cpp", ".h")):
            continue
        included = {name for _, name in floors.reach(path, sources)}
        included |= {more for name in included for more in BRINGS.get(name, ())}
        for header, names in NAMES.items():
            if header not in included and (match := re.search(names, source.code)):
                line = source.code.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line}: {match.group(0)} needs #include <{header}>")
    return found


@pytest.fixture(scope="module")
def sources():
    return floors.read_sources(ROOT)


def test_every_source_includes_what_the_precompiled_header_would_hide(sources):
    missing = missing_includes(sources)
    assert not missing, "\n" + "\n".join(missing)


def test_the_names_of_each_precompiled_header_are_known(sources):
    headers = {name for _, _, name in sources[PRECOMPILED].includes}
    assert headers - {"cstddef", "cstdint", "utility"} == set(NAMES)


@pytest.mark.parametrize("header", NAMES)
def test_a_missing_include_is_found(sources, header):
    """For each header: a file that includes it itself is read without that line."""
    def reads(path):
        own = {name for _, _, name in sources[path].includes}
        others = {name for chain, name in floors.reach(path, sources) if " > " in chain}
        others |= {more for name in own | others for more in BRINGS.get(name, ())}
        return header in own and header not in others and re.search(NAMES[header], sources[path].code)

    path = next(path for path in sources if path.endswith((".cpp", ".h")) and path != PRECOMPILED and reads(path))
    text = (ROOT / path).read_text().replace(f"#include <{header}>\n", "")
    broken = sources | {path: floors.Source(path, text)}
    assert [line for line in missing_includes(broken) if line.startswith(f"{path}:") and f"<{header}>" in line]


ROOMS = ("cli/", "health/", "rendezvous/", "src/")
# Made into GPU images by their own script, or into objects for other releases of glibc.
OTHERWISE_BUILT = ("health/gpu/probe/oldest/",)


def nobody_uses(sources, lists):
    """The files of the rooms that no CMakeLists.txt above them names, or that nothing includes."""
    included = {name for source in sources.values() for _, _, name in source.includes}
    found = []
    for path in sources:
        file = pathlib.PurePath(path)
        if not path.startswith(ROOMS) or path.startswith(OTHERWISE_BUILT) or path == PRECOMPILED:
            continue
        if file.suffix == ".h":
            is_used = path in included or file.name in included
        else:
            named = re.compile(rf"(?<![\w-]){re.escape(file.name)}(?![\w-])")
            is_used = any(named.search(lists.get(str(folder), "")) for folder in file.parents)
        if not is_used:
            found.append(path)
    return found


@pytest.fixture(scope="module")
def lists():
    return {str(path.parent.relative_to(ROOT)): path.read_text()
            for room in ROOMS for path in (ROOT / room).rglob("CMakeLists.txt")}


def test_every_source_is_built_and_every_header_included(sources, lists):
    assert nobody_uses(sources, lists) == []


def test_a_source_that_nothing_builds_is_found(sources, lists):
    planted = dict(sources)
    planted["src/base/orphan.cpp"] = planted["src/base/orphan.h"] = sources["src/base/text.cpp"]
    assert sorted(nobody_uses(planted, lists)) == ["src/base/orphan.cpp", "src/base/orphan.h"]


MOST_HEADERS = 60


def wide_headers(sources, most=MOST_HEADERS):
    """Headers of the rooms that bring more than `most` of ours: what changes below them compiles too much anew."""
    found = []
    for path in sources:
        if path.startswith(ROOMS) and path.endswith(".h") and not path.endswith("_test_support.h"):
            brings = {name for _, name in floors.reach(path, sources) if name in sources and name != path}
            if len(brings) > most:
                found.append(f"{path}: {len(brings)} headers of ours")
    return found


def test_no_header_brings_many_others(sources):
    assert wide_headers(sources) == []


def test_a_header_that_brings_many_others_is_found():
    planted = {"src/a.h": '#include "src/b.h"\n#include <map>\n', "src/b.h": '#include "src/c.h"\n', "src/c.h": ""}
    sources = {path: floors.Source(path, text) for path, text in planted.items()}
    assert wide_headers(sources, most=1) == ["src/a.h: 2 headers of ours"]
    assert wide_headers(sources, most=2) == []
