"""No include against the order of floors, and nothing in a pure folder that does instead of decides."""

import os
import pathlib
import shutil

import floors
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_include_obeys_the_floors():
    broken = floors.check(ROOT)
    assert not broken, "\n" + "\n".join(broken)


# --- Each rule is seen to fail: a copy of the tree gets one bad file, and the rule must name it. ------


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of our tree, and what check() finds in it as it is."""
    copy = tmp_path_factory.mktemp("tree")
    for top in floors.TOPS:
        if (ROOT / top).exists():
            shutil.copytree(ROOT / top, copy / top)
    return copy, set(floors.check(copy))


@pytest.fixture
def house(tree, tmp_path):
    """house({path: text}): what check() finds when these files are added to our tree (a path that
    exists is added to), beyond what it finds without them."""
    copy, before = tree

    def add(files):
        shutil.rmtree(tmp_path)
        shutil.copytree(copy, tmp_path, copy_function=os.link)
        for path, text in files.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            whole = (file.read_text() if file.exists() else "") + text + "\n"
            file.unlink(missing_ok=True)  # it is the copy's own file, too
            file.write_text(whole)
        return sorted(set(floors.check(tmp_path)) - before)

    return add


@pytest.mark.parametrize("gone", ["src/status", "health/judge", "cli/rdzv_conf.cpp", "rendezvous/protocol/proof.cpp",
                                  "rendezvous/election/follower.h"])
def test_a_rule_for_what_is_not_there_is_found(tree, tmp_path, gone):
    copy, _ = tree
    shutil.copytree(copy, tmp_path, copy_function=os.link, dirs_exist_ok=True)
    for path in [tmp_path / gone] if "." not in gone else tmp_path.glob(gone.split(".")[0] + "*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    place = gone if gone.endswith(("proof.cpp", ".h")) else gone.removesuffix(".cpp")
    assert [line for line in floors.check(tmp_path) if line.startswith(f"{place}: there is no such ")]


AGAINST_THE_ORDER = [
    ("src/base", "health/judge"),
    ("src/process", "rendezvous/store"),
    ("src/output", "cli/run"),
    ("src/report", "rendezvous/protocol"),
    ("health/probe", "rendezvous/protocol"),
    ("health/host", "cli"),
    ("rendezvous/coordinator", "cli/run"),
    ("rendezvous/transport", "cli"),
]
BETWEEN_ROOMS = [
    ("src/base", "src/net"),
    ("src/net", "src/process"),
    ("src/process", "src/output"),
    ("src/output", "src/process"),
    ("rendezvous/membership", "rendezvous/store"),
    ("rendezvous/protocol", "rendezvous/membership"),
    ("rendezvous/protocol", "rendezvous/transport"),
    ("rendezvous/discovery", "rendezvous/transport"),
    ("rendezvous/agent", "rendezvous/coordinator"),
    ("rendezvous/agent", "rendezvous/events"),
    ("rendezvous/coordinator", "rendezvous/trace"),
    ("rendezvous/election", "rendezvous/discovery"),
    ("rendezvous/coordinator", "rendezvous/agent"),
    ("rendezvous/coordinator", "rendezvous/transport"),
    ("rendezvous/store", "rendezvous/transport"),
    ("rendezvous/transport", "rendezvous/store"),
    ("health/probe", "health/judge"),
    ("health/messages", "health/probe"),
    ("cli/run", "cli"),
]
ALLOWED = [
    ("cli", "cli/run"),
    ("cli/run", "rendezvous/coordinator"),
    ("cli/run", "src/process"),
    ("rendezvous/agent", "rendezvous/protocol"),
    ("rendezvous/coordinator", "rendezvous/membership"),
    ("rendezvous/transport", "rendezvous/coordinator"),
    ("rendezvous/coordinator", "rendezvous/discovery"),
    ("rendezvous/transport", "src/net"),
    ("rendezvous/coordinator", "health/judge"),
    ("src/process", "src/net"),
    ("health/probe", "src/output"),
]


def include(user, used):
    return {f"{used}/bad_used.h": "#pragma once", f"{user}/bad_user.h": f'#include "{used}/bad_used.h"'}


@pytest.mark.parametrize("user,used", AGAINST_THE_ORDER)
def test_an_include_against_the_order_is_found(house, user, used):
    broken = house(include(user, used))
    assert [line for line in broken if line.startswith(f"{user}/bad_user.h:1:") and "may not include "
            "from floor" in line], broken


@pytest.mark.parametrize("user,used", BETWEEN_ROOMS)
def test_an_include_between_the_rooms_of_a_folder_is_found(house, user, used):
    broken = house(include(user, used))
    assert [line for line in broken if line.startswith(f"{user}/bad_user.h:1:") and
            f"{user} may not include from {used}" in line]


@pytest.mark.parametrize("user,used", ALLOWED)
def test_an_include_from_a_lower_floor_is_allowed(house, user, used):
    assert house(include(user, used)) == []


def test_an_include_beside_the_interface_of_a_room_is_found(house):
    assert house({"rendezvous/agent/good.h": '#include "rendezvous/election/follower.h"'}) == []
    for path in "rendezvous/agent/bad.h", "cli/run/bad.h":
        broken = house({path: '#include "rendezvous/election/voter.h"'})
        assert "from outside only follower.h, leader.h of rendezvous/election may be included" in broken[0]


def test_a_file_outside_all_floors_is_found(house):
    assert "stands on no floor" in house({"src/attic/chest.cpp": "int i;"})[0]
    assert "stands on no floor" in house({"src/loose.h": "#pragma once"})[0]


def test_an_include_that_is_not_from_the_top_is_found(house):
    assert "name it from the top" in house({"src/base/bad.cpp": '#include "result.h"'})[0]
    assert "preprocessor" in house({"src/base/worse.cpp": "#include SOME_HEADER"})[0]


def test_an_include_with_angle_brackets_is_no_way_round(house):
    broken = house({"cli/bad_used.h": "#pragma once", "src/base/bad.cpp": "#include <cli/bad_used.h>"})
    assert "may not include from floor 4" in broken[0]


def test_an_include_in_a_comment_is_none(house):
    assert house({"src/base/good.cpp": '// #include "cli/x.h"\n/*\n#include "cli/x.h"\n*/'}) == []


PURE_FILES = [
    "rendezvous/agent/bad.h", "rendezvous/coordinator/bad.h", "rendezvous/membership/bad.h", "rendezvous/protocol/bad.h",
    "rendezvous/store/codec.h", "rendezvous/store/keyspace.h", "cli/argv_normalizer.h",
    "cli/launch_plan.h", "cli/detect/systems.h", "health/judge/bad.h", "src/output/lines/bad.h",
    "rendezvous/agent/bad_test.cpp",
]
DOING = [
    "uv.h", "sys/socket.h", "netinet/in.h", "arpa/inet.h", "netdb.h", "poll.h", "sys/epoll.h",
    "unistd.h", "signal.h", "fcntl.h", "spawn.h", "sys/wait.h", "sys/types.h", "time.h",
    "ctime", "chrono", "sys/time.h", "thread", "mutex", "condition_variable", "future", "atomic",
    "pthread.h", "semaphore", "fstream", "filesystem", "iostream", "cstdio", "stdio.h", "cstdlib",
    "stdlib.h", "random", "linux/close_range.h", "spdlog/spdlog.h", "fmt/chrono.h", "fmt/os.h",
]


@pytest.mark.parametrize("path", PURE_FILES)
def test_a_header_that_does_something_is_found_in_every_pure_place(house, path):
    broken = house({path: "#include <sys/socket.h>"})
    assert [line for line in broken if line.startswith(f"{path}:") and "<sys/socket.h>" in line]


def test_every_header_that_does_something_is_found(house):
    broken = "\n".join(house({"rendezvous/coordinator/bad.h": "\n".join(f"#include <{name}>" for name in DOING)}))
    assert [name for name in DOING if f"may not include <{name}>" not in broken] == []


def test_a_header_that_does_something_is_found_through_headers_of_ours(house):
    broken = house({"src/base/middle.h": '#include "src/base/low.h"',
                    "src/base/low.h": "#include <sys/socket.h>",
                    "rendezvous/agent/bad.h": '#include "src/base/middle.h"'})
    assert broken == ["rendezvous/agent/bad.h:1 > src/base/middle.h:1 > src/base/low.h:1: pure code may not "
                      "include <sys/socket.h>; PURE_HEADERS in tests/structure/floors.py lists what it "
                      "may"]


@pytest.mark.parametrize("used", ["src/base/log.h", "src/net/bad_used.h", "src/process/bad_used.h",
                                  "src/output/bad_used.h"])
def test_a_header_of_ours_that_does_something_is_found(house, used):
    broken = house({used: "#pragma once", "rendezvous/agent/bad.h": f'#include "{used}"'})
    assert [line for line in broken if line.startswith("rendezvous/agent/bad.h:1:") and "is not pure" in line]


@pytest.mark.parametrize("code", ["std::raise(SIGTERM);", "std::signal(SIGTERM, SIG_IGN);", "::kill(pid, SIGKILL);",
                                  "sigaction(SIGTERM, &action, nullptr);", "sigprocmask (SIG_BLOCK, &set, nullptr);"])
def test_pure_code_may_name_signals_and_send_none(house, code):
    assert house({"rendezvous/agent/bad.h": "#include <csignal>\ninline int last = SIGKILL;"}) == []
    broken = house({"rendezvous/agent/bad.h": f"#include <csignal>\ninline void send(int pid) {{ {code} }}"})
    assert [line for line in broken if line.startswith("rendezvous/agent/bad.h:2: pure code may not call ")]


def test_hashes_of_libsodium_are_pure_in_one_file_and_its_random_numbers_in_none(house):
    assert house({"rendezvous/protocol/proof.cpp": "#include <sodium/crypto_generichash.h>"}) == []
    for path, header in [("rendezvous/protocol/proof.cpp", "sodium/randombytes.h"),
                         ("rendezvous/protocol/proof.cpp", "sodium.h"),
                         ("rendezvous/protocol/proof.h", "sodium/crypto_generichash.h"),
                         ("rendezvous/coordinator/bad.cpp", "sodium/crypto_generichash.h")]:
        broken = house({path: f"#include <{header}>"})
        assert [line for line in broken if line.startswith(f"{path}:") and "pure code may not" in line]


def test_doctest_is_for_tests_only(house):
    assert house({"rendezvous/coordinator/good_test.cpp": "#include <doctest/doctest.h>"}) == []
    assert "doctest" in house({"rendezvous/coordinator/bad.h": "#include <doctest/doctest.h>"})[0]


@pytest.mark.parametrize("path,header", [
    ("src/net/bad.cpp", "spdlog/spdlog.h"), ("src/base/log.h", "spdlog/spdlog.h"),
    ("src/base/bad.cpp", "nlohmann/json.hpp"), ("src/base/json.h", "nlohmann/json.hpp"),
    ("cli/run/bad.cpp", "CLI/CLI.hpp"), ("cli/bad.h", "CLI/App.hpp"), ("cli/flag_checks.cpp", "CLI/CLI.hpp"),
    ("cli/run/bad.cpp", "uv.h"), ("src/net/bad.h", "uv.h"),
    ("cli/run/bad.cpp", "sodium.h"), ("rendezvous/protocol/session.cpp", "sodium/utils.h"),
    ("src/net/bad.cpp", "ares.h"), ("rendezvous/discovery/bad.cpp", "ares_dns.h"),
    ("health/probe/bad.cpp", "sys/wait.h"), ("src/process/spawn.cpp", "sys/wait.h"),
])
def test_a_heavy_header_outside_its_wall_is_found(house, path, header):
    broken = house({path: f"#include <{header}>"})
    assert [line for line in broken if line.startswith(f"{path}:") and "stays behind" in line], broken


def test_cli11_in_two_files_is_found(house):
    broken = house({"cli/parse.cpp": "#include <CLI/CLI.hpp>", "cli/two.cpp": "#include <CLI/App.hpp>"})
    assert [line for line in broken if "not in 1" in line]


@pytest.mark.parametrize("code", [
    'const char* home = std::getenv("HOME");', 'auto x = secure_getenv("X");', "extern char** environ;",
    "char** all = environ;", 'setenv("A", "b", 1);', 'read_file("/proc/self/environ");',
    'open("/proc/self/cmdline");',
])
def test_reading_the_environment_below_cli_is_found(house, code):
    assert "cli/run/bad.cpp:1:" in house({"cli/run/bad.cpp": code})[0]
    assert house({"cli/good.cpp": code}) == []


def test_words_about_the_environment_are_no_reading_of_it(house):
    assert house({"cli/run/good.cpp": '// getenv("X")\nlog("environ = getenv() is not used");\n'
                  'auto environment = plan.environment; path("/proc/" + pid + "/environ");'}) == []


@pytest.mark.parametrize("needed", ["elastic_net", "elastic_uv", "elastic_process", "Threads::Threads",
                                    "${UV_STATIC_LIBRARY}", "PkgConfig::uv", "elastic_middle"])
def test_a_pure_target_that_links_libuv_is_found(house, needed):
    broken = house({
        "rendezvous/coordinator/bad.cpp": "int i;", "src/net/bad.cpp": "int i;",
        "rendezvous/coordinator/CMakeLists.txt": f"elastic_library(NAME bad SOURCES bad.cpp # comment\n DEPS {needed})",
        "src/net/CMakeLists.txt": "add_library(elastic_middle STATIC bad.cpp)\n"
                                  "target_link_libraries(elastic_middle PUBLIC elastic_uv)"})
    assert [line for line in broken if line.startswith("rendezvous/coordinator/bad.cpp:") and "its CMake target bad" in
            line and "links" in line], broken


def test_a_pure_file_in_no_target_is_found(house):
    assert house({"rendezvous/coordinator/bad.cpp": "int i;"}) == ["rendezvous/coordinator/bad.cpp: is in no CMake target"]
