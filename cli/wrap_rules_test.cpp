#include "cli/wrap_rules.h"

#include <doctest/doctest.h>

#include "cli/host_test_support.h"

using namespace elastic;
using namespace elastic::cli;
using Words = std::vector<std::string>;

namespace {

Result<std::vector<run::WrapRule>> read(const std::string& text) {
  FakeHost host;
  host.program("/usr/bin/nsys");
  host.program("/opt/gdb");
  host.file("/opt/notes");
  return read_wrap_rules(text, "--wrap='...'", {"PATH=/bin:/usr/bin"}, host);
}

std::string reason(const std::string& text) {
  const auto rules = read(text);
  REQUIRE_FALSE(rules.has_value());
  CHECK(rules.error().what == "--wrap='...'");
  CHECK_FALSE(rules.error().remedy.empty());
  return rules.error().reason;
}

}  // namespace

TEST_CASE("a rule names ranks and a command, which is found on PATH") {
  const auto rules = read("0, 8-15:nsys profile -o 'a b %r'\nall:/opt/gdb --args");
  REQUIRE(rules.has_value());
  REQUIRE(rules->size() == 2);
  const run::WrapRule& first = rules->front();
  REQUIRE(first.ranks.size() == 2);
  CHECK(first.ranks[0].first == 0);
  CHECK(first.ranks[0].last == 0);
  CHECK(first.ranks[1].first == 8);
  CHECK(first.ranks[1].last == 15);
  CHECK(first.program == "/usr/bin/nsys");
  CHECK(first.arguments == Words{"nsys", "profile", "-o", "a b %r"});
  CHECK(rules->back().ranks.empty());
  CHECK(rules->back().program == "/opt/gdb");
}

TEST_CASE("what is no rule is refused with its reason") {
  CHECK(reason("nsys profile").contains("no colon"));
  for (const char* ranks : {"", "x", "-1", "3-1", "0,", "1-", "99999999999"}) {
    CHECK(reason(std::string(ranks) + ":nsys").contains("names no ranks"));
  }
  CHECK(reason("0:").contains("no command"));
  CHECK(reason("0:nsys 'a").contains("quote"));
  CHECK(reason("0:perf record") == "perf: not found on PATH");
  CHECK(reason("0:/opt/notes") == "/opt/notes: not an executable file");
}
