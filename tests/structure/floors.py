"""The floors of the house, as docs/architecture.md draws them, and what reads them off the sources.

check(root) returns one line for each place where a rule is broken. To change a rule, change a table.
"""

import functools
import pathlib
import re

# Lowest first: each folder includes from itself and from those before it.
FLOORS = ["src", "health", "rendezvous", "cli"]

# The rooms of each folder, and what each may include of the other rooms of its folder. What stands in no room may not be
# included from one: of cli/, the program's own files.
ROOMS = {
    "src/base": [],
    "src/net": ["src/base"],
    "src/process": ["src/base", "src/net"],
    "src/numa": ["src/base"],
    "src/output": ["src/base", "src/net"],
    "src/status": ["src/base"],
    "src/warm": ["src/base", "src/net", "src/process", "src/status"],
    "src/report": ["src/base"],
    "health/messages": [],
    "health/judge": [],
    "health/evidence": [],
    "health/hang": [],
    "health/stacks": [],
    "health/hang_evidence": ["health/evidence", "health/hang", "health/stacks"],
    "health/stack_reader": ["health/stacks"],
    "health/progress": [],
    "health/timers": [],
    "health/tuning": [],
    "health/host": ["health/messages"],
    "health/gpu": ["health/messages", "health/host"],
    "health/report": ["health/messages", "health/judge"],
    "health/check": ["health/messages", "health/judge", "health/host", "health/gpu", "health/report"],
    "health/probe": ["health/messages", "health/host", "health/gpu"],
    "health/evidence_reader": ["health/evidence", "health/hang", "health/hang_evidence", "health/messages", "health/host", "health/gpu", "health/probe"],
    "rendezvous/protocol": [],
    "rendezvous/membership": ["rendezvous/protocol"],
    "rendezvous/discovery": ["rendezvous/protocol"],
    "rendezvous/election": ["rendezvous/protocol"],
    "rendezvous/store": ["rendezvous/protocol"],
    "rendezvous/coordinator": ["rendezvous/protocol", "rendezvous/membership", "rendezvous/discovery", "rendezvous/election"],
    "rendezvous/agent": ["rendezvous/protocol", "rendezvous/election"],
    "rendezvous/trace": ["rendezvous/protocol", "rendezvous/coordinator"],
    "rendezvous/events": ["rendezvous/protocol", "rendezvous/agent"],
    "rendezvous/transport": ["rendezvous/protocol", "rendezvous/membership", "rendezvous/discovery", "rendezvous/coordinator",
                             "rendezvous/trace"],
    "cli/run": [],
}

# Rooms that others enter by some of their headers only.
INTERFACES = {"rendezvous/election": {"leader.h", "follower.h"}}

# What is pure: it decides, and does nothing. A folder, or one thing (its .h, .cpp and _test.cpp).
PURE = [
    "rendezvous/agent", "rendezvous/coordinator", "rendezvous/events", "rendezvous/trace", "src/report", "src/status", "src/net/http",
    "rendezvous/membership", "rendezvous/protocol", "rendezvous/election", "rendezvous/discovery",
    "rendezvous/transport/leader_gossip", "rendezvous/transport/limits", "rendezvous/transport/service",
    "rendezvous/transport/service_introductions", "rendezvous/transport/service_stacks", "rendezvous/transport/stacks_desk",
    "rendezvous/store/codec", "rendezvous/store/keyspace",
    "cli/flag_table", "cli/argv_normalizer", "cli/parse", "cli/flag_checks", "cli/rdzv_conf",
    "cli/device_plan", "cli/launch_plan", "cli/path_search", "cli/program", "cli/python_choice", "cli/detect",
    "cli/run/final_status", "cli/run/hang_signs", "cli/run/worker_environment", "cli/run/wrap", "cli/wrap_rules", "cli/warm_plan", "cli/numa_plan",
    "health/check",
    "health/judge",
    "health/evidence",
    "health/hang",
    "health/hang_evidence",
    "health/messages",
    "health/progress",
    "health/host/facts", "health/host/thresholds", "health/host/judge_host", "health/host/hook",
    "health/gpu/gpu_thresholds", "health/gpu/gpu_versions", "health/gpu/judge_gpu", "health/gpu/libraries", "health/gpu/messages",
    "health/gpu/distance", "health/gpu/used_gpus", "health/gpu/xid_aftermath",
    "health/report",
    "health/stacks",
    "health/timers",
    "health/tuning",
    "src/numa/binding", "src/numa/number_list", "src/numa/warnings",
    "src/net/limits", "src/output/limits", "src/output/lines", "src/warm/packets",
    "src/warm/warm_rules",
]

