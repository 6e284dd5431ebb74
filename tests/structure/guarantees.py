"""docs/guarantees.md against the tests: check(root) names each line whose test is not there.

A guarantee is a line `- sentence` of the page. tests/guarantees.txt has the sentence again, and below it its tests, each
indented: `unit: a sentence` is a TEST_CASE, `tests/system/test_x.py::test_y` a function of pytest. Its section Flags has
the flags of cli/flag_table.cpp instead of sentences.
"""

import ast
import pathlib
import re


PAGE, TESTS = "docs/guarantees.md", "tests/guarantees.txt"


def check(root):
    root = pathlib.Path(root)
    unit = unit_tests(root)
    promises = read_page((root / PAGE).read_text())
    entries = read_tests((root / TESTS).read_text())
    held = {behaviour for _, section, behaviour, _ in entries if section != "Flags"}
    broken = [] if promises else [f"{PAGE}: promises nothing"]
    promised = {}
    for number, behaviour in promises:
        where = f"{PAGE}:{number}"
        if behaviour not in held:
            broken.append(f"{where}: {TESTS} has no tests of it: {behaviour}")
        if behaviour in promised:
            broken.append(f"{where}: was promised in line {promised[behaviour]} already: {behaviour}")
        promised.setdefault(behaviour, number)
    seen = set()
    for number, section, behaviour, tests in entries:
        where = f"{TESTS}:{number}"
        if section != "Flags" and behaviour not in promised:
            broken.append(f"{where}: {PAGE} does not promise it: {behaviour}")
        if behaviour in seen:
            broken.append(f"{where}: it stands there twice: {behaviour}")
        seen.add(behaviour)
        if not tests:
            broken.append(f"{where}: names no test: {behaviour}")
        for test in tests:
            if wrong := missing(test, unit, root):
                broken.append(f"{where}: {wrong}")
    return broken


def read_page(text):
    """(line number, sentence) of each promise."""
    return [(number, line[2:].strip()) for number, line in enumerate(text.splitlines(), 1) if line.startswith("- ")]


def read_tests(text):
    """(line number, section, sentence or flag, tests) of each entry."""
    section, entries = "", []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("  ") and entries:
            entries[-1][3].append(line.strip())
        elif line.strip() and not line.startswith("#"):
            entries.append((number, section, line.strip(), []))
    return entries


def missing(test, unit, root):
    """Why a test that is named cannot be relied upon; None if it can."""
    if test.startswith("unit: "):
        state = unit.get(test.removeprefix("unit: "))
        return {None: f"no TEST_CASE is called that: {test}",
                "skipped": f"is skipped: {test}", "runs": None}[state]
    file, _, function = test.partition("::")
    if not function:
        return f"neither `unit: sentence` nor `tests/.../test_x.py::test_y`: {test}"
    state = python_tests(root / file).get(re.sub(r"\[.*\]$", "", function))
    if pathlib.PurePath(file).parent.as_posix() not in ("tests/system", "tests/structure", "tests/gpu", "tests/peers"):
        state = None  # ctest would not run it
    return {None: f"no such test: {test}", "skipped": f"is skipped: {test}", "runs": None}[state]


def unit_tests(root):
    """{sentence: "runs" or "skipped"} of every TEST_CASE in a *_test.cpp."""
    found = {}
    for top in ("src", "cli", "rendezvous", "health", "tests"):
        for path in (root / top).rglob("*_test.cpp"):
            text = re.sub(r"^\s*//[^\n]*", "", path.read_text(errors="replace"), flags=re.M)
            for match in re.finditer(r"\b(?:TEST_CASE|TEST_CASE_FIXTURE|TEST_CASE_TEMPLATE|SCENARIO)\s*\("
                                     r"(?:\s*\w+\s*,)?\s*((?:\"(?:\\.|[^\"\\])*\"\s*)+)([^{]*)", text):
                parts = re.findall(r"\"((?:\\.|[^\"\\])*)\"", match[1])
                sentence = re.sub(r"\\(.)", r"\1", "".join(parts))
                found[sentence] = "skipped" if "doctest::skip" in match[2] else "runs"
    return found


def python_tests(path):
    """{function or Class::function: "runs" or "skipped"} of a file of pytest."""
    found = {}
    if not path.name.startswith("test_") or not path.is_file():
        return found

    def collect(body, prefix):
        for node in body:
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                skipped = any(re.search(r"mark\.(skip\b|xfail)", mark) for mark in marks)
                found[prefix + node.name] = "skipped" if skipped else "runs"

    collect(ast.parse(path.read_text()).body, "")
    return found
