#!/usr/bin/env python3
"""Writes the tables of docs/limits.md from the rows in the sources.

A row is a comment above the constants that it is about: "// | what | the bound | what happens at it |". A constant's
name in braces stands for its value: {kStoreKeyBytes}. Names end in their units; {kName:bytes} says otherwise. Rows of
one bound each at which the same happens are one row of their section: "a; b | 1; 2 | both are refused".

    limits_page.py          writes docs/limits.md
    limits_page.py --check  fails where it is not what the sources say
"""

import pathlib
import re
import sys

# The sections of the page, with the folders whose rows they have.
SECTIONS = [
    ("Command line, workers and output", ["src/base", "src/process", "src/numa", "cli", "src/output", "src/report",
                                          "cli/run"]),
    ("Worker store", ["rendezvous/store"]),
    ("Nodes and coordinators", ["rendezvous/protocol", "rendezvous/election", "rendezvous/coordinator",
                                "rendezvous/trace", "rendezvous/agent", "rendezvous/events", "rendezvous/discovery",
                                "rendezvous/transport", "src/net", "src/status"]),
    ("Progress, tuning, timers, warm workers", ["health/progress", "health/tuning", "health/timers", "src/warm"]),
    ("Hangs and stacks", ["health/hang", "health/hang_evidence", "health/evidence", "health/evidence_reader",
                          "health/stacks", "health/stack_reader"]),
    ("Check of the nodes", ["health/messages", "health/check", "health/host", "health/gpu", "health/probe",
                            "health/report"]),
]
BEGIN = "<!-- The tables come from the sources: scripts/generate-docs. -->"
END = "<!-- End of the tables. -->"

PLACE = re.compile(r"\{(k\w+)(?::(\w+))?\}")
CONSTANT = re.compile(r"constexpr (?:[\w:]+ )+(k\w+) =\s+([^;]+);")
# The files of which each constant is a bound, and needs a row.
OF_BOUNDS = ("limits.h", "bounds.h")
UNITS = ("Bytes", "Ms", "Seconds")


class Wrong(Exception):
    """A row that cannot be read."""


def constants_of(text, known):
    """The whole numbers among the constants of a file, by name; those of `known` may be used in it."""
    values = {}
    for name, expression in CONSTANT.findall(text):
        plain = re.sub(r"(?<=\d)'(?=\d)", "", expression)
        plain = re.sub(r"(\d)(?:ULL|LL|UL|U|L)\b", r"\1", plain)
        plain = re.sub(r"std::(?:size_t|u?int\d+_t)\{(\d+)\}", r"\1", plain)
        plain = re.sub(r"\b[a-z]\w*::", "", plain)
        names = {**known, **values}
        plain = re.sub(r"\bk\w+\b", lambda word: str(names.get(word[0], word[0])), plain)
        if re.fullmatch(r"[\d\s*+<()-]+", plain):
            values[name] = eval(plain)
    return values


def text_of(value, unit):
    """A value as the page has it."""
    if unit == "Bytes":
        for size, word in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
            if value >= size and value % size == 0:
                return f"{value // size:,} {word}"
        return f"{value:,} bytes"
    if unit == "Ms":
        if value >= 120_000 and value % 60_000 == 0:
            return f"{value // 60_000:,} minutes"
        return f"{value / 1000:,.10g} s" if value >= 1000 else f"{value} ms"
    if unit == "Seconds":
        return f"{value:,} s"
    return f"{value:,}"


def unit_of(name):
    return next((unit for unit in UNITS if name.endswith(unit)), "")


