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


@pytest.fixture(scope="module")
def built_again(tmp_path_factory):
    """elastic-run built from a copy of the sources at another path: (binary, what the build said)."""
    copy = tmp_path_factory.mktemp("somewhere") / "else" / "elastic-run"
    leave = shutil.ignore_patterns("build", ".git", ".cache", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=leave, symlinks=True)
    # Honest: compiled afresh, with nothing of this environment that could change the result.
    plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    plain |= {"CCACHE_DISABLE": "1", "LANG": "C.UTF-8"}
    for command in (["cmake", "--preset", "release"],
                    ["ninja", "-C", "build/release", "-j2", "elastic-run"]):
        done = subprocess.run(command, cwd=copy, env=plain, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    yield copy / "build/release/elastic-run", done.stdout + done.stderr
    shutil.rmtree(copy)


def test_same_bytes_twice(binary, built_again):
    assert filecmp.cmp(binary, built_again[0], shallow=False), (
        f"{binary} and a build of the same sources elsewhere differ")


def warnings_in(text):
    return re.findall(r".*\bwarning\b.*", text)


def test_no_warnings(built_again):
    assert warnings_in(built_again[1]) == []
    # What the linker says is no error even with -Werror, so it is looked for.
    assert warnings_in("a.cpp:1: warning: unused variable") != []
    assert warnings_in("ld: x.o: warning: Using 'getaddrinfo' in statically linked applications") != []
