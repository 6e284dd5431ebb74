#include "health/hang_evidence/stack_facts.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace elastic::hang {
namespace {

stacks::ProcessLook in(const std::string& function, const std::string& file = "train.py") {
  stacks::ProcessLook look{.pid = 4711};
  look.threads = {{.id = 4711, .frames = {{function, file, 3}, {"main", "train.py", 9}}}};
  return look;
}
stacks::ProcessLook without_stack(const std::string& problem, bool is_late = false) {
  stacks::ProcessLook look{.pid = 4711, .problem = problem, .is_late = is_late};
  look.threads = {{.id = 4711}};
  return look;
}
stacks::RankLook rank(int number, stacks::ProcessLook process, std::vector<stacks::ProcessLook> children = {}) {
  return {.rank = number, .process = std::move(process), .children = std::move(children)};
}

using Looks = std::vector<stacks::RankLook>;

// What is known of a rank: the innermost functions of its stack, of that before, of its child.
std::string told(const NodeFacts& facts, std::size_t at) {
  const auto name = [&](const std::optional<std::uint16_t>& place) {
    return place ? facts.different_stacks.at(*place).frames.at(0).function : std::string("-");
  };
  const RankFacts& rank = facts.ranks.at(at);
  return name(rank.stack) + " " + name(rank.stack_then) + " " + name(rank.child_stack);
}

}  // namespace

TEST_CASE("each different stack is there once, and each rank has its two") {
  NodeFacts facts;
  facts.ranks = {{.rank = 4, .pid = 17, .state = ThreadState::kSleeps}};
  add_stacks(facts, Looks{rank(4, in("all_reduce")), rank(5, in("load"))},
             Looks{rank(4, in("all_reduce")), rank(5, in("decode"))});
  CHECK(facts.stacks == SourceFacts{Source::kHad});
  REQUIRE(facts.ranks.size() == 2);
  CHECK(facts.ranks[0].pid == 17);
  CHECK(facts.ranks[0].state == ThreadState::kSleeps);
  CHECK(facts.ranks[1].rank == 5);
  CHECK(told(facts, 0) == "all_reduce all_reduce -");
  CHECK(told(facts, 1) == "decode load -");
  CHECK(facts.different_stacks.size() == 3);
}

TEST_CASE("of a stack the innermost frames are kept, and names are cut and made printable") {
  stacks::ProcessLook deep = in("f");
  for (int i = 0; i < 20; ++i) deep.threads[0].frames.push_back({"older", "a.py", i});
  deep.threads[0].frames[0].function = std::string(1000, 'x');
  deep.threads[0].frames[1].function = "\x1b[31m";
  NodeFacts facts;
  add_stacks(facts, {}, Looks{rank(0, deep)});
  const Stack& stack = facts.different_stacks.at(0);
  CHECK(stack.frames.size() == bounds::kFrames);
  CHECK(stack.frames[0].function.size() <= bounds::kNameBytes);
  CHECK(stack.frames[1].function.find('\x1b') == std::string::npos);
}

TEST_CASE("of a worker's children the one with the rarest stack tells, helpers of Python do not") {
  NodeFacts facts;
  const auto helper = in("main", "/usr/lib/python3.11/multiprocessing/resource_tracker.py");
  add_stacks(facts, {},
             Looks{rank(0, in("get"), {in("idle"), helper, in("idle"), in("fetch")}), rank(1, in("get"), {helper}),
                   rank(2, in("get"), {in("idle")})});
  CHECK(told(facts, 0) == "get - fetch");
  CHECK(told(facts, 1) == "get - -");
  CHECK(told(facts, 2) == "get - idle");
}

TEST_CASE("where the worker is no Python its stack is that of the first Python that it has started") {
  NodeFacts facts;
  add_stacks(facts, {},
             Looks{rank(0, without_stack("no Python"), {without_stack("no Python"), in("step"), in("load")})});
  CHECK(told(facts, 0) == "step - load");
  CHECK(facts.stacks.state == Source::kHad);
}

TEST_CASE("a second look that did not come leaves the first one, of which it is not said that it lasts") {
  NodeFacts facts;
  add_stacks(facts, Looks{rank(0, in("all_reduce"))}, {});
  CHECK(told(facts, 0) == "all_reduce - -");
  CHECK(facts.stacks.state == Source::kHad);
  facts = {};
  add_stacks(facts, Looks{rank(0, in("all_reduce"))}, Looks{rank(0, without_stack("too late", true))});
  CHECK(told(facts, 0) == "all_reduce - -");
}

TEST_CASE("the source is partial where a rank has no stack, and refused or late where none has one") {
  NodeFacts facts;
  add_stacks(facts, {}, Looks{rank(0, in("f")), rank(1, without_stack("Yama"))});
  CHECK(facts.stacks == SourceFacts{Source::kPartial, "of 1 of 2 ranks: Yama"});
  facts = {};
  add_stacks(facts, {}, Looks{rank(0, without_stack("Yama"))});
  CHECK(facts.stacks == SourceFacts{Source::kRefused, "Yama"});
  facts = {};
  add_stacks(facts, {}, Looks{rank(0, without_stack("no time", true)), rank(1, without_stack("Yama"))});
  CHECK(facts.stacks == SourceFacts{Source::kLate, "no time"});
  facts = {};
  add_stacks(facts, {}, {});
  CHECK(facts.stacks.state == Source::kLate);
}

}  // namespace elastic::hang
