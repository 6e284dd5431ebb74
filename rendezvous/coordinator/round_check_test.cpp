#include "rendezvous/coordinator/round_check.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "src/base/limits.h"

using namespace elastic;
using coordinator::RoundCheck;
using health::CheckNode;
using health::CheckPlan;
using health::CheckResults;
using health::CheckRules;

namespace {

// A check of so many phases. An order names its phase, its node and how many phases have results. A node that answers
// "bad" is unhealthy.
class Phases : public health::CheckPlan {
 public:
  explicit Phases(int phases) : phases_(phases) {}
  int phases(const std::vector<health::CheckNode>&, const health::CheckRules&) const override { return phases_; }
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<health::CheckNode>& nodes,
                                  const std::vector<health::CheckResults>& earlier,
                                  const health::CheckRules&) const override {
    std::vector<std::string> orders;
    for (const health::CheckNode& node : nodes) {
      orders.push_back(std::to_string(phase) + " " + node.address + " " + std::to_string(earlier.size()));
    }
    return orders;
  }
  std::vector<Unhealthy> unhealthy(const std::vector<health::CheckNode>& nodes,
                                   const std::vector<health::CheckResults>& results) const override {
    std::vector<Unhealthy> found;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      if (results.back()[rank] == "bad") found.push_back({static_cast<int>(rank), "it is bad"});
    }
    return found;
  }

 private:
  int phases_;
};

RoundCheck check_of(int phases) { return RoundCheck(std::make_unique<Phases>(phases)); }

const std::vector<health::CheckNode> kTwo = {{"a", 8}, {"b", 8}};
constexpr health::CheckRules kFirst{.when = health::CheckRules::When::kFirst};

protocol::WorkerFailure failure_on(int node_rank, bool stopped_by_us = false) {
  return {.node_rank = node_rank, .exit = {}, .stopped_by_us = stopped_by_us};
}

}  // namespace

TEST_CASE("a phase is over when each node has answered it, and the next one has new orders") {
  RoundCheck check = check_of(2);
  CHECK(check.begin(kTwo, kFirst, 100) == RoundCheck::Orders{"0 a 0", "0 b 0"});
  CHECK(check.is_running());
  CHECK(!check.answer(1, 0, "ok"));
  CHECK(check.answer(0, 0, "ok"));
  CHECK(check.next_phase(kTwo, kFirst, 130) == RoundCheck::Orders{"1 a 1", "1 b 1"});
  CHECK(check.phase() == 1);
  CHECK(!check.answer(0, 1, "ok"));
  CHECK(check.answer(1, 1, "bad"));
  CHECK(check.next_phase(kTwo, kFirst, 170).empty());
  CHECK(!check.is_running());
  const coordinator::CheckJudged judged = check.judge(3, kTwo, kFirst);
  CHECK(judged.round == 3);
  CHECK(judged.nodes.size() == 2);
  CHECK(judged.results == std::vector<health::CheckResults>{{"ok", "ok"}, {"ok", "bad"}});
  CHECK(judged.phase_ms == std::vector<std::int64_t>{30, 40});
  CHECK(judged.unhealthy == std::vector<health::CheckPlan::Unhealthy>{{1, "it is bad"}});
}

TEST_CASE("a second answer of a node, and answers to another phase, count for nothing") {
  RoundCheck check = check_of(2);
  check.begin(kTwo, kFirst, 0);
  CHECK(!check.answer(0, 0, "ok"));
  CHECK(!check.answer(0, 0, "bad"));
  CHECK(!check.answer(1, 1, "ok"));
  CHECK(check.answer(1, 0, "ok"));
  check.next_phase(kTwo, kFirst, 0);
  CHECK(!check.answer(0, 0, "ok"));
  CHECK(!check.answer(0, 1, "ok"));
  CHECK(check.answer(1, 1, "ok"));
  check.next_phase(kTwo, kFirst, 0);
  CHECK(!check.answer(0, 2, "ok"));
  CHECK(check.judge(0, kTwo, kFirst).results == std::vector<health::CheckResults>{{"ok", "ok"}, {"ok", "ok"}});
}

TEST_CASE("a job without a check, and nodes that have passed, run at once") {
  RoundCheck never = check_of(2);
  CHECK(never.begin(kTwo, {}, 0).empty());
  CHECK(!never.is_running());
  RoundCheck passed = check_of(0);
  CHECK(passed.begin(kTwo, kFirst, 0).empty());
  CHECK(!passed.is_running());
}

