// The check before a round's workers run.
#include <doctest/doctest.h>

#include <algorithm>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_test_support.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

// A check of two phases for nodes that have not passed yet. A result names the kind of the fault.
class TwoPhases : public health::CheckPlan {
 public:
  int phases(const std::vector<health::CheckNode>& nodes, const health::CheckRules&) const override {
    for (const health::CheckNode& node : nodes) {
      if (!node.passed) return 2;
    }
    return 0;
  }
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<health::CheckNode>& nodes,
                                  const std::vector<health::CheckResults>& earlier,
                                  const health::CheckRules&) const override {
    std::vector<std::string> orders;
    for (const health::CheckNode& node : nodes) {
      std::string order = format("{} {}{}", phase, node.address, node.passed ? " passed" : "");
      for (const health::CheckResults& results : earlier) order += " " + join(results, ",");
      orders.push_back(std::move(order));
    }
    return orders;
  }
  std::vector<Unhealthy> unhealthy(const std::vector<health::CheckNode>& nodes,
                                   const std::vector<health::CheckResults>& results) const override {
    std::vector<Unhealthy> found;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      const std::string& result = results.back()[rank];
      if (result == "bad") found.push_back({static_cast<int>(rank), "its result is bad"});
      if (result == "slow")
        found.push_back({static_cast<int>(rank), "its result is slow", Unhealthy::Kind::kStraggler});
      if (result == "linked")
        found.push_back({static_cast<int>(rank), "its link to another is bad", Unhealthy::Kind::kLink});
      if (result == "unclear")
        found.push_back({static_cast<int>(rank), "its result is unclear", Unhealthy::Kind::kUndetermined});
    }
    return found;
  }
};

struct Checked : Job {
  explicit Checked(JobTerms with_terms, health::CheckRules with_check = {.when = health::CheckRules::When::kFirst})
      : Job(with_terms, {}, std::make_unique<TwoPhases>()) {
    check_rules = with_check;
  }
  // Completes both phases of a check, with these results in the second.
  Answer done_all(const std::vector<std::string>& results) {
    for (NodeId node = 1; node <= results.size(); ++node) done(node, 0);
    Answer last;
    for (NodeId node = 1; node <= results.size(); ++node) last = done(node, 1, results[node - 1]);
    return last;
  }
  Answer done(NodeId session, std::uint32_t phase, const std::string& result = "ok") {
    return say(session, CheckDone{*coordinator.round(), phase, result});
  }
};

}  // namespace

TEST_CASE("phases are barriers: the next begins when all have answered, and the workers run after the last") {
  Checked job(job_terms(2, 2));
  job.join(1);
  const Answer formed = job.join(2);
  CHECK(formed.to<RunCheck>(1) == RunCheck{0, 0, "0 node1"});
  CHECK(formed.to<RunCheck>(2) == RunCheck{0, 0, "0 node2"});
  CHECK(job.say(1, StoreIsOpen{0, {"10.0.0.1", 4000}}).silent());
  CHECK(job.done(2, 0, "b").silent());
  CHECK(job.done(2, 0, "again").silent());
  CHECK(job.done(1, 1, "early").silent());
  const Answer second = job.done(1, 0, "a");
  CHECK(second.to<RunCheck>(2) == RunCheck{0, 1, "1 node2 a,b"});
  CHECK(job.done(1, 0, "late").silent());
  CHECK(job.done(1, 1).silent());
  CHECK(job.done(2, 1).all<RunWorkers>().size() == 2);
}

