"""elastic-gpu-probe as a file: what it asks of the system that it runs on, and that elastic-run has it."""

import os
import pathlib
import re
import subprocess

import pytest

DIRECTORY = pathlib.Path(os.environ.get("ELASTIC_RUN_BINARY", "build/release/elastic-run")).parent
OLDEST = (2, 2, 5)  # of glibc for x86-64
MOST_BYTES = 100 * 1024


def readelf(*arguments):
    return subprocess.run(["readelf", "--wide", *arguments], capture_output=True, text=True, check=True,
                          env=os.environ | {"LC_ALL": "C"}).stdout


def versions_needed(program):
    """Of glibc and whatever else has versions: (library, version) each."""
    found, library = [], None
    for line in readelf("--version-info", program).splitlines():
        if match := re.search(r"Version: \d+  File: (\S+)", line):
            library = match[1]
        elif match := re.search(r"Name: (\S+)  Flags", line):
            found.append((library, match[1]))
    return found


def too_new(program):
    """What it needs and the first glibc has not."""
    found = []
    for library, version in versions_needed(program):
        match = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)*)", version)
        if not match or tuple(map(int, match[1].split("."))) > OLDEST:
            found.append(f"{library}: {version}")
    return found


@pytest.fixture
def program():
    return DIRECTORY / "elastic-gpu-probe"


def test_it_needs_no_symbol_newer_than_glibc_2_2_5(program):
    assert too_new(program) == []
    assert {library for library, _ in versions_needed(program)} == {"libc.so.6", "libdl.so.2"}


@pytest.mark.parametrize("source, options", [
    ("int main(void) { return 0; }", []),  # __libc_start_main
    ("#include <time.h>\nint main(void) { struct timespec now; return clock_gettime(CLOCK_MONOTONIC, &now); }", []),
], ids=["start", "clock"])
def test_a_program_that_needs_a_newer_glibc_is_found(tmp_path, source, options):
    (tmp_path / "newer.c").write_text(source)
    subprocess.run(["cc", tmp_path / "newer.c", "-o", tmp_path / "newer", *options], check=True)
    assert too_new(tmp_path / "newer") != []


def test_it_is_small_stripped_and_looks_for_libraries_nowhere_else(program):
    assert program.stat().st_size < MOST_BYTES
    dynamic = readelf("--dynamic", program)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    assert sorted(needed) == ["libc.so.6", "libdl.so.2", "libpthread.so.0"]
    assert "RPATH" not in dynamic and "RUNPATH" not in dynamic
    sections = readelf("--sections", program)
    assert ".symtab" not in sections and ".debug" not in sections
    assert ".note.gnu.build-id" not in sections
    undefined = re.findall(r"UND (\S+)", readelf("--dyn-syms", program))
    assert undefined and not [name for name in undefined if "_chk" in name or "asan" in name or "ubsan" in name]


def calls_between_objects(objects):
    """{object: the objects that define a symbol which it needs}."""
    defined, needed = {}, {}
    for path in objects:
        needed[path.name] = set()
        for line in readelf("--symbols", path).splitlines():
            match = re.search(r"GLOBAL\s+\S+\s+(\S+)\s+(\S+)$", line)
            if match and match[1] == "UND":
                needed[path.name].add(match[2])
            elif match:
                defined[match[2]] = path.name
    return {name: {defined[symbol] for symbol in symbols if symbol in defined} for name, symbols in needed.items()}


def test_no_two_files_of_it_call_each_other():
    objects = list(DIRECTORY.glob("health/gpu/CMakeFiles/elastic-gpu-probe.dir/probe/*.c.o"))
    calls = calls_between_objects(objects)
    assert "reply.c.o" in calls["compute.c.o"]
    while leaves := [name for name, others in calls.items() if not others]:
        calls = {name: others - set(leaves) for name, others in calls.items() if name not in leaves}
    assert calls == {}, "these files of the probe call each other in a circle"


def test_it_has_no_path_of_the_machine_that_built_it(program):
    assert str(DIRECTORY.parent.parent).encode() not in program.read_bytes()
