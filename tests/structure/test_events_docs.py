"""The events of docs/observing.md against those that the sources tell, both ways."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Where the word of an event stands in the sources.
TELLING = [
    r'log::(?:debug|info|warning|error|critical|answer|write_answer)\(\s*"(\w+)"',
    r'log::(?:write_event|line)\(\s*log::Level::k\w+,\s*"(\w+)"',
    r'\badd_event\(\s*out, [^"]*?"(\w+)"',
    r'\.event = "(\w+)"',
    r'\bWarn\{(?:(?!\}\);)[\s\S])*?"(\w+)"\}\);',
    r'\bLog\{(?:(?!\}\);)[\s\S])*?"([a-z_]+)"\}\);',
    r'\btell\("(\w+)"',
    r'\bTell\{Level::k\w+,\s*"(\w+)"',
    r'\blines\.line\("\w+", "(\w+)"',
]
# The words of those that come without one, and of constants.
ELSEWHERE = {
    "src/base/log.cpp": [r'\bwarning\("(\w+)", text\)', r'\bcritical\("(\w+)", text\)'],
    "rendezvous/coordinator/coordinator_events.h": [r'std::string_view event = "(\w+)"', r'kRoundFormed = "(\w+)"', r'kJobEnds = "(\w+)"',
                              r'kNode\w+ = "(\w+)"', r'k(?:OperatorOrder|NoNextLeader|NoTrainingPort|RankTaken|RulesDiffer|StacksCollected) = "(\w+)"'],
}
# Where a field is added to an event.
FIELDS = [r'\bwith\("(\w+)"', r'\.set\("(\w+)"', r'\{"(\w+)", ', r'\? "(\w+)" : name']
FIELD_FILES = ["rendezvous/events/node_event_log.cpp", "cli/run/log_writer.cpp", "cli/run/check_reporter.cpp",
               "cli/run/event_stream.cpp", "cli/run/hang_reporter.cpp", "cli/run/file_timers.cpp", "cli/run/tuning_host.cpp", "rendezvous/events/event_line.cpp", "cli/run/launch.cpp",
               "rendezvous/transport/discovery.cpp", "rendezvous/transport/coordinator_server.cpp", "rendezvous/coordinator/coordinator_notes.cpp",
               "rendezvous/events/event_commands.cpp"]


def sources():
    for top in ("src", "cli", "rendezvous", "health"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cpp") and not path.name.endswith("_test.cpp"):
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def told():
    found = set()
    for name, text in sources():
        for pattern in TELLING + ELSEWHERE.get(name, []):
            found |= set(re.findall(pattern, text))
    return found


PAGE = "docs/observing.md"


def rows(heading):
    """The cells of the table below a heading of the page."""
    section = re.split(r"\n##+ ", (ROOT / PAGE).read_text().split(f"# {heading}\n", 1)[1], maxsplit=1)[0]
    table = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return table[2:]


def names(cell):
    return re.findall(r"`(\w+)`", cell)


def test_every_event_of_the_sources_is_in_the_docs_and_no_other():
    table = rows("The events")
    assert [row for row in table if len(row) != 4 or not names(row[0]) or not row[1].strip() or not row[2].strip()] == []
    listed = [name for row in table for name in names(row[0])]
    assert len(listed) == len(set(listed)), "an event is listed twice"
    events = told()
    assert len(events) > 60  # the patterns find them
    assert events - set(listed) == set(), f"told, and not in {PAGE}"
    assert set(listed) - events == set(), f"in {PAGE}, and never told"


def test_every_field_of_an_event_is_in_the_docs_and_no_other():
    in_code = set()
    for name, text in sources():
        if name in FIELD_FILES:
            in_code |= {field for pattern in FIELDS for field in re.findall(pattern, text)}
    listed = {field for row in rows("Events") for field in names(row[0])}
    listed |= {field for row in rows("The events") for field in names(re.sub(r"\([^)]*\)", "", row[3]))}
    assert in_code - listed == set(), f"told, and not in {PAGE}"
    assert listed - in_code == set(), f"in {PAGE}, and never told"