# All that pure code may include, itself or through headers of ours. Nothing in here can ask the
# clock, open a file or a socket, start a thread or a process, or throw dice (<random> has
# std::random_device, <chrono> has clocks: times are plain numbers with their unit in the name). <csignal> is for the
# names of signals and sigset_t; SENDS_SIGNALS is what of it does something.
PURE_HEADERS = set("""
    algorithm array bit bitset cctype charconv cinttypes climits cmath compare concepts csignal cstddef
    cstdint cstring deque exception expected functional initializer_list iomanip iosfwd iterator
    limits list map memory new numeric optional ostream queue ranges ratio set source_location span
    sstream stack stdexcept string string_view system_error tuple type_traits typeindex
    unordered_map unordered_set utility variant vector version
    fmt/core.h fmt/format.h fmt/ranges.h
""".split())
SENDS_SIGNALS = re.compile(r"\bstd::(signal|raise)\b|\b(sigaction|sigprocmask|pthread_kill|killpg|sigqueue)\s*\(|"
                           r"(?<!\w)::(kill|raise)\s*\(")
READS_ENVIRONMENT = re.compile(r"\b((secure_)?getenv|(un)?setenv|putenv|clearenv|(__)?environ)\b")
# A test may count the memory that is in use.
PURE_TEST_HEADERS = PURE_HEADERS | {"doctest/doctest.h", "malloc.h"}
# Beside these, what is pure of a library that as a whole is not: {header: the one file that may}.
PURE_HEADERS_OF = {
    "sodium/crypto_generichash.h": "rendezvous/protocol/proof.cpp",
    "sodium/utils.h": "rendezvous/protocol/proof.cpp",
    "http_parser.h": "src/net/http/reader.cpp",
    "re2/re2.h": "health/progress/step_pattern.cpp",
    "CLI/CLI.hpp": "cli/parse.cpp",  # it prints nothing and reads no variable unless it is told to
}

# Ours, and yet not for pure code, whatever they include themselves.
IMPURE = ["src/base/log", "src/net", "src/process", "src/output"]

# Headers that are slow to compile or hard to replace stay behind one wall: (what is included, where
# it may be, in how many files).
WALLS = [
    (r"CLI/.*|CLI11\.hpp", r"cli/parse\.cpp", 1),
    (r"spdlog/.*", r"src/base/log\.cpp", 1),
    (r"nlohmann/.*", r"src/base/json\.cpp", 1),
    (r"uv\.h|uv/.*", r"src/net/[^/]+\.cpp", None),
    (r"sodium\.h|sodium/.*", r"rendezvous/protocol/proof\.cpp", 1),
    (r"ares(_.*)?\.h", r"src/net/names\.cpp", 1),
    (r"munge\.h", r"src/net/munge\.cpp", 1),
    (r"http_parser\.h", r"src/net/http/reader\.cpp", 1),
    (r"re2/.*", r"health/progress/step_pattern\.cpp", 1),
    (r"sys/wait\.h", r"src/process/children\.cpp|.*_test(_support)?\.(cpp|h)", None),
]

# CMake targets that bring libuv, sockets, threads or processes with them.
IMPURE_TARGET = re.compile(
    r"elastic_(net|process|output|store)|Threads::.*|.*(?<![a-z])uv(?![a-z]).*|.*cares.*|.*munge.*",
    re.IGNORECASE)

TOPS = ["src", "cli", "rendezvous", "health"]


def check(root):
    root = pathlib.Path(root)
    sources = read_sources(root)
    return sorted(check_tables(sources) + check_floors(sources) + check_purity(sources) + check_walls(sources) +
                  check_environment(sources) + check_targets(root, sources))


# --- Reading ----------------------------------------------------------------------------------