TEST_CASE("an unhealthy node is left out of a new round in which nobody is checked again, and nothing is charged") {
  Checked job(job_terms(2, 3, 0));
  for (const NodeId node : {1U, 2U, 3U}) job.join(node);
  for (const NodeId node : {1U, 2U, 3U}) job.done(node, 0);
  job.done(1, 1);
  job.done(2, 1, "bad");
  CHECK(job.done(3, 1).all<StopWorkers>().size() == 3);
  job.stop(1);
  job.stop(2);
  const Answer again = job.stop(3);
  CHECK(again.to<Rejected>(2).why == Rejected::Why::kEvicted);
  CHECK(again.all<RunCheck>().empty());
  CHECK(again.to<PrepareRound>(3).place.node_rank == 1);
  CHECK(again.to<PrepareRound>(3).restart_count == 0);
  CHECK(again.to<PrepareRound>(3).losses == 0);
  CHECK(again.to<PrepareRound>(3).reason == "node 1 (node2) is unfit: its result is bad");
  CHECK(job.say(1, StoreIsOpen{1, {"10.0.0.1", 4001}}).all<RunWorkers>().size() == 2);
  NodeJoins back = job.joiner(12);
  back.address = "node2";
  CHECK(job.say(12, back).only<Rejected>().why == Rejected::Why::kEvicted);
}

