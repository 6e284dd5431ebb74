#include "health/hang_evidence/recorder_facts.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "health/hang/hang_judge.h"

namespace elastic::hang {
namespace {

using evidence::FlightFacts;
using evidence::FlightGroup;
using evidence::FlightOperation;

// A group whose newest collective has this number, and is over or not.
FlightGroup group(std::int64_t number, bool is_over, const std::string& name = "0",
                  const std::string& description = "default_pg", std::vector<int> members = {}) {
  FlightGroup known;
  known.name = name;
  known.description = description;
  known.members = std::move(members);
  known.enqueued = number;
  known.completed = is_over ? number : number - 1;
  FlightOperation& newest = known.newest.emplace();
  newest.backend = "gloo";
  newest.name = "all_reduce";
  newest.sequence = number;
  newest.is_over = is_over;
  return known;
}
// The same, whose newest operation is a message from the group's rank 1 that has not come.
FlightGroup receiving(FlightGroup known) {
  known.newest->name = "recv";
  known.newest->peer = 1;
  known.newest->sequence = 9;
  known.newest->is_p2p = true;
  known.newest->is_over = false;
  return known;
}
RankRecorder dump(std::int32_t rank, std::vector<FlightGroup> groups) {
  RankRecorder recorder{.rank = rank};
  recorder.dump.emplace().groups = std::move(groups);
  recorder.dump->entries = 1;
  return recorder;
}
using Recorders = std::vector<RankRecorder>;

// The verdict about a job on one node of which nothing but recorders is known.
HangVerdict judged(const Recorders& recorders, std::int32_t world_size) {
  NodeFacts node = recorder_facts_of(recorders, world_size);
  node.name = "gpu-0";
  node.has_answered = true;
  node.own_ranks = RankRuns::all(world_size);
  return judge(HangPicture({.world_size = world_size, .nodes = {node}}));
}

}  // namespace

TEST_CASE("ranks that are equally far in a group are one fact, and each recorder that was read is had") {
  const NodeFacts facts = recorder_facts_of(
      Recorders{dump(0, {group(4, false)}), dump(1, {group(3, true)}), dump(2, {group(4, false)})}, 3);
  REQUIRE(facts.groups.size() == 1);
  CHECK(facts.groups[0] == Group{.name = "default_pg (gloo)", .members = RankRuns::all(3)});
  REQUIRE(facts.group_facts.size() == 2);
  CHECK(facts.group_facts[0].ranks.text() == "0,2");
  CHECK(facts.group_facts[0].enqueued == 4);
  CHECK(facts.group_facts[0].retired == 3);
  CHECK(facts.group_facts[0].operation == "all_reduce");
  CHECK(facts.group_facts[1].ranks.text() == "1");
  CHECK(facts.group_facts[1].retired == 3);
  for (const RankFacts& rank : facts.ranks) CHECK(rank.recorder == SourceFacts{Source::kHad});
}

TEST_CASE("a rank behind in gloo's default group is the culprit, and one that has no dump leads to nothing") {
  const HangVerdict behind =
      judged({dump(0, {group(4, false)}), dump(1, {group(3, true)}), dump(2, {group(4, false)})}, 3);
  CHECK(behind.rule == 7);
  CHECK(behind.culprits.at(0).rank == 1);
  const RankRecorder lost{.rank = 1, .why_not = {Source::kLost, "it calls a function: os.system"}};
  CHECK(judged({dump(0, {group(4, false)}), lost, dump(2, {group(4, false)})}, 3).rule == 11);
}

TEST_CASE("gloo's other groups do not name their members: they are open, the same by their name") {
  const NodeFacts facts = recorder_facts_of(
      Recorders{dump(0, {group(4, false, "3", "undefined")}), dump(2, {group(4, false, "3", "undefined")})}, 4);
  REQUIRE(facts.groups.size() == 1);
  CHECK(facts.groups[0].name == "3 (gloo)");
  CHECK(facts.groups[0].members.text() == "0,2");
  CHECK(facts.groups[0].is_open);
}

TEST_CASE("a group that names its members has them all, of a great one with gaps those of this node") {
  NodeFacts facts = recorder_facts_of(Recorders{dump(1, {group(4, false, "5", "tp_0", {0, 1, 2, 3})})}, 8);
  REQUIRE(facts.groups.size() == 1);
  CHECK(facts.groups[0].name == "tp_0 (5, gloo)");
  CHECK(facts.groups[0].members.text() == "0-3");
  CHECK(facts.groups[0].size == 4);
  CHECK(facts.groups[0].digest != 0);
  CHECK(!facts.groups[0].is_open);
  std::vector<int> even;
  for (int rank = 0; rank < 100; rank += 2) even.push_back(rank);
  facts = recorder_facts_of(Recorders{dump(2, {group(4, false, "6", "dp_0", even)}), dump(3, {})}, 100);
  CHECK(facts.groups[0].members.text() == "2");
  CHECK(facts.groups[0].size == 50);
  // Ranks that this world has not are another's numbers.
  facts = recorder_facts_of(Recorders{dump(2, {group(4, false, "6", "dp_0", even)})}, 10);
  CHECK(facts.groups[0].is_open);
}

TEST_CASE("a group with two backends is counted for each, and by NCCL has its own name") {
  FlightGroup nccl = group(7, true);
  nccl.newest->backend = "nccl";
  FlightGroup sub_group = group(5, true, "5", "tp_0", {0, 1});
  sub_group.newest->backend = "nccl";
  const NodeFacts facts = recorder_facts_of(Recorders{dump(0, {nccl, group(2, false), sub_group}), dump(1, {nccl})}, 2);
  REQUIRE(facts.groups.size() == 3);
  CHECK(facts.groups[0].name == "default_pg");
  CHECK(facts.groups[1].name == "default_pg (gloo)");
  CHECK(facts.groups[2].name == "tp_0 (5)");
  REQUIRE(facts.group_facts.size() == 3);
  CHECK(facts.group_facts[0].ranks.text() == "0-1");
  CHECK(facts.group_facts[1].ranks.text() == "0");
  CHECK(facts.group_facts[1].enqueued == 2);
}

TEST_CASE("a dump that is cut off, or has entries that cannot be used, says nothing about groups and is partial") {
  RankRecorder cut = dump(1, {group(3, true)});
  cut.dump->is_cut = true;
  NodeFacts facts = recorder_facts_of(Recorders{cut}, 3);
  CHECK(facts.group_facts.empty());
  CHECK(facts.ranks[0].recorder == SourceFacts{Source::kPartial, "its dump is cut off"});
  RankRecorder torn = dump(1, {group(3, true)});
  torn.dump->entries_left_out = 2;
  facts = recorder_facts_of(Recorders{torn}, 3);
  CHECK(facts.group_facts.empty());
  CHECK(facts.ranks[0].recorder.state == Source::kPartial);
}

TEST_CASE("a ring that has dropped entries is partial, and what it says counts all the same") {
  RankRecorder old = dump(1, {group(3000, true)});
  old.dump->oldest_record = 1000;
  const NodeFacts facts = recorder_facts_of(Recorders{old}, 3);
  CHECK(facts.group_facts.size() == 1);
  CHECK(facts.ranks[0].recorder.state == Source::kPartial);
}

TEST_CASE("a group of which nothing is over yet waits from its first collective on, or from its newest") {
  FlightGroup known = group(2, false);
  known.completed.reset();
  RankRecorder recorder = dump(0, {known});
  CHECK(recorder_facts_of(Recorders{recorder}, 2).group_facts.at(0).retired == 0);
  recorder.dump->oldest_record = 9;
  CHECK(recorder_facts_of(Recorders{recorder}, 2).group_facts.at(0).retired == 1);
}

TEST_CASE("a send or receive that is not over waits for its partner, a rank of the job by the group's members") {
  FlightGroup known = receiving(group(4, true, "7", "pp_1", {2, 5}));
  const NodeFacts facts = recorder_facts_of(Recorders{dump(2, {known})}, 8);
  REQUIRE(facts.group_facts.size() == 2);
  CHECK(facts.group_facts[0].operation.empty());
  CHECK(facts.group_facts[1].partner == 5);
  CHECK(facts.group_facts[1].operation == "recv");
  known.newest->is_over = true;
  CHECK(recorder_facts_of(Recorders{dump(2, {known})}, 8).group_facts.size() == 1);
}

TEST_CASE("a rank that waits for a message from somebody unknown says nothing, so that it is not named elsewhere") {
  const FlightGroup known = receiving(group(4, true, "7", "undefined"));
  const NodeFacts facts = recorder_facts_of(Recorders{dump(1, {group(3, true), known})}, 8);
  CHECK(facts.group_facts.empty());
  CHECK(facts.ranks[0].recorder.state == Source::kPartial);
}

TEST_CASE("for people there is a line for each rank that was asked") {
  const RankRecorder late{.rank = 1, .why_not = {Source::kLate, "it has written no dump within 7 s"}};
  const RankRecorder off{.rank = 2};
  CHECK(recorder_lines(Recorders{dump(0, {group(4, false)}), late, off}) ==
        std::vector<std::string>{"rank 0: all_reduce number 4 of group \"0\", not over",
                                 "rank 1: late, it has written no dump within 7 s"});
}

}  // namespace elastic::hang
