#!/usr/bin/env python3
"""Which sources are compiled together, as one translation unit: fewer times the same headers and templates.

    units.py ROOT DIRECTORY LIST

LIST has a line TARGET|MOST_LINES|FILE|FILE... for each target. Prints TARGET|FILE for each file to compile: one of
those, which stays alone, or a unit, which is written to DIRECTORY and includes its files.

A unit has files of one folder, in their order, and no more lines than that: more gain little, and whoever changes one
of its files waits for the whole unit. A file joins the first unit in which no name clashes: nothing that one of them
declares outside of braces may be a word of another, even of its test cases. So whoever writes a file thinks of that one
only. A name that clashes unseen is an error of the compiler, with ELASTIC_UNITY only: rename it. A file in which
tests/mistakes.py plants a mistake stays alone, since the copy's object takes the place of its own.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

import mistakes  # noqa: E402

TYPE = re.compile(r"(?:template *<.*> *)?(?:struct|class|enum class|enum|union) +(\w+)")
ALIAS = re.compile(r"using +(\w+) *=")
FUNCTION_OR_VARIABLE = re.compile(r"(?!(?:namespace|using|TEST_CASE|struct|class|enum|union)\b)"
                                  r"(?=[A-Za-z_]).*?[\w>&*\]][ &*]+(\w+) *(?:[({=\[;]|$)")
NAMESPACE = re.compile(r"using namespace ([\w:]+);")
SINGLE_NAME = re.compile(r"^using [\w:]+;", re.MULTILINE)
MACRO = re.compile(r"# *define +(\w+)")
# A member's name clashes with nothing, and neither does what is said in a comment or a text.
NO_NAME = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
WORD = re.compile(r"(?<![.>:\w])[A-Za-z_]\w*")


def declared(text):
    """The names that a source declares at the beginning of a line: our formatting indents all others."""
    names = set()
    for line in text.splitlines():
        for pattern in (TYPE, ALIAS, MACRO, FUNCTION_OR_VARIABLE):
            found = pattern.match(line)
            if found:
                names.add(found[1])
                break
    return names


def words(text):
    return set(WORD.findall(NO_NAME.sub("", text)))


class Source:
    def __init__(self, text):
        self.lines = text.count("\n")
        self.declares = declared(text)
        self.says = words(text)
        self.opens = set(NAMESPACE.findall(text))
        self.takes_single_names = bool(SINGLE_NAME.search(text))


class Unit:
    def __init__(self, name):
        self.name = name
        self.sources = []

    def takes(self, new, most_lines):
        return sum(source.lines for source in self.sources) + new.lines <= most_lines and not any(
            source.declares & new.says or new.declares & source.says or
            # A name that one of them takes from its namespace may be in a namespace that the other one opens, too.
            (source.takes_single_names or new.takes_single_names) and source.opens != new.opens
            for source in self.sources)


# The compiler takes what is included for a header, in which a class must not have members of a type without linkage.
IN_A_UNIT = '#pragma GCC diagnostic ignored "-Wsubobject-linkage"\n'
PLANTED = {mistake.file for program in mistakes.MISTAKES.values() for mistake in program}


def units(sources, most_lines):
    """{path: text} to {path: name of its unit, or the path itself if nothing may be compiled with it}."""
    folders = {}
    names = {}
    for path, text in sources.items():
        if path in PLANTED or not path.endswith(".cpp"):
            names[path] = path
            continue
        source = Source(text)
        folder = pathlib.PurePath(path).parent
        beside = folders.setdefault(folder, [])
        unit = next((unit for unit in beside if unit.takes(source, most_lines)), None)
        if unit is None:
            unit = Unit(f"{'_'.join(folder.parts)}_{len(beside)}")
            beside.append(unit)
        unit.sources.append(source)
        names[path] = unit.name
    return names


def write_units(root, directory, target, most_lines, paths):
    """What is to be compiled for the target."""
    members = {}
    for path, name in units({path: (root / path).read_text() for path in paths}, most_lines).items():
        members.setdefault(name, []).append(path)
    directory.mkdir(parents=True, exist_ok=True)
    for name, together in members.items():
        if len(together) == 1:
            yield root / together[0]
            continue
        unit = directory / f"{target}.{name}.cpp"
        # From the top, without the clone's own path: ccache knows it in every clone.
        text = IN_A_UNIT + "".join(f'#include "{path}"\n' for path in together)
        if not unit.exists() or unit.read_text() != text:
            unit.write_text(text)
        yield unit


def main():
    root, directory, listed = map(pathlib.Path, sys.argv[1:])
    for line in listed.read_text().splitlines():
        target, most_lines, *files = line.split("|")
        paths = [str(pathlib.Path(file).relative_to(root)) for file in files]
        for file in write_units(root, directory, target, int(most_lines), paths):
            print(f"{target}|{file}")


if __name__ == "__main__":
    main()
