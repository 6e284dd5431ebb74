#include "health/hang/hang_facts.h"

#include <doctest/doctest.h>

namespace elastic::hang {
namespace {

// Two nodes of one rank each, whose recorders nobody could ask. The first one has the store.
JobFacts job() {
  JobFacts facts{.world_size = 2};
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    NodeFacts& node = facts.nodes.emplace_back();
    node.has_answered = true;
    node.ranks.push_back({.rank = rank,
                          .state = ThreadState::kSleeps,
                          .recorder = {Source::kRefused, "it has no pipe"},
                          .reads_dump_key = true});
  }
  facts.nodes[0].store_source = {Source::kHad, {}};
  return facts;
}

}  // namespace

TEST_CASE("the key is set where a recorder was not had in any way, and a thread of its rank looks for the key") {
  for (const Source had : {Source::kNotAsked, Source::kRefused, Source::kLate, Source::kLost}) {
    CAPTURE(static_cast<int>(had));
    JobFacts facts = job();
    facts.nodes[0].ranks[0].recorder = {Source::kHad, {}};
    facts.nodes[1].ranks[0].recorder = {had, {}};
    CHECK(want_dump_key(facts));
    facts.nodes[1].ranks[0].reads_dump_key = false;  // gloo, or the engine nccl2
    CHECK(!want_dump_key(facts));
  }
}

TEST_CASE("no key is set where all recorders were had, be it in part") {
  JobFacts facts = job();
  facts.nodes[0].ranks[0].recorder = {Source::kHad, {}};
  facts.nodes[1].ranks[0].recorder = {Source::kPartial, "its dump is cut off"};
  CHECK(!want_dump_key(facts));
}

TEST_CASE("no key is set for ranks that are stopped or gone, nor in a store of a worker's") {
  for (const ThreadState state : {ThreadState::kStopped, ThreadState::kGone}) {
    JobFacts facts = job();
    for (NodeFacts& node : facts.nodes) node.ranks[0].state = state;
    CHECK(!want_dump_key(facts));
  }
  JobFacts facts = job();
  REQUIRE(want_dump_key(facts));
  facts.nodes[0].store_source = {};
  CHECK(!want_dump_key(facts));
}

TEST_CASE("a rank in state D can still dump: the thread that looks is another one") {
  RankFacts rank{.state = ThreadState::kDisk, .reads_dump_key = true};
  CHECK(can_still_dump(rank));
}

}  // namespace elastic::hang
