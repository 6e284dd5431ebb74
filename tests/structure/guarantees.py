"""docs/guarantees.md against the tests: check(root) names each line whose test is not there.

A guarantee is a table row whose last column names its tests, each between backticks:
`unit: a sentence` is a TEST_CASE, `tests/system/test_x.py::test_y` a function of pytest.
"""

import ast
import pathlib
import re


def check(root):
    root = pathlib.Path(root)
    unit = unit_tests(root)
    broken = []
    rows = read_rows((root / "docs/guarantees.md").read_text())
    if not rows:
        broken.append("docs/guarantees.md: promises nothing")
    promised = {}
    for number, behaviour, cell in rows:
        where = f"docs/guarantees.md:{number}"
        tests = re.findall(r"`([^`]+)`", cell)
        if not behaviour:
            broken.append(f"{where}: says no behaviour")
        if not tests:
            broken.append(f"{where}: names no test: {behaviour}")
        if behaviour in promised:
            broken.append(f"{where}: was promised in line {promised[behaviour]} already: {behaviour}")
        promised[behaviour] = number
        for test in tests:
            if wrong := missing(test, unit, root):
                broken.append(f"{where}: {wrong}")
    return broken


def read_rows(text):
    """(line number, behaviour, last column) of every table row but the headings."""
    lines = text.splitlines()
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("|") or re.fullmatch(r"[\s|:-]+", line):
            continue
        if number < len(lines) and re.fullmatch(r"\s*\|[\s|:-]+", lines[number]):
            continue  # a heading: the ruler follows it
        # A bar inside backticks, or behind a backslash, is no border.
        cells = re.findall(r"((?:`[^`]*`|\\\||[^|`])*)\|", line.strip()[1:] + "|")
        cells = [cell.strip() for cell in cells if cell.strip()]
        rows.append((number, cells[0] if len(cells) > 1 else "", cells[-1] if cells else ""))
    return rows


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