TEST_CASE("the nodes of a round are described to the check by node rank, and not at all if none is wanted") {
  membership::Roster roster;
  for (const protocol::AgentId agent : {1U, 2U}) {
    membership::Node node;
    node.agent = agent;
    node.address = "host" + std::to_string(agent);
    node.shape.local_world_size = 8;
    node.passed_check = agent == 1;
    node.addresses = "10.0.0.1";
    node.group = "rack";
    roster.add(std::move(node), membership::MemberState::kMember);
  }
  const auto nodes = coordinator::nodes_to_check({{2, 0}, {1, 1}}, roster, kFirst);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].address == "host2");
  CHECK(!nodes[0].passed);
  CHECK(nodes[1].passed);
  CHECK(nodes[1].local_world_size == 8);
  CHECK(nodes[1].addresses == "10.0.0.1");
  CHECK(nodes[1].group == "rack");
  CHECK(coordinator::nodes_to_check({{2, 0}, {1, 1}}, roster, {}).empty());
}

TEST_CASE("a new round begins its check anew, however far the last one came") {
  RoundCheck check = check_of(2);
  check.begin(kTwo, kFirst, 0);
  check.answer(0, 0, "ok");
  check.answer(1, 0, "ok");
  check.next_phase(kTwo, kFirst, 10);
  check.answer(0, 1, "bad");
  CHECK(check.begin(kTwo, kFirst, 20) == RoundCheck::Orders{"0 a 0", "0 b 0"});
  CHECK(check.phase() == 0);
  CHECK(!check.answer(0, 0, "ok"));
  CHECK(check.answer(1, 0, "ok"));
}

TEST_CASE("no more hosts are evicted than a job can have nodes") {
  RoundCheck check = check_of(1);
  for (std::size_t i = 0; i < limits::kNodesPerJob; ++i)
    check.evict_host(std::to_string(i), coordinator::Eviction::kUnhealthy);
  check.evict_host("one more", coordinator::Eviction::kUnhealthy);
  CHECK(check.evicted().size() == limits::kNodesPerJob);
  CHECK(check.eviction_of("7") == coordinator::Eviction::kUnhealthy);
  CHECK(!check.eviction_of("one more"));
}

TEST_CASE("a faulty node leaves and its host is evicted; an undetermined one may come back") {
  using Kind = health::CheckPlan::Unhealthy::Kind;
  const auto faulty = coordinator::consequence_of({1, "it is slow to fail", Kind::kFaulty}, "node 1 (b)", kFirst);
  CHECK(faulty.leaves);
  CHECK(faulty.evicts_host);
  CHECK(faulty.note == "node 1 (b) is excluded: it is slow to fail");
  CHECK(faulty.because == "node 1 (b) is unfit: it is slow to fail");
  CHECK(faulty.told == "This node failed the node-check procedure(mat-mul + comm) before training: it is slow to fail");
  const auto undetermined = coordinator::consequence_of({1, "why", Kind::kUndetermined}, "node 1 (b)", kFirst);
  CHECK(undetermined.leaves);
  CHECK(!undetermined.evicts_host);
  CHECK(undetermined.told ==
        "This node failed the node-check procedure(mat-mul + comm) before training, and whether it is at fault is "
        "undetermined: why");
}

TEST_CASE("a straggler trains unless the rules exclude it, and for a bad link no node leaves") {
  using Kind = health::CheckPlan::Unhealthy::Kind;
  const health::CheckPlan::Unhealthy slow{1, "it takes twice as long", Kind::kStraggler};
  const auto stays = coordinator::consequence_of(slow, "node 1 (b)", kFirst);
  CHECK(!stays.leaves);
  CHECK(stays.note == "node 1 (b) is a straggler, but stays in the job: it takes twice as long");
  const auto leaves = coordinator::consequence_of(
      slow, "node 1 (b)", {.when = health::CheckRules::When::kFirst, .excludes_stragglers = true});
  CHECK(leaves.leaves);
  CHECK(leaves.evicts_host);
  CHECK(leaves.told == "The node is a straggler and exits: it takes twice as long");
  CHECK(leaves.because == "node 1 (b) is a straggler: it takes twice as long");
  const auto link = coordinator::consequence_of({1, "its link to node 0", Kind::kLink}, "node 1 (b)", kFirst);
  CHECK(!link.leaves);
  CHECK(link.note.empty());
}

TEST_CASE("a node on which a worker failed by itself first is checked again if the rules suspect it") {
  using When = health::CheckRules::When;
  const std::vector<protocol::WorkerFailure> failures = {failure_on(0, true), failure_on(2), failure_on(1)};
  const auto suspect = coordinator::checked_again(failures, {.when = When::kSuspect});
  CHECK(suspect.contains(2));
  CHECK(!suspect.contains(1));
  CHECK(!suspect.contains(std::nullopt));
  CHECK(!coordinator::checked_again({failure_on(0, true)}, {.when = When::kSuspect}).contains(0));
  CHECK(!coordinator::checked_again(failures, {.when = When::kFirst}).contains(2));
  const auto always = coordinator::checked_again({}, {.when = When::kAlways});
  CHECK(always.contains(7));
  CHECK(always.contains(std::nullopt));
}