class Source:
    """A C++ or C file: its includes as (line number, "<" or '"', name), and its code."""

    def __init__(self, path, text):
        self.path = path
        # Comments go, line numbers stay.
        self.code = re.sub(r"//[^\n]*|/\*.*?\*/|(\"(?:\\.|[^\"\\\n])*\")",
                           lambda m: m.group(1) or "\n" * m.group(0).count("\n"), text, flags=re.S)
        self.includes = []
        for number, line in enumerate(self.code.splitlines(), 1):
            if match := re.match(r"\s*#\s*include(?:_next)?\b\s*(?:([<\"])([^>\"]+)|(.*))", line):
                self.includes.append((number, match[1] or "?", match[2] or match[3]))

    @functools.cached_property
    def environment_reads(self):
        """(line number, what is wrong with the line), as check_environment() wants them."""
        found = []
        for number, line in enumerate(self.code.splitlines(), 1):
            if READS_ENVIRONMENT.search(re.sub(r"\"(?:\\.|[^\"\\])*\"", '""', line)):
                found.append((number, "reads or changes the environment; only cli/ does"))
            if re.search(r"/proc/(self|thread-self)/(environ|cmdline)", line):
                found.append((number, "reads the environment or the command line; only cli/ does"))
        return found

    @functools.cached_property
    def signals_sent(self):
        """(line number, call) of what sends a signal."""
        return [(number, match.group(0)) for number, line in enumerate(self.code.splitlines(), 1)
                if (match := SENDS_SIGNALS.search(line))]

    @property
    def is_test(self):
        return self.path.endswith(("_test.cpp", "_test_support.h"))


@functools.cache
def source_of(path, text):
    """The tests check many trees that differ in one file: each text is read once."""
    return Source(path, text)


def read_sources(root):
    found = {}
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".hpp", ".cpp", ".cc", ".c") and path.is_file():
                name = path.relative_to(root).as_posix()
                found[name] = source_of(name, path.read_text(errors="replace"))
    return found


@functools.cache
def is_in(path, place):
    """Whether a path is in a folder, or belongs to the one thing that `place` names."""
    return path.startswith(place + "/") or re.fullmatch(
        re.escape(place) + r"(_test)?\.(h|hpp|cpp|cc|c)", path) is not None


def find_place(path, places):
    return next((place for place in places if is_in(path, place)), None)


def floor_of(path):
    """(number, folder) of the floor that a file stands on; None if it stands on none: in src/, health/ and rendezvous/
    every file stands in a room."""
    top = path.split("/")[0]
    if top not in FLOORS or (top != "cli" and not find_place(path, ROOMS)):
        return None
    return FLOORS.index(top) + 1, top


# --- Rules ------------------------------------------------------------------------------------


def check_tables(sources):
    """A rule for what is not there any more holds nothing."""
    listed = [("ROOMS", ROOMS), ("PURE", PURE), ("IMPURE", IMPURE)]
    broken = [f"{place}: there is no such folder or file; {table} in tests/structure/floors.py lists it"
              for table, places in listed for place in places if not any(is_in(path, place) for path in sources)]
    broken += [f"{room}/{header}: there is no such file; INTERFACES in tests/structure/floors.py lists it"
               for room, headers in INTERFACES.items() for header in headers if f"{room}/{header}" not in sources]
    return broken + [f"{path}: there is no such file; PURE_HEADERS_OF in tests/structure/floors.py names it"
                     for path in PURE_HEADERS_OF.values() if path not in sources]


def check_floors(sources):
    broken = []
    for source in sources.values():
        here = floor_of(source.path)
        if here is None:
            broken.append(f"{source.path}: stands on no floor; FLOORS and ROOMS in "
                          "tests/structure/floors.py list them")
            continue
        for line, kind, name in source.includes:
            if wrong := wrong_include(source.path, here, kind, name, sources):
                broken.append(f"{source.path}:{line}: includes {name}: {wrong}")
    return broken


def wrong_include(path, here, kind, name, sources):
    if kind == "?":
        return "a name that only the preprocessor knows; write the path"
    if name not in sources:
        if kind == '"':
            return "there is no such file of ours; name it from the top of the repository"
        return None
    there = floor_of(name)
    if there is not None and there[0] > here[0]:
        return f"floor {here[0]} ({here[1]}) may not include from floor {there[0]} ({there[1]})"
    mine, other = find_place(path, ROOMS), find_place(name, ROOMS)
    if mine != other and other in INTERFACES and name.removeprefix(f"{other}/") not in INTERFACES[other]:
        return f"from outside only {', '.join(sorted(INTERFACES[other]))} of {other} may be included"
    if there is not None and there[0] < here[0]:
        return None
    if mine and mine != other and other not in ROOMS[mine]:
        return f"{mine} may not include from {other or here[1]}"
    return None


