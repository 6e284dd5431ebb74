#!/usr/bin/env python3
"""Writes docs/states.md from the tables of states and events in the sources.

    states_page.py          writes docs/states.md
    states_page.py --check  fails where it is not what the sources say
"""

import pathlib
import re
import sys

# The tables, with what they are about.
TABLES = [
    ("A node", "rendezvous/agent/lifecycle_table.h", "What the agent of a node does. Messages of the coordinator come first."),
    ("A job", "rendezvous/coordinator/job_table.h",
     "What the coordinator of a job does. `EventHandled` follows each event that may change the round; `HangDue` comes last."),
]
HEAD = """# States

What a node and a job do on each event, in each of their states. A dash: nothing is to be done. *never*: nobody sends this
event in this state; that it comes is a defect, and ends the program. The other cells name the function that is called, in
the class of which the table is. A machine that has ended ignores everything. The tables come from the sources: scripts/generate-docs.
"""

STATE = re.compile(r"^//   (\w+)  +(\S.*)$", re.MULTILINE)
ROW = re.compile(r"\b(?:on<|row\(On\w+<)([\w:]+)>\(?\s*\{(.*?)\}\)", re.DOTALL)
CELL = re.compile(r"\.(\w+) = (?:&\w+::)?(\w+)")


class Wrong(Exception):
    """A table that cannot be read."""


def table_of(text):
    """({state: its meaning}, the picture as lines, {event: {state: its cell}}) of a header."""
    doc = text[text.index("as a table"):text.index("constexpr std::tuple kRows")]
    states = dict(STATE.findall(doc))
    picture = [line[3:].rstrip() for line in doc.splitlines() if re.match(r"//  .*(-->|--|\^|\||v$)", line)
               and not STATE.match(line)]
    rows = {}
    for name, given in ROW.findall(re.sub(r"//[^\n]*", "", text[text.index("constexpr std::tuple kRows"):])):
        event = name.split("::")[-1]
        cells = dict(CELL.findall(given))
        others = cells.pop("others", None)
        if unknown := set(cells) - set(states):
            raise Wrong(f"{event}: there is no state {', '.join(sorted(unknown))}")
        rows[event] = {state: cells.get(state, others) for state in states}
        if missing := [state for state, cell in rows[event].items() if cell is None]:
            raise Wrong(f"{event}: no cell for {', '.join(missing)}")
    return states, picture, rows


def cell_text(cell):
    return {"ignored": "-", "impossible": "*never*"}.get(cell, f"`{cell}`")


def page(root):
    parts = [HEAD]
    for title, header, about in TABLES:
        states, picture, rows = table_of((root / header).read_text())
        parts.append(f"\n## {title}\n\n{about} The table is `{header}`.\n\n| state | |\n|---|---|\n")
        parts += [f"| {state} | {meaning} |\n" for state, meaning in states.items()]
        parts.append("\n```\n" + "".join(f"{line}\n" for line in picture) + "```\n\n")
        parts.append(f"| event | {' | '.join(states)} |\n|{'---|' * (len(states) + 1)}\n")
        for event, cells in rows.items():
            if len(set(cells.values())) == 1 and len(states) > 1:
                parts.append(f"| `{event}` | {cell_text(next(iter(cells.values())))} in all states |{' |' * (len(states) - 1)}\n")
            else:
                parts.append(f"| `{event}` | {' | '.join(map(cell_text, cells.values()))} |\n")
    return "".join(parts)


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    target = root / "docs/states.md"
    text = page(root)
    if sys.argv[1:] == ["--check"]:
        if target.read_text() != text:
            sys.exit("docs/states.md is not what the sources say: run scripts/generate-docs")
        return
    target.write_text(text)


if __name__ == "__main__":
    main()
