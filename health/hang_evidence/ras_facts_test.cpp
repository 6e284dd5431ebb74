#include "health/hang_evidence/ras_facts.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "health/hang/hang_judge.h"

namespace elastic::hang {
namespace {

using evidence::RasCommunicator;
using evidence::RasRank;
using evidence::RasReport;
using evidence::RasWorker;

constexpr std::int64_t kFirstPid = 100;

// A communicator of these ranks of the job, two to a host, which have launched so many AllReduces.
RasCommunicator communicator(const std::string& hash, const std::vector<std::pair<int, std::int64_t>>& launched) {
  RasCommunicator out{.hash = hash, .size = static_cast<std::int64_t>(launched.size())};
  for (const auto& [rank, count] : launched) {
    RasRank& added = out.ranks.emplace_back();
    added.rank = static_cast<int>(out.ranks.size()) - 1;
    added.process = {"10.0.0." + std::to_string(1 + rank / 2), kFirstPid + rank};
    added.launched[4] = count;
  }
  return out;
}
RasReport report(std::vector<RasCommunicator> communicators) {
  return {.nccl_version = "2.30.7", .has_counts = true, .communicators = std::move(communicators)};
}
RasCommunicator four(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return communicator("0x1f", {{0, a}, {1, b}, {2, c}, {3, d}});
}

// Ranks 0 and 1 are ours.
const std::vector<RasWorker> kOurs = {{{"10.0.0.1", kFirstPid}, 0}, {{"10.0.0.1", kFirstPid + 1}, 1}};

HangVerdict judged(const NodeFacts& said, std::int32_t world_size) {
  NodeFacts node = said;
  node.name = "gpu-0";
  node.has_answered = true;
  node.own_ranks = RankRuns::all(world_size);
  return judge(HangPicture({.world_size = world_size, .nodes = {node}}));
}

}  // namespace

TEST_CASE("a rank behind in both reports is the culprit, of another node, too, by the communicator of all ranks") {
  const RasReport same = report({four(90, 90, 89, 90)});
  const NodeFacts facts = ras_facts_of(same, same, kOurs, 4);
  CHECK(facts.ras_source == SourceFacts{Source::kHad});
  REQUIRE(facts.ras.has_value());
  CHECK(facts.ras->groups.at(0).members.text() == "0-3");
  CHECK(facts.ras->groups.at(0).size == 4);
  const HangVerdict verdict = judged(facts, 4);
  CHECK(verdict.rule == 7);
  CHECK(verdict.culprits.at(0).rank == 2);
}

TEST_CASE("of a rank that moves between the reports nothing is known") {
  const NodeFacts facts = ras_facts_of(report({four(90, 90, 88, 90)}), report({four(90, 90, 89, 90)}), kOurs, 4);
  REQUIRE(facts.ras->counts.size() == 1);
  CHECK(facts.ras->counts[0].ranks.text() == "0-1,3");
  CHECK(judged(facts, 4).rule == 11);
}

TEST_CASE("all that have launched the same are level") {
  const RasReport same = report({four(90, 90, 90, 90)});
  CHECK(judged(ras_facts_of(same, same, kOurs, 4), 4).rule == 10);
}

TEST_CASE("equal sums of other collectives are told apart by their digests") {
  RasCommunicator one = four(90, 90, 90, 90);
  one.ranks[3].launched = {1, 0, 0, 0, 89};
  const NodeFacts facts = ras_facts_of(report({one}), report({one}), kOurs, 4);
  CHECK(judged(facts, 4).rule == 6);
}

TEST_CASE("without a communicator of all ranks, or with one of other numbers, only our own ranks are known") {
  const RasReport pairs = report({communicator("0x2", {{0, 9}, {2, 8}})});
  NodeFacts facts = ras_facts_of(pairs, pairs, kOurs, 4);
  CHECK(facts.ras->groups.at(0).members.text() == "0");
  CHECK(facts.ras->groups.at(0).size == 2);
  CHECK(judged(facts, 4).rule == 11);
  const RasReport turned = report({communicator("0x3", {{3, 8}, {2, 9}, {1, 9}, {0, 9}})});
  facts = ras_facts_of(turned, turned, kOurs, 4);
  CHECK(facts.ras->groups.at(0).members.text() == "0-1");
}

TEST_CASE("a communicator without a process of ours is another job's, and a report of such alone is refused") {
  RasCommunicator foreign = four(5, 5, 4, 5);
  for (RasRank& rank : foreign.ranks) rank.process.pid += 1000;
  const NodeFacts facts = ras_facts_of(report({foreign}), report({foreign}), kOurs, 4);
  CHECK(facts.ras_source == SourceFacts{Source::kRefused, "what answers is another job's"});
  CHECK(!facts.ras);
  CHECK(ras_facts_of(report({}), report({}), kOurs, 4).ras_source.state == Source::kRefused);
}

TEST_CASE("ranks that are missing in both reports are missing") {
  RasCommunicator all = four(90, 90, 90, 90);
  for (const int rank : {2, 3}) {
    all.missing.push_back(
        {.rank = rank, .process = all.ranks[static_cast<std::size_t>(rank)].process, .is_silent = true});
  }
  all.ranks.resize(2);
  const NodeFacts facts = ras_facts_of(report({all}), report({all}), kOurs, 4);
  CHECK(facts.ras->missing.text() == "2-3");
  CHECK(ras_facts_of(report({four(1, 1, 1, 1)}), report({all}), kOurs, 4).ras->missing.empty());
}

TEST_CASE("a report as text has no counts: it is partial, and says so") {
  const RasReport text{.nccl_version = "2.27.3", .communicators = {{.hash = "", .size = 4}}};
  const NodeFacts facts = ras_facts_of(text, text, kOurs, 4);
  CHECK(facts.ras_source == SourceFacts{Source::kPartial, "NCCL 2.27.3 reports as text, without counts"});
  CHECK(facts.ras->counts.empty());
  CHECK(judged(facts, 4).rule == 11);
  RasReport late = report({four(90, 90, 90, 90)});
  late.timeouts = 1;
  CHECK(ras_facts_of(late, late, kOurs, 4).ras_source.state == Source::kPartial);
}

}  // namespace elastic::hang