TEST_CASE("a newcomer is checked among those that have passed, which are told apart") {
  Checked job(job_terms(1, 2));
  job.join(1);
  job.pass_with({1}, 30'000);
  job.done(1, 0);
  job.done(1, 1);
  job.open_store();
  CHECK(job.join(2).only<StopWorkers>().round == 0);
  const Answer again = job.stop(1);
  CHECK(again.to<RunCheck>(1).order == "0 node1 passed");
  CHECK(again.to<RunCheck>(2).order == "0 node2");
}

TEST_CASE("a node that was lost is checked again, and a loss in a phase ends it for all") {
  Checked job(job_terms(2, 2));
  job.join(1);
  const PrepareRound its = job.join(2).to<PrepareRound>(2);
  for (const std::uint32_t phase : {0U, 1U}) {
    for (const NodeId node : {1U, 2U}) job.done(node, phase);
  }
  job.open_store();
  job.on(SessionEnded{2, "reset"});
  job.stop(1);
  NodeJoins back = job.joiner(2);
  back.facts = facts_of(its, job.coordinator.incarnation(), AgentFacts::Activity::kIdle);
  const Answer again = job.say(12, back);
  CHECK(again.to<RunCheck>(1).order == "0 node1 passed");
  CHECK(again.to<RunCheck>(12).order == "0 node2");
  CHECK(job.on(SessionEnded{12, "reset"}).only<StopWorkers>().round == 1);
  CHECK(job.done(1, 0).silent());
}

TEST_CASE("an unhealthy node is evicted with its host, not with its rank: another host may come with that") {
  Checked job(job_terms(2, 3, 0));
  const auto claims = [&](AgentId agent, const std::string& address, std::optional<int> rank) {
    NodeJoins joins = job.joiner(agent);
    joins.address = address;
    joins.node_rank = rank;
    return joins;
  };
  for (const NodeId node : {1U, 2U, 3U}) {
    job.say(node, claims(node, format("node{}", node), static_cast<int>(node) - 1));
  }
  for (const NodeId node : {1U, 2U, 3U}) job.done(node, 0);
  for (const NodeId node : {1U, 2U, 3U}) job.done(node, 1, node == 2 ? "bad" : "ok");
  for (const NodeId node : {1U, 2U}) job.stop(node);
  CHECK(job.stop(3).to<Rejected>(2).why == Rejected::Why::kEvicted);
  CHECK(job.say(12, claims(12, "node2", 1)).only<Rejected>().why == Rejected::Why::kEvicted);
  CHECK(job.say(13, claims(13, "node2", {})).only<Rejected>().why == Rejected::Why::kEvicted);
  CHECK(job.say(14, claims(14, "fresh", 1)).all<Rejected>().empty());
  CHECK(job.coordinator.roster().size() == 3);
}

TEST_CASE(
    "who asks for the rank of a node that is unhealthy has it when that one is out, and waits for no other event") {
  Checked job(job_terms(2, 3, 0));
  const auto claims = [&](AgentId agent) {
    NodeJoins joins = job.joiner(agent);
    joins.node_rank = agent == 4 ? 1 : static_cast<int>(agent) - 1;
    return joins;
  };
  for (const NodeId node : {1U, 2U, 3U}) job.say(node, claims(node));
  for (const NodeId node : {1U, 2U, 3U}) job.done(node, 0);
  for (const NodeId node : {1U, 2U, 3U}) job.done(node, 1, node == 2 ? "bad" : "ok");
  for (const NodeId node : {2U, 1U}) job.stop(node);
  CHECK(job.say(4, claims(4)).all<AreYouThere>().size() == 1);
  CHECK(job.stop(3).to<Rejected>(2).why == Rejected::Why::kEvicted);
  CHECK(job.coordinator.roster().size() == 3);
}

TEST_CASE("another agent on the host of an unhealthy one that has passed stays in the job") {
  Checked job(job_terms(2, 3, 0));
  for (const NodeId node : {1U, 2U, 3U}) {
    NodeJoins joins = job.joiner(node);
    if (node == 3) joins.address = "node2";
    job.say(node, joins);
  }
  for (const NodeId node : {1U, 2U, 3U}) job.done(node, 0);
  for (const NodeId node : {1U, 2U, 3U}) job.done(node, 1, node == 2 ? "bad" : "ok");
  for (const NodeId node : {1U, 2U}) job.stop(node);
  const Answer again = job.stop(3);
  CHECK(again.all<Rejected>().size() == 1);
  CHECK(again.to<PrepareRound>(3).place.node_count == 2);
}

TEST_CASE("where the rules want no check there is none") {
  Checked job(job_terms(2, 2), {});
  job.join(1);
  CHECK(job.join(2).all<RunCheck>().empty());
  CHECK(job.say(1, StoreIsOpen{0, {"10.0.0.1", 4000}}).all<RunWorkers>().size() == 2);
}

TEST_CASE("a straggler trains, unless the rules exclude it") {
  for (const bool excludes : {false, true}) {
    Checked job(job_terms(1, 2), {.when = health::CheckRules::When::kFirst, .excludes_stragglers = excludes});
    job.join(1);
    job.join(2);
    job.say(1, StoreIsOpen{0, {"10.0.0.1", 4000}});
    const Answer judged = job.done_all({"ok", "slow"});
    CHECK(judged.all<RunWorkers>().size() == (excludes ? 0 : 2));
    CHECK(judged.all<StopWorkers>().size() == (excludes ? 2 : 0));
    if (!excludes) continue;
    job.stop(1);
    CHECK(job.stop(2).to<Rejected>(2).reason == "The node is a straggler and exits: its result is slow");
  }
}

TEST_CASE("for a bad link nobody is left out") {
  Checked job(job_terms(2, 2));
  job.join(1);
  job.join(2);
  job.say(1, StoreIsOpen{0, {"10.0.0.1", 4000}});
  CHECK(job.done_all({"linked", "ok"}).all<RunWorkers>().size() == 2);
}

TEST_CASE("where only a check is wanted the job ends with it, and all hear what is unhealthy") {
  struct Case {
    std::vector<std::string> results;
    JobResult::Outcome outcome;
    std::string reason;
  };
  for (const Case& each : {Case{{"ok", "ok"}, JobResult::Outcome::kSucceeded, ""},
                           Case{{"ok", "bad"},
                                JobResult::Outcome::kFailed,
                                "the check has found unfit nodes or links: node 1 (node2): its result is bad"},
                           Case{{"linked", "slow"},
                                JobResult::Outcome::kFailed,
                                "the check has found unfit nodes or links: node 0 (node1): its link to another is bad; "
                                "node 1 (node2): its result is slow"}}) {
    Checked job(job_terms(2, 2), {.when = health::CheckRules::When::kFirst, .only = true});
    job.join(1);
    job.join(2);
    job.say(1, StoreIsOpen{0, {"10.0.0.1", 4000}});
    const Answer judged = job.done_all(each.results);
    CHECK(judged.all<StopWorkers>().size() == 2);
    CHECK(judged.all<RunWorkers>().empty());
    job.stop(1);
    const Answer out = job.stop(2);
    CHECK(out.all<Rejected>().empty());
    for (const NodeId node : {1U, 2U}) {
      CHECK(out.to<EndJob>(node).job_result.outcome == each.outcome);
      CHECK(out.to<EndJob>(node).job_result.reason == each.reason);
    }
  }
}

TEST_CASE("who only wants a check is not let into a job that trains, nor the other way round") {
  for (const bool only : {false, true}) {
    Checked job(job_terms(1, 2), {.when = health::CheckRules::When::kFirst, .only = only});
    job.join(1);
    NodeJoins other = job.joiner(2);
    other.check.only = !only;
    const Rejected refused = job.say(2, other).only<Rejected>();
    CHECK(refused.why == Rejected::Why::kTermsDiffer);
    CHECK(refused.reason.contains(only ? "this node was started without --check-only"
                                       : "this node was started with --check-only"));
  }
}

TEST_CASE("who is turned away hears why, in DLRover's words") {
  Checked job(job_terms(1, 2));
  job.join(1);
  job.join(2);
  job.done_all({"ok", "bad"});
  job.stop(1);
  CHECK(job.stop(2).to<Rejected>(2).reason ==
        "This node failed the node-check procedure(mat-mul + comm) before training: its result is bad");
}

TEST_CASE("nodes of which it is undetermined are turned away, and may come again") {
  Checked job(job_terms(2, 2));
  job.join(1);
  job.join(2);
  job.done_all({"unclear", "unclear"});
  job.stop(1);
  const Answer out = job.stop(2);
  CHECK(out.to<Rejected>(1).reason.contains("undetermined: its result is unclear"));
  CHECK(out.to<Rejected>(2).why == Rejected::Why::kEvicted);
  CHECK(job.coordinator.roster().size() == 0);
  CHECK(job.join(1).all<Rejected>().empty());
}

TEST_CASE("what the check has found goes out once, with how long its phases took") {
  Checked job(job_terms(2, 2));
  job.join(1);
  job.join(2);
  job.now_ms += 20;
  for (const NodeId node : {1U, 2U}) job.done(node, 0);
  job.now_ms += 300;
  job.done(1, 1);
  const auto judged = job.done(2, 1, "bad");
  const auto found = std::ranges::find_if(
      judged.effects, [](const Effect& effect) { return std::holds_alternative<CheckJudged>(effect); });
  REQUIRE(found != judged.effects.end());
  const auto& check = std::get<CheckJudged>(*found);
  CHECK(check.phase_ms == std::vector<std::int64_t>{20, 300});
  CHECK(check.nodes.size() == 2);
  CHECK(check.results == std::vector<health::CheckResults>{{"ok", "ok"}, {"ok", "bad"}});
  CHECK(check.unhealthy == std::vector<health::CheckPlan::Unhealthy>{{1, "its result is bad"}});
}

TEST_CASE("who is checked again after a worker has failed follows from the rules") {
  using When = health::CheckRules::When;
  for (const When when : {When::kFirst, When::kSuspect, When::kAlways}) {
    CAPTURE(static_cast<int>(when));
    Checked job(job_terms(2, 2, 1), {.when = when});
    job.join(1);
    job.join(2);
    job.say(1, StoreIsOpen{0, {"10.0.0.1", 4000}});
    job.done_all({"ok", "ok"});
    WorkerFailure failed = failure(1, 5);
    failed.node_rank = 1;
    job.fail(2, failed);
    job.stop(1);
    const Answer again = job.stop(2, {failed});
    CHECK(again.all<PrepareRound>().size() == 2);
    CHECK(again.all<RunCheck>().size() == (when == When::kFirst ? 0 : 2));
    if (when == When::kFirst) continue;
    CHECK(again.to<RunCheck>(1).order == (when == When::kSuspect ? "0 node1 passed" : "0 node1"));
    CHECK(again.to<RunCheck>(2).order == "0 node2");
  }
}
