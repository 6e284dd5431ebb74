#include "cli/run/wrap.h"

#include <doctest/doctest.h>

using namespace elastic::run;
using Words = std::vector<std::string>;

TEST_CASE("the first rule that names a rank wraps it; one without ranks names all") {
  const std::vector<WrapRule> rules = {{.ranks = {{0, 0}, {4, 6}}, .program = "a"},
                                       {.ranks = {{6, 7}}, .program = "b"}};
  const auto program_of = [](const std::vector<WrapRule>& all, int rank) {
    return wrapped(all, {.rank = rank}, {.program = "own", .arguments = {"own"}}).program;
  };
  CHECK(program_of(rules, 0) == "a");
  CHECK(program_of(rules, 1) == "own");
  CHECK(program_of(rules, 6) == "a");
  CHECK(program_of(rules, 7) == "b");
  CHECK(program_of(rules, 8) == "own");
  CHECK(program_of({{.program = "all"}}, 1'000) == "all");
}

TEST_CASE("a wrapping command gets what it asks for, and behind it the worker's own command") {
  const std::vector<WrapRule> rules = {
      {.program = "/bin/nsys", .arguments = {"nsys", "-o", "%r.%l.%n.%a", "100%%", "%j%", "%x"}}};
  const WrappedWorker worker{.rank = 12, .local_rank = 4, .node_rank = 1, .restart_count = 3, .job = "j%r"};
  const WorkerCommand own{.program = "/usr/bin/python3", .arguments = {"python3", "-u", "train.py", "%r"}};
  const WorkerCommand command = wrapped(rules, worker, own);
  CHECK(command.program == "/bin/nsys");
  CHECK(command.arguments ==
        Words{"nsys", "-o", "12.4.1.3", "100%", "j%r%", "%x", "/usr/bin/python3", "-u", "train.py", "%r"});
  CHECK(wrapped({}, worker, own).arguments == own.arguments);
}

TEST_CASE("a rank that the world does not have is found") {
  const std::vector<WrapRule> rules = {{.ranks = {{0, 3}}}, {.ranks = {{6, 9}}}, {}};
  CHECK(rank_outside(rules, 10) == std::nullopt);
  CHECK(rank_outside(rules, 8) == 8);
  CHECK(rank_outside(rules, 4) == 6);
  CHECK(rank_outside(rules, 2) == 2);
}