def check_purity(sources):
    broken = []
    for source in sources.values():
        if not find_place(source.path, PURE):
            continue
        allowed = PURE_TEST_HEADERS if source.is_test else PURE_HEADERS
        broken += [f"{source.path}:{number}: pure code may not call {call}" for number, call in source.signals_sent]
        for chain, name in reach(source.path, sources):
            if name in sources:
                if place := find_place(name, IMPURE):
                    if not find_place(name, PURE):
                        broken.append(f"{chain}: pure code may not include {name} ({place} is not pure)")
            elif name not in allowed and PURE_HEADERS_OF.get(name) != source.path:
                broken.append(f"{chain}: pure code may not include <{name}>; PURE_HEADERS in "
                              "tests/structure/floors.py lists what it may")
    return broken


def reach(path, sources):
    """Everything that a file includes, through headers of ours: ("a.cpp:3 > b.h:7", included)."""
    seen = {path}
    waiting = [(path, path)]
    while waiting:
        chain, current = waiting.pop()
        for line, _, name in sources[current].includes:
            yield f"{chain}:{line}", name
            if name in sources and name not in seen:
                seen.add(name)
                waiting.append((f"{chain}:{line} > {name}", name))


def check_walls(sources):
    broken = []
    for header, place, how_many in WALLS:
        users = {}
        for source in sources.values():
            for line, _, name in source.includes:
                if re.fullmatch(header, name):
                    users.setdefault(source.path, (line, name))
        for path, (line, name) in users.items():
            if not re.fullmatch(place, path):
                broken.append(f"{path}:{line}: includes {name}, which stays behind {place}")
        if how_many and len(users) > how_many:
            broken.append(f"{', '.join(sorted(users))}: {header} is included in {len(users)} files, "
                          f"not in {how_many}")
    return broken


def check_environment(sources):
    """Nothing below the program's own files in cli/ reads the environment or the command line of elastic-run itself. The GPU's probe is
    another program, with an environment of its own."""
    broken = []
    for source in sources.values():
        reads = source.path.startswith("cli/") and not source.path.startswith("cli/run/")
        if reads or source.path.startswith("health/gpu/probe/") or source.is_test:
            continue
        broken += [f"{source.path}:{number}: {wrong}" for number, wrong in source.environment_reads]
    return broken


# --- CMake ------------------------------------------------------------------------------------


def read_targets(root):
    """{target: (set of its sources, set of what it links)} from the CMakeLists.txt of all folders."""
    targets = {}
    for top in TOPS:
        for file in sorted((root / top).rglob("CMakeLists.txt")):
            folder = file.parent.relative_to(root).as_posix()
            text = re.sub(r"#[^\n]*", "", file.read_text())
            for command, body in re.findall(r"(\w+)\s*\(([^()]*)\)", text):
                read_command(targets, folder, command.lower(), body.split())
    return targets


def read_command(targets, folder, command, words):
    keywords = {"NAME", "SOURCES", "ALONE", "TESTS", "DEPS", "STATIC", "OBJECT", "INTERFACE", "PUBLIC", "PRIVATE"}
    if command not in ("elastic_library", "add_library", "add_executable", "target_link_libraries",
                       "target_sources"):
        return
    section = {"elastic_library": None, "target_link_libraries": "DEPS"}.get(command, "SOURCES")
    name = None
    for word in words:
        if word in keywords:
            if word in ("NAME", "SOURCES", "TESTS", "DEPS"):
                section = word
            elif word == "ALONE":
                section = "SOURCES"
        elif name is None:
            name = word
            targets.setdefault(name, (set(), set()))
        elif section == "SOURCES":
            targets[name][0].add(f"{folder}/{word}")
        elif section == "DEPS":
            targets[name][1].add(word)


def link_closure(target, targets):
    seen, waiting = set(), [target]
    while waiting:
        for needed in targets.get(waiting.pop(), (set(), set()))[1]:
            if needed not in seen:
                seen.add(needed)
                waiting.append(needed)
    return seen


def check_targets(root, sources):
    broken = []
    targets = read_targets(root)
    for source in sources.values():
        if source.is_test or not source.path.endswith(".cpp") or not find_place(source.path, PURE):
            continue
        homes = [name for name, (files, _) in targets.items() if source.path in files]
        if not homes:
            broken.append(f"{source.path}: is in no CMake target")
        for home in homes:
            for needed in sorted(link_closure(home, targets)):
                if IMPURE_TARGET.fullmatch(needed):
                    broken.append(f"{source.path}: is pure, but its CMake target {home} links {needed}")
    return broken