def rows_of(text, place):
    """The rows of a file, each as its three cells with the braces, and the line in which it begins."""
    rows, row, begins = [], None, 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if row is None and line.startswith("// | "):
            row, begins = [], number
        if row is None:
            continue
        if not line.startswith("// "):
            raise Wrong(f"{place}:{begins}: the row does not end with \" |\"")
        row.append(line[3:])
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", " ".join(row))]
        if line.endswith(" |") and len(cells) > 4:
            if len(cells) != 5:
                raise Wrong(f"{place}:{begins}: the row has {len(cells) - 2} cells, not 3")
            rows.append((cells[1:-1], begins))
            row = None
    if row is not None:
        raise Wrong(f"{place}:{begins}: the row does not end with \" |\"")
    return rows


def sources(root):
    """The sources that have rows or are of bounds, with their sections, in the order of these."""
    found = {}
    for floor in ("cli", "rendezvous", "health", "src"):
        for file in sorted((root / floor).rglob("*")):
            if file.suffix not in (".h", ".cpp") or "_test" in file.stem:
                continue
            if file.name in OF_BOUNDS or "// | " in file.read_text():
                found.setdefault(file.parent.relative_to(root).as_posix(), []).append(file)
    for title, folders in SECTIONS:
        for folder in folders:
            for file in found.pop(folder, []):
                yield title, file
    for folder in found:
        raise Wrong(f"{folder}: it has bounds, and is in no section of scripts/limits_page.py")


def joined(rows):
    """The rows of a section; those of one bound each at which the same happens are one, in the first one's place."""
    found, places = [], {}
    for what, bound, happens in rows:
        place = places.get(happens)
        if ";" in what + bound:
            found.append([what, bound, happens])
        elif place is None:
            places[happens] = len(found)
            found.append([what, bound, happens])
        else:
            found[place][0] += f"; {what}"
            found[place][1] += f"; {bound}"
    return [f"| {' | '.join(cells)} |" for cells in found]


def tables(root):
    """The tables of all sections."""
    shared = {}
    for _, file in sources(root):
        if file.name != "limits.h":
            continue
        for name, value in constants_of(file.read_text(), shared).items():
            if shared.setdefault(name, value) != value:
                raise Wrong(f"{file.relative_to(root)}: another limits.h has a {name}, too")
    pages = {title: [] for title, _ in SECTIONS}
    for title, file in sources(root):
        text = file.read_text()
        place = file.relative_to(root)
        own = constants_of(text, shared)
        named = set()
        for cells, line in rows_of(text, place):
            def value(match, line=line):
                name, unit = match[1], match[2]
                named.add(name)
                known = own if re.search(rf"\b{name} =", text) else shared
                if name not in known or (unit and unit.capitalize() not in UNITS):
                    raise Wrong(f"{place}:{line}: {match[0]}: no such constant is known, or no such unit")
                return text_of(known[name], unit.capitalize() if unit else unit_of(name))
            row = [PLACE.sub(value, cell) for cell in cells]
            if any(re.search(r"\{\s*k[A-Z]", cell) for cell in row):
                raise Wrong(f"{place}:{line}: a name in braces is not as {{kName}} or {{kName:unit}}")
            pages[title].append(row)
        if file.name in OF_BOUNDS:
            for name in sorted(set(re.findall(r"constexpr [^=;]*?\b(k\w+)\s*=", text)) - named):
                raise Wrong(f"{place}: {name} is in no row")
    out = []
    for title, rows in pages.items():
        out += [f"## {title}", "", "| what | bound | what happens at it |", "|---|---|---|", *joined(rows), ""]
    return "\n".join(out)


def page(root):
    """docs/limits.md as it is to be."""
    text = (root / "docs/limits.md").read_text()
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise Wrong(f"docs/limits.md: it lacks the line {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{tables(root)}\n{END}{after}"


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    try:
        wanted = page(root)
    except Wrong as wrong:
        sys.exit(str(wrong))
    file = root / "docs/limits.md"
    if sys.argv[1:] == ["--check"]:
        if file.read_text() != wanted:
            sys.exit("docs/limits.md is not what the sources say: run scripts/generate-docs")
        return
    file.write_text(wanted)


if __name__ == "__main__":
    main()
