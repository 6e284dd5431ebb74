#!/usr/bin/env python3
"""Which unit tests are compiled together, as one translation unit: fewer times the same templates.

    units.py ROOT FILE ...   for each file of ROOT a line with the name of its unit

A unit has files of one folder, in their order. A file joins the first unit in which no name clashes: nothing that one
of them declares outside of braces may be a word of another, even of its test cases. So whoever writes a test thinks of
its own file only. A name that clashes unseen is an error of the compiler, with ELASTIC_UNITY only: rename it.
"""

import pathlib
import re
import sys

# Of a unit. More of them gain little, and whoever changes one of its tests waits for the whole unit.
MOST_LINES = 1000

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

    def takes(self, new):
        return sum(source.lines for source in self.sources) + new.lines <= MOST_LINES and not any(
            source.declares & new.says or new.declares & source.says or
            # A name that one of them takes from its namespace may be in a namespace that the other one opens, too.
            (source.takes_single_names or new.takes_single_names) and source.opens != new.opens
            for source in self.sources)


def units(sources):
    """{path: text} to {path: name of its unit}."""
    folders = {}
    names = {}
    for path, text in sources.items():
        source = Source(text)
        folder = pathlib.PurePath(path).parent
        beside = folders.setdefault(folder, [])
        unit = next((unit for unit in beside if unit.takes(source)), None)
        if unit is None:
            unit = Unit(f"{'_'.join(folder.parts)}_{len(beside)}")
            beside.append(unit)
        unit.sources.append(source)
        names[path] = unit.name
    return names


def main():
    root, *files = sys.argv[1:]
    root = pathlib.Path(root)
    sources = {str(pathlib.Path(file).relative_to(root)): pathlib.Path(file).read_text() for file in files}
    print("\n".join(units(sources).values()))


if __name__ == "__main__":
    main()
