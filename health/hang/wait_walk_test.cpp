#include "health/hang/wait_walk.h"

#include <doctest/doctest.h>

namespace elastic::hang {
namespace {

constexpr std::uint32_t kHere = 0;

// Ranks whose newest collective of a group is, or is not, over.
GroupFact waits(std::uint32_t group, std::vector<std::int32_t> ranks, std::int64_t number,
                std::string operation = "all_reduce", std::uint32_t digest = 7) {
  return {.group = group,
          .ranks = RankRuns::of(std::move(ranks)),
          .enqueued = number,
          .retired = number - 1,
          .operation = std::move(operation),
          .digest = digest};
}
GroupFact over(std::uint32_t group, std::vector<std::int32_t> ranks, std::int64_t number) {
  return {.group = group,
          .ranks = RankRuns::of(std::move(ranks)),
          .enqueued = number,
          .retired = number,
          .operation = "all_reduce"};
}
GroupFact counted_by_ras(std::vector<std::int32_t> ranks, std::int64_t number, std::uint32_t digest = 7) {
  return {.ranks = RankRuns::of(std::move(ranks)), .enqueued = number, .digest = digest};
}

WaitFacts world(std::int32_t size, std::vector<Group> groups, std::vector<GroupFact> facts) {
  return {.world_size = size, .groups = std::move(groups), .facts = std::move(facts), .complete = RankRuns::all(size)};
}
WaitFacts one_group(std::int32_t size, std::vector<GroupFact> facts) {
  return world(size, {{"tp_0", RankRuns::all(size)}}, std::move(facts));
}

RankRuns culprits(const WaitWalk& found) {
  RankRuns ranks;
  for (const WaitWalk::Culprit& culprit : found.culprits) ranks.add(culprit.rank);
  return ranks;
}

}  // namespace

TEST_CASE("a rank that has not launched what all others wait in is the culprit") {
  const WaitWalk found = walk(one_group(8, {waits(kHere, {0, 1, 2, 3, 4, 6, 7}, 1904), over(kHere, {5}, 1903)}));
  REQUIRE(culprits(found).text() == "5");
  CHECK(found.culprits[0].behind == WaitWalk::Behind{.group = "tp_0",
                                                     .operation = "all_reduce",
                                                     .number = 1904,
                                                     .reached = 1903,
                                                     .waiting = RankRuns::of({0, 1, 2, 3, 4, 6, 7})});
  CHECK(found.cycle.empty());
  CHECK(found.stuck.empty());
}

TEST_CASE("a rank that has launched nothing in a group is behind, if it has said all") {
  WaitFacts facts = one_group(3, {waits(kHere, {0, 2}, 1)});
  CHECK(culprits(walk(facts)).text() == "1");
  facts.complete = RankRuns::of({0, 2});
  const WaitWalk found = walk(facts);
  CHECK(found.culprits.empty());
  CHECK(found.maybe.text() == "1");
  CHECK(found.stuck.empty());
}

TEST_CASE("who waits in one group for a rank that waits in another leads to the one that waits nowhere") {
  // tp pairs {0,1} {2,3}; dp pairs {0,2} {1,3}. Rank 3 is behind in both of its groups, and rank 2 waits for it.
  const WaitFacts facts = world(4,
                                {{"tp_0", RankRuns::of({0, 1})},
                                 {"tp_1", RankRuns::of({2, 3})},
                                 {"dp_0", RankRuns::of({0, 2})},
                                 {"dp_1", RankRuns::of({1, 3})}},
                                {over(0, {0, 1}, 9), waits(1, {2}, 9), over(1, {3}, 8), waits(2, {0}, 5),
                                 over(2, {2}, 4), waits(3, {1}, 5), over(3, {3}, 4)});
  CHECK(culprits(walk(facts)).text() == "3");
}

TEST_CASE("ranks that wait for each other in two groups are a cycle, and nobody is behind") {
  const WaitWalk found = walk(world(2, {{"a", RankRuns::all(2)}, {"b", RankRuns::all(2)}},
                                    {waits(0, {0}, 4), over(0, {1}, 3), waits(1, {1}, 7), over(1, {0}, 6)}));
  CHECK(found.cycle.text() == "0-1");
  CHECK(found.culprits.empty());
}

TEST_CASE("a cycle is found beside a culprit, and through three groups") {
  const WaitWalk found = walk(world(5,
                                    {{"a", RankRuns::of({0, 1})},
                                     {"b", RankRuns::of({1, 2})},
                                     {"c", RankRuns::of({0, 2})},
                                     {"d", RankRuns::of({3, 4})}},
                                    {waits(0, {0}, 1), waits(1, {1}, 1), waits(2, {2}, 1), waits(3, {3}, 1)}));
  CHECK(found.cycle.text() == "0-2");
  CHECK(culprits(found).text() == "4");
}

TEST_CASE("the same collective by number with another operation, or other sizes, is a mismatch with a minority") {
  WaitWalk found = walk(one_group(4, {waits(kHere, {0, 1, 3}, 5), waits(kHere, {2}, 5, "broadcast")}));
  REQUIRE(found.mismatch);
  CHECK(found.mismatch->number == 5);
  CHECK(!found.mismatch->is_even);
  CHECK(found.mismatch->sides[0].operation == "broadcast");
  CHECK(found.mismatch->sides[0].ranks.text() == "2");
  CHECK(found.mismatch->sides[1].ranks.text() == "0-1,3");
  found = walk(one_group(4, {waits(kHere, {0, 1}, 5), waits(kHere, {2, 3}, 5, "all_reduce", 8)}));
  REQUIRE(found.mismatch);
  CHECK(found.mismatch->is_even);
}

TEST_CASE("what is not known of a collective is no mismatch, and neither are sizes that may differ") {
  CHECK(!walk(one_group(2, {waits(kHere, {0}, 5), waits(kHere, {1}, 5, "", 7)})).mismatch);
  CHECK(!walk(one_group(2, {waits(kHere, {0}, 5), waits(kHere, {1}, 5, "all_reduce", 0)})).mismatch);
  CHECK(!walk(one_group(2, {waits(kHere, {0}, 5, "nccl:all_to_all", 1), waits(kHere, {1}, 5, "nccl:all_to_all", 2)}))
             .mismatch);
  CHECK(walk(one_group(2, {waits(kHere, {0}, 5, "gloo:all_reduce", 1), waits(kHere, {1}, 5, "gloo:all_reduce", 2)}))
            .mismatch);
}

TEST_CASE("a group whose members have all launched what is not over is stuck, and nobody is waited for") {
  const WaitWalk found = walk(one_group(3, {waits(kHere, {0, 1, 2}, 12)}));
  CHECK(found.stuck == std::vector{kHere});
  CHECK(found.stuck_number == 12);
  CHECK(found.stuck_operation == "all_reduce");
  CHECK(found.culprits.empty());
}

TEST_CASE("a rank whose own collective is not over is not behind, though others have launched more") {
  // Without waiting for it ranks 0 and 2 have launched two further ones; all have launched number 6.
  GroupFact ahead = waits(kHere, {0, 2}, 8);
  ahead.retired = 5;
  const WaitWalk found = walk(one_group(3, {ahead, waits(kHere, {1}, 6)}));
  CHECK(found.culprits.empty());
  CHECK(found.stuck == std::vector{kHere});
}

TEST_CASE("a group that may have members that nobody names is never stuck, and who it waits for is not known") {
  WaitFacts facts =
      world(3, {{.name = "7", .members = RankRuns::of({0, 2}), .is_open = true}}, {waits(kHere, {0, 2}, 12)});
  WaitWalk found = walk(facts);
  CHECK(found.stuck.empty());
  CHECK(found.stuck_members.empty());
  CHECK(found.culprits.empty());
  CHECK(found.maybe_more == 1);
  // One that is named and behind is waited for all the same.
  facts.facts = {waits(kHere, {0}, 12), over(kHere, {2}, 11)};
  found = walk(facts);
  CHECK(culprits(found).text() == "2");
  CHECK(found.maybe_more == 0);
  facts.groups[0].is_open = false;
  facts.facts = {waits(kHere, {0, 2}, 12)};
  CHECK(walk(facts).stuck_members.text() == "0,2");
}

TEST_CASE("of ranks that no group tells of, and that have not said all, nothing has been seen") {
  WaitFacts facts = world(5, {{"tp_0", RankRuns::of({0, 1})}}, {waits(kHere, {0, 1}, 12)});
  CHECK(walk(facts).unseen.empty());
  facts.complete = RankRuns::of({0, 3});
  CHECK(walk(facts).unseen.text() == "2,4");
}

TEST_CASE("sides of a mismatch that are equally great are in the order of their first ranks") {
  const WaitWalk found = walk(one_group(6, {waits(kHere, {0, 1}, 5, "reduce"), waits(kHere, {2, 3}, 5, "all_reduce"),
                                            waits(kHere, {4, 5}, 5, "broadcast")}));
  REQUIRE(found.mismatch);
  CHECK(found.mismatch->sides[0].ranks.text() == "0-1");
  CHECK(found.mismatch->sides[1].ranks.text() == "2-3");
  CHECK(found.mismatch->sides[2].ranks.text() == "4-5");
}

TEST_CASE("a group in which one is through is not stuck") {
  CHECK(walk(one_group(3, {waits(kHere, {0, 1}, 12), over(kHere, {2}, 12)})).stuck.empty());
}

TEST_CASE("who waits to receive waits for the sender, unless both have come") {
  const GroupFact recv{
      .ranks = RankRuns::of({2}), .enqueued = 3, .retired = 2, .operation = "nccl:recv 2<-1", .partner = 1};
  WaitWalk found = walk(one_group(3, {recv}));
  REQUIRE(culprits(found).text() == "1");
  CHECK(found.culprits[0].behind.operation == "nccl:recv 2<-1");
  const GroupFact send{
      .ranks = RankRuns::of({1}), .enqueued = 3, .retired = 2, .operation = "nccl:send 1->2", .partner = 2};
  found = walk(one_group(3, {recv, send}));
  CHECK(found.culprits.empty());
  CHECK(found.stuck == std::vector{kHere});
  WaitFacts facts = one_group(3, {recv});
  facts.complete = RankRuns::of({0, 2});
  CHECK(walk(facts).maybe.text() == "1");
  CHECK(walk(facts).culprits.empty());
}

TEST_CASE("a pipeline of receivers leads to its first stage") {
  std::vector<GroupFact> facts;
  for (int rank = 1; rank < 5; ++rank) {
    facts.push_back(
        {.ranks = RankRuns::of({rank}), .enqueued = 3, .retired = 2, .operation = "recv", .partner = rank - 1});
  }
  CHECK(culprits(walk(one_group(5, facts))).text() == "0");
}

TEST_CASE("by RAS the ranks with more collectives wait for the one with fewer, and equal counts are level") {
  CHECK(culprits(walk(one_group(4, {counted_by_ras({0, 1, 3}, 90), counted_by_ras({2}, 89)}))).text() == "2");
  const WaitWalk level = walk(one_group(4, {counted_by_ras({0, 1, 2, 3}, 90)}));
  CHECK(level.culprits.empty());
  CHECK(level.stuck == std::vector{kHere});
  CHECK(walk(one_group(4, {counted_by_ras({0, 1, 2}, 90), counted_by_ras({3}, 90, 8)})).mismatch);
}

TEST_CASE("by RAS nobody is behind in a group of which a member is not known: all may wait for that") {
  WaitFacts facts = one_group(4, {counted_by_ras({0}, 91), counted_by_ras({1}, 90), counted_by_ras({2}, 89)});
  CHECK(culprits(walk(facts)).text() == "3");  // it has said that it has launched nothing
  facts.complete = {};
  CHECK(walk(facts).culprits.empty());
  CHECK(walk(facts).maybe.text() == "3");
}

TEST_CASE("who has launched ahead waits only for those who lack its oldest collective that is not over") {
  GroupFact ahead = waits(kHere, {0}, 9);
  ahead.retired = 5;
  const WaitWalk found = walk(one_group(3, {ahead, waits(kHere, {1}, 6), over(kHere, {2}, 5)}));
  REQUIRE(culprits(found).text() == "2");
  CHECK(found.culprits[0].behind.number == 6);
  CHECK(found.culprits[0].behind.waiting.text() == "0-1");
}

TEST_CASE("by RAS a level group is not stuck where another one is not level") {
  WaitFacts facts = world(4, {{"tp", RankRuns::of({0, 1})}, {"dp", RankRuns::of({2, 3})}},
                          {counted_by_ras({0, 1}, 90), counted_by_ras({2}, 7), counted_by_ras({3}, 6)});
  facts.facts[1].group = facts.facts[2].group = 1;
  const WaitWalk found = walk(facts);
  CHECK(found.stuck.empty());
  CHECK(culprits(found).text() == "3");
}

TEST_CASE("a member of which nothing is known might be waited for, only where nobody else is") {
  WaitFacts facts = one_group(4, {waits(kHere, {0, 1}, 5), over(kHere, {2}, 4)});
  facts.complete = RankRuns::of({0, 1, 2});
  WaitWalk found = walk(facts);
  CHECK(culprits(found).text() == "2");
  CHECK(found.maybe.empty());
  facts = one_group(4, {waits(kHere, {0, 1, 2}, 5)});
  facts.complete = RankRuns::of({0, 1, 2});
  found = walk(facts);
  CHECK(found.maybe.text() == "3");
  CHECK(found.stuck.empty());
}

TEST_CASE("a rank of which nothing is known in one group may wait there, and is no culprit in another") {
  // Rank 1 waits for rank 0 in the first group, of which its own number is lost.
  WaitFacts facts = world(3, {{"tp", RankRuns::of({0, 1})}, {"dp", RankRuns::of({1, 2})}},
                          {counted_by_ras({0}, 8), counted_by_ras({1}, 4), counted_by_ras({2}, 5)});
  facts.facts[1].group = facts.facts[2].group = 1;
  facts.complete = {};
  CHECK(culprits(walk(facts)).empty());
  facts.facts.push_back(counted_by_ras({1}, 9));
  CHECK(culprits(walk(facts)).text() == "0");
}

TEST_CASE("a group with members that no node names may wait for one of these") {
  WaitFacts facts = one_group(4, {waits(kHere, {0, 1, 2}, 5)});
  facts.groups[0] = {.name = "tp_0", .members = RankRuns::of({0, 1, 2}), .digest = 1, .size = 4};
  const WaitWalk found = walk(facts);
  CHECK(found.stuck.empty());
  CHECK(found.maybe_more == 1);
  facts.groups[0].size = 3;
  CHECK(walk(facts).stuck == std::vector{kHere});
}

TEST_CASE("facts that name no group of the list, or no member, are ignored") {
  CHECK(!walk(one_group(2, {waits(3, {0}, 5)})).has_facts);
  CHECK(walk(world(4, {{"a", RankRuns::of({0, 1})}}, {waits(0, {0, 1}, 5), over(0, {3}, 1)})).culprits.empty());
  CHECK(walk({}).culprits.empty());
}

TEST_CASE("ten thousand ranks in two thousand groups, one behind: it is found, and with edges as many as members") {
  constexpr int kWorld = 10'000, kTensor = 8, kCulprit = 4'321;
  std::vector<Group> groups;
  std::vector<GroupFact> facts;
  for (int first = 0; first < kWorld; first += kTensor)
    groups.push_back({"tp", {.runs = {{first, first + kTensor - 1}}}});
  for (int local = 0; local < kTensor; ++local) {
    RankRuns members;
    for (int rank = local; rank < kWorld; rank += kTensor) members.add(rank);
    groups.push_back({"dp", members});
  }
  for (int rank = 0; rank < kWorld; ++rank) {
    const auto tp = static_cast<std::uint32_t>(rank / kTensor);
    const auto dp = static_cast<std::uint32_t>(kWorld / kTensor + rank % kTensor);
    const bool is_beside = rank / kTensor == kCulprit / kTensor;
    facts.push_back(is_beside && rank != kCulprit ? waits(tp, {rank}, 9) : over(tp, {rank}, rank == kCulprit ? 8 : 9));
    facts.push_back(is_beside ? over(dp, {rank}, 4) : waits(dp, {rank}, 5));
  }
  const WaitWalk found = walk(world(kWorld, groups, facts));
  CHECK(culprits(found).text() == "4321");
  CHECK(found.cycle.empty());
}

}  // namespace elastic::hang
