#include "health/hang/hang_facts.h"

#include <doctest/doctest.h>

#include <string>

#include "src/base/json_archive.h"

namespace elastic::hang {
namespace {

NodeFacts node_of_two() {
  return {.name = "gpu-03",
          .own_ranks = RankRuns::of({4, 5}),
          .has_answered = true,
          .stacks = {Source::kHad},
          .xid = 79,
          .different_stacks = {{{{"all_reduce", "distributed_c10d.py", 2806}, {"step", "train.py", 150}}},
                               {{{"load_batch", "data.py", 88}}}},
          .ranks = {{.rank = 4,
                     .beat = BeatKind::kStepLine,
                     .beat_age_ms = 250'000,
                     .state = ThreadState::kSleeps,
                     .wchan = "futex_do_wait",
                     .stack = std::uint16_t{0},
                     .recorder = {Source::kHad},
                     .gpu_watts = 118.5},
                    {.rank = 5,
                     .pid = 4711,
                     .stack = std::uint16_t{1},
                     .child_stack = std::uint16_t{1},
                     .recorder = {Source::kHad}}},
          .groups = {{"tp_0", RankRuns::all(8)}},
          .group_facts = {{.group = 0,
                           .ranks = RankRuns::of({4}),
                           .enqueued = 1904,
                           .retired = 1903,
                           .operation = "all_reduce",
                           .digest = digest_of("[[4096],float]")},
                          {.group = 0, .ranks = RankRuns::of({5}), .enqueued = 1903, .retired = 1903}},
          .ras = RasFacts{.missing = RankRuns::of({7})},
          .store = StoreFacts{.absent = RankRuns::of({1}), .waiting = RankRuns::of({0, 2})}};
}

}  // namespace

TEST_CASE("facts are the same after a way through another form") {
  const NodeFacts facts = node_of_two();
  NodeFacts read;
  CHECK(read_json(write_json(facts, JsonForm::kExact), read, JsonForm::kExact) == "");
  CHECK(read == facts);
}

TEST_CASE("facts within their bounds stay as they are") { CHECK(within_bounds(node_of_two(), 8) == node_of_two()); }

TEST_CASE("texts that a node sends become printable and are cut") {
  NodeFacts facts = node_of_two();
  facts.name = "gpu\x1b[2J";
  facts.different_stacks[1].frames[0] = {std::string(1000, 'f'), "da\nta.py", 3};
  facts.stacks.why = "Yama\x07";
  facts.ranks[0].wchan = "\xff";
  facts.group_facts[0].operation = "all\treduce";
  facts = within_bounds(facts, 8);
  CHECK(facts.name == "gpu\\x1b[2J");
  CHECK(facts.different_stacks[1].frames[0].function.size() <= bounds::kNameBytes + 3);
  CHECK(facts.different_stacks[1].frames[0].file == "da\\x0ata.py");
  CHECK(facts.stacks.why == "Yama\\x07");
  CHECK(facts.ranks[0].wchan == "\\xff");
  CHECK(facts.group_facts[0].operation == "all\\x09reduce");
}

TEST_CASE("a stack that is not in the list is none, and frames beyond the eighth are dropped") {
  NodeFacts facts = node_of_two();
  facts.ranks[0].stack = 2;
  facts.different_stacks[0].frames.resize(20);
  facts = within_bounds(facts, 8);
  CHECK(!facts.ranks[0].stack);
  CHECK(facts.ranks[1].stack == 1);
  CHECK(facts.different_stacks[0].frames.size() == bounds::kFrames);
}

TEST_CASE("a node speaks for its own ranks only, and once for each") {
  NodeFacts facts = node_of_two();
  facts.ranks.push_back({.rank = 0, .state = ThreadState::kStopped});
  facts.ranks.push_back({.rank = 4, .state = ThreadState::kStopped});
  facts.group_facts.push_back({.group = 0, .ranks = RankRuns::of({0}), .enqueued = 1});
  facts = within_bounds(facts, 8);
  CHECK(facts.ranks.size() == 2);
  CHECK(facts.ranks[0].state == ThreadState::kSleeps);
  CHECK(facts.group_facts.size() == 2);
}

TEST_CASE("where one fact of a rank about its groups makes no sense, none of them is used") {
  for (const auto& spoil : std::initializer_list<void (*)(GroupFact&)>{
           [](GroupFact& fact) { fact.group = 1; }, [](GroupFact& fact) { fact.enqueued = -1; },
           [](GroupFact& fact) { fact.retired = 1905; }, [](GroupFact& fact) { fact.partner = 8; }}) {
    NodeFacts facts = node_of_two();
    facts.group_facts.push_back(facts.group_facts[0]);
    spoil(facts.group_facts[2]);
    facts = within_bounds(facts, 8);
    REQUIRE(facts.group_facts.size() == 1);
    CHECK(facts.group_facts[0].ranks.text() == "5");
    CHECK(facts.ranks[0].recorder.state == Source::kLost);
    CHECK(facts.ranks[1].recorder.state == Source::kHad);
  }
}

TEST_CASE("a fact about a group that there is not is not used, though it is one of no rank") {
  NodeFacts facts = node_of_two();
  facts.group_facts = {{.group = 1, .ranks = RankRuns::of({99}), .enqueued = 1},
                       {.group = 0, .ranks = RankRuns::of({5}), .enqueued = 1}};
  const NodeFacts bounded = within_bounds(facts, 8);
  REQUIRE(bounded.group_facts.size() == 1);
  CHECK(bounded.group_facts[0].group == 0);
  CHECK(within_bounds(node_of_two(), 0).group_facts.empty());
}

TEST_CASE("where there are too many facts about groups, no rank of the node has said all") {
  NodeFacts facts = node_of_two();
  facts.group_facts.resize(bounds::kGroupFacts + 1, facts.group_facts[0]);
  facts = within_bounds(facts, 8);
  CHECK(facts.group_facts.empty());
  CHECK(facts.ranks[0].recorder.state == Source::kLost);
}

TEST_CASE("of a node that has not answered nothing counts but that") {
  NodeFacts facts = node_of_two();
  facts.has_answered = false;
  facts.lost = "its connection was reset";
  facts = within_bounds(facts, 8);
  CHECK(facts == NodeFacts{.name = "gpu-03", .own_ranks = RankRuns::of({4, 5}), .lost = "its connection was reset"});
}

TEST_CASE("a digest tells sizes apart, and is never the one of nothing known") {
  CHECK(digest_of("[[1]]") != digest_of("[[2]]"));
  CHECK(digest_of("[[1]]") == digest_of("[[1]]"));
  CHECK(digest_of("") != 0);
}

}  // namespace elastic::hang
