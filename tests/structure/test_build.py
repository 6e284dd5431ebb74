"""What the release build gives. ctest runs these as build.*, with ELASTIC_RUN_BINARY from build/release."""

import filecmp
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 10_000_000


@pytest.fixture(scope="module")
def binary():
    path = pathlib.Path(os.environ["ELASTIC_RUN_BINARY"])
    if not path.exists():
        pytest.fail(f"there is no {path}; scripts/test builds it")
    return path


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_static_and_small(binary, tmp_path):
    ldd = output_of("ldd", binary)
    assert "not a dynamic executable" in ldd.stdout + ldd.stderr
    headers = output_of("readelf", "--program-headers", "--wide", binary).stdout
    assert "LOAD" in headers and "INTERP" not in headers
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, binary], check=True)
    assert stripped.stat().st_size < MOST_BYTES
    # A file's name is that from the top, wherever and through whatever it was compiled.
    names = set(re.findall(rb"[./]+/(?:cli|rendezvous)/[a-z_]+\.cpp", stripped.read_bytes()))
    assert names and all(name.startswith(b"./") for name in names), sorted(names)[:3]


# One in so many of the program's objects is compiled again, others with each commit; with ELASTIC_RUN_SAME_BYTES=all
# in the environment all of them are.
SAMPLE = 5


def objects(build):
    """Those that elastic-run is linked from."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "inputs", "elastic-run"], capture_output=True, text=True,
                            check=True).stdout.split()
    return sorted(path for path in listed if path.endswith(".o"))


def chosen(paths):
    if os.environ.get("ELASTIC_RUN_SAME_BYTES") == "all":
        return paths
    commit = output_of("git", "-C", ROOT, "rev-parse", "HEAD").stdout.strip() or "0"
    return paths[int(commit, 16) % SAMPLE::SAMPLE]


@pytest.fixture(scope="module")
def built_again(tmp_path_factory):
    """Some of elastic-run's objects, compiled from a copy of the sources at another path: (the build's directory, their
    paths in it, what the build said)."""
    copy = tmp_path_factory.mktemp("somewhere") / "else" / "elastic-run"
    leave = shutil.ignore_patterns("build", ".git", ".cache", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=leave, symlinks=True)
    # Honest: compiled afresh, with nothing of this environment that could change the result.
    plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    plain |= {"CCACHE_DISABLE": "1", "LANG": "C.UTF-8"}
    done = subprocess.run(["cmake", "--preset", "release"], cwd=copy, env=plain, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    build = copy / "build/release"
    paths = chosen(objects(build))
    done = subprocess.run(["ninja", "-C", build, "-j2", *paths], env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    yield build, paths, done.stdout + done.stderr
    shutil.rmtree(copy)


def test_same_bytes_twice(binary, built_again):
    build, paths, _ = built_again
    assert paths
    assert objects(build) == objects(binary.parent)
    differ = [path for path in paths if not filecmp.cmp(binary.parent / path, build / path, shallow=False)]
    assert not differ, f"these objects differ from those that the same sources give elsewhere: {differ}"


def test_the_same_objects_give_the_same_program(binary, tmp_path):
    command = subprocess.run(["ninja", "-C", binary.parent, "-t", "commands", "elastic-run"], capture_output=True,
                             text=True, check=True).stdout.splitlines()[-1]
    again = tmp_path / "elastic-run"
    linked = command.replace(" -o elastic-run ", f" -o {again} ")
    assert linked != command, command
    done = subprocess.run(linked, shell=True, cwd=binary.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert warnings_in(done.stdout + done.stderr) == []
    assert filecmp.cmp(binary, again, shallow=False)


def warnings_in(text):
    return re.findall(r".*\bwarning\b.*", text)


def test_no_warnings(built_again):
    assert warnings_in(built_again[2]) == []
    # What the linker says is no error even with -Werror, so it is looked for.
    assert warnings_in("a.cpp:1: warning: unused variable") != []
    assert warnings_in("ld: x.o: warning: Using 'getaddrinfo' in statically linked applications") != []
