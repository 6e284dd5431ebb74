#include "cli/run/wrap.h"

#include <doctest/doctest.h>

using namespace elastic::run;
using Words = std::vector<std::string>;

TEST_CASE("the first rule that names a rank wraps it; one without ranks names all") {
  const std::vector<WrapRule> rules = {{.ranks = {{0, 0}, {4, 6}}, .program = "a"}, {.ranks = {{6, 7}}, .program = "b"}};
  CHECK(rule_of(rules, 0)->program == "a");
  CHECK(rule_of(rules, 1) == nullptr);
  CHECK(rule_of(rules, 6)->program == "a");
  CHECK(rule_of(rules, 7)->program == "b");
  CHECK(rule_of(rules, 8) == nullptr);
  CHECK(rule_of(std::vector<WrapRule>{{.program = "all"}}, 1'000)->program == "all");
}

TEST_CASE("a wrapping command gets what it asks for, and behind it the worker's own command") {
  const WrapRule rule{.program = "/bin/nsys", .arguments = {"nsys", "-o", "%r.%l.%n.%a", "100%%", "%j%", "%x"}};
  const WrappedWorker worker{.rank = 12, .local_rank = 4, .node_rank = 1, .restart_count = 3, .job = "j%r"};
  CHECK(wrapped_arguments(rule, worker, "/usr/bin/python3", {"python3", "-u", "train.py", "%r"}) ==
        Words{"nsys", "-o", "12.4.1.3", "100%", "j%r%", "%x", "/usr/bin/python3", "-u", "train.py", "%r"});
}

TEST_CASE("a rank that the world does not have is found") {
  const std::vector<WrapRule> rules = {{.ranks = {{0, 3}}}, {.ranks = {{6, 9}}}, {}};
  CHECK(rank_outside(rules, 10) == std::nullopt);
  CHECK(rank_outside(rules, 8) == 8);
  CHECK(rank_outside(rules, 4) == 6);
  CHECK(rank_outside(rules, 2) == 2);
}
