// Which nodes are in a round, when it begins, and which ranks they have.
#include <doctest/doctest.h>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/coordinator/limits.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

using ScaleUp = JobRules::ScaleUp;

// The sessions of the round's nodes in the order of their ranks.
std::vector<NodeId> order_of(const Answer& answer) {
  std::vector<NodeId> order(answer.all<PrepareRound>().size(), 0);
  for (const auto& [session, round] : answer.all<PrepareRound>()) {
    order.at(static_cast<std::size_t>(round.place.node_rank)) = session;
  }
  return order;
}

NodeJoins claiming(const Job& job, AgentId agent, int rank) {
  NodeJoins joins = job.joiner(agent);
  joins.node_rank = rank;
  return joins;
}

// The node is lost, and its guardian reports that no process is left.
void lose(Job& job, NodeId session) {
  job.on(SessionEnded{session, "its connection was reset"});
  job.on(NodeEmptied{session, job.coordinator.incarnation(), *job.coordinator.round()});
}

}  // namespace

TEST_CASE("the last call is counted from the minimum on, and those who join in it do not restart it") {
  Job job(job_terms(2, 8), {.last_call_ms = 10'000});
  job.join(1);
  job.join(2);
  CHECK(job.pass_with({1, 2}, 4000).silent());
  job.join(3);
  CHECK(job.pass_with({1, 2, 3}, 5900).silent());
  job.join(4);
  CHECK(job.pass_with({1, 2, 3, 4}, 100).all<PrepareRound>().size() == 4);
}

TEST_CASE("the maximum ends the last call") {
  Job job(job_terms(1, 2));
  CHECK(job.join(1).silent());
  CHECK(job.join(2).all<PrepareRound>().size() == 2);
}

TEST_CASE("a round has a multiple of the unit, and who is above it is on standby until one is lost") {
  Job job(job_terms(2, 7, 0, 2), {.last_call_ms = 1000});
  for (const NodeId node : {1U, 2U, 3U, 4U, 5U}) job.join(node);
  const Answer first = job.pass_with({1, 2, 3, 4, 5}, 1000);
  CHECK(order_of(first) == std::vector<NodeId>{1, 2, 3, 4});
  job.open_store();
  lose(job, 2);
  CHECK(job.stop(1).silent());
  CHECK(job.stop(3).silent());
  const Answer again = job.stop(4);
  CHECK(order_of(again) == std::vector<NodeId>{1, 5, 3, 4});  // node 5 has the lost node's rank
  CHECK(again.to<PrepareRound>(5).restart_count == 0);
  CHECK(!again.to<PrepareRound>(5).charged);
}

TEST_CASE("a maximum that is no multiple of the unit is reached below it") {
  Job job(job_terms(2, 7, 0, 2));
  for (const NodeId node : {1U, 2U, 3U, 4U, 5U}) CHECK(job.join(node).silent());
  CHECK(job.join(6).all<PrepareRound>().size() == 6);
}

TEST_CASE("survivors below the minimum wait until the join timeout, which ends the job with that reason") {
  Job job(job_terms(2, 2, 3), {.join_timeout_ms = 20'000});
  job.run({1, 2});
  lose(job, 2);
  CHECK(job.stop(1).silent());
  CHECK(job.pass_with({1}, 19'900).silent());
  const JobResult job_result = job.pass_with({1}, 100).only<EndJob>().job_result;
  CHECK(job_result.outcome == JobResult::Outcome::kFailed);
  CHECK(job_result.reason ==
        "node 1 (node2) was lost: its connection was reset; "
        "gave up after 20 s: 1 node, 2 required (--nnodes=2)");
  CHECK(job_result.restarts_used == 0);
}

TEST_CASE("a replacement within the join timeout takes the lost node's rank, and no restart is counted") {
  Job job(job_terms(2, 2, 3));
  job.run({1, 2});
  lose(job, 1);
  job.stop(2);
  job.pass_with({2}, 60'000);
  const Answer again = job.join(3);
  CHECK(order_of(again) == std::vector<NodeId>{3, 2});
  CHECK(again.to<PrepareRound>(2).restart_count == 0);
}

TEST_CASE("nodes that come back take the rank slots of their addresses, and others what is left") {
  Job job(job_terms(3, 3));
  job.run({1, 2, 3});
  lose(job, 2);
  lose(job, 3);
  job.stop(1);
  NodeJoins stranger = job.joiner(12);
  job.say(12, stranger);
  NodeJoins known = job.joiner(13);
  known.address = "node3";
  CHECK(order_of(job.say(13, known)) == std::vector<NodeId>{1, 12, 13});
}

TEST_CASE("by default survivors do not wait for replacements; with a grace they do, for so long") {
  for (const std::int64_t grace_ms : {0, 5000}) {
    Job job(job_terms(1, 2), {.replacement_grace_ms = grace_ms});
    job.run({1, 2});
    lose(job, 2);
    const Answer stopped = job.stop(1);
    CHECK(stopped.all<PrepareRound>().size() == (grace_ms == 0 ? 1 : 0));
    if (grace_ms == 0) continue;
    CHECK(job.pass_with({1}, grace_ms - 100).silent());
    CHECK(job.pass_with({1}, 100).all<PrepareRound>().size() == 1);
  }
}

TEST_CASE("a replacement ends the grace") {
  Job job(job_terms(1, 2), {.replacement_grace_ms = 5000});
  job.run({1, 2});
  lose(job, 2);
  job.stop(1);
  CHECK(job.join(3).all<PrepareRound>().size() == 2);
}

TEST_CASE("a newcomer makes a larger round: at once, once no other has come, at the next restart, or never") {
  for (const ScaleUp kind : {ScaleUp::kNow, ScaleUp::kAfter, ScaleUp::kOnRestart, ScaleUp::kNever}) {
    CAPTURE(static_cast<int>(kind));
    Job job(job_terms(1, 3, 1), {.last_call_ms = 0, .scale_up = kind, .scale_up_after_ms = 1500});
    job.run({1});
    CHECK(job.join(2).all<StopWorkers>().size() == (kind == ScaleUp::kNow ? 1 : 0));
    const Answer later = job.pass_with({1, 2}, 1400);
    CHECK(later.silent());
    CHECK(job.pass_with({1, 2}, 100).all<StopWorkers>().size() == (kind == ScaleUp::kAfter ? 1 : 0));
    const bool grown = kind == ScaleUp::kNow || kind == ScaleUp::kAfter;
    if (!grown) {
      CHECK(job.pass_with({1, 2}, 60'000).silent());
      job.fail(1, failure(0, 5));
    }
    const auto again = job.stop(1).all<PrepareRound>();
    CHECK(again.size() == (kind == ScaleUp::kNever ? 1 : 2));
    CHECK(again.at(0).second.restart_count == (grown ? 0 : 1));
  }
}

TEST_CASE("ten nodes that arrive together cost one restart") {
  Job job(job_terms(1, 20), {.last_call_ms = 0});
  job.run({1});
  std::vector<NodeId> here = {1};
  for (NodeId node = 2; node <= 11; ++node) {
    CHECK(job.join(node).silent());
    here.push_back(node);
    CHECK(job.pass_with(here, 700).silent());
  }
  CHECK(job.pass_with(here, 300).all<StopWorkers>().size() == 1);
  CHECK(job.stop(1).all<PrepareRound>().size() == 11);
  job.open_store();
  CHECK(job.pass_with(here, 60'000).silent());
}

TEST_CASE("what fails because a larger round is being made is not charged") {
  Job job(job_terms(2, 3, 0), {.last_call_ms = 0});
  job.run({1, 2});
  CHECK(job.join(3).all<StopWorkers>().size() == 2);  // the round has its maximum with it
  job.fail(2, failure(1, 5));                         // the first node had stopped before this one got the order
  job.stop(1);
  const auto again = job.stop(2, {failure(1, 5)}).all<PrepareRound>();
  REQUIRE(again.size() == 3);
  CHECK(again[0].second.restart_count == 0);
  CHECK(!again[0].second.charged);
  CHECK(again[0].second.reason == "1 more node has joined");
}

TEST_CASE("a failure before a newcomer is made place for is charged as ever") {
  Job job(job_terms(2, 4, 1), {.last_call_ms = 0});
  job.run({1, 2});
  job.join(3);
  job.fail(2, failure(1, 5));
  job.stop(1);
  CHECK(job.stop(2, {failure(1, 5)}).to<PrepareRound>(3).restart_count == 1);
}

TEST_CASE("once a node is done no newcomer starts anything anew") {
  Job job(job_terms(2, 3), {.last_call_ms = 0});
  job.run({1, 2});
  job.say(2, WorkersSucceeded{0});
  CHECK(job.join(3).silent());
  CHECK(job.pass_with({1, 2, 3}, 10'000).silent());
  job.on(SessionEnded{2, "it has ended"});  // the node is not needed any more
  CHECK(job.pass_with({1, 3}, 10'000).silent());
  CHECK(job.say(1, WorkersSucceeded{0}).all<EndJob>().size() == 2);
}

TEST_CASE("newcomers are ordered by their addresses as people would, and behind those that are there") {
  Job job(job_terms(3, 4), {.last_call_ms = 1000});
  for (const NodeId node : {10U, 9U, 2U}) job.join(node);
  CHECK(order_of(job.pass_with({10, 9, 2}, 1000)) == std::vector<NodeId>{2, 9, 10});
  job.open_store();
  job.join(1);  // the round has its maximum with it
  for (const NodeId node : {2U, 9U}) job.stop(node);
  CHECK(order_of(job.stop(10)) == std::vector<NodeId>{2, 9, 10, 1});
}

TEST_CASE("ranks that users gave their nodes order the round, whoever joined first") {
  Job job(job_terms(3, 3));
  job.say(1, claiming(job, 1, 2));
  job.say(2, claiming(job, 2, 0));
  CHECK(order_of(job.say(3, claiming(job, 3, 1))) == std::vector<NodeId>{2, 3, 1});
}

TEST_CASE("nodes may differ in size and role: ranks run through all, role ranks through their role") {
  Job job(job_terms(3, 3));
  job.join(1, 2);
  NodeJoins reader = job.joiner(2, 3);
  reader.role = "reader";
  job.say(2, reader);
  const Answer prepared = job.join(3, 4);
  CHECK(prepared.to<PrepareRound>(1).place == NodePlace{0, 3, 0, 9, 0, 6});
  CHECK(prepared.to<PrepareRound>(2).place == NodePlace{1, 3, 2, 9, 0, 3});
  CHECK(prepared.to<PrepareRound>(3).place == NodePlace{2, 3, 5, 9, 2, 6});
}

TEST_CASE("a node that claims a taken rank and goes away meanwhile is not asked about any more") {
  Job job(job_terms(2, 2));
  job.say(1, claiming(job, 1, 0));
  job.say(2, claiming(job, 2, 0)).only<AreYouThere>();
  job.on(SessionEnded{2, "reset"});
  CHECK(job.on(KeepAliveReceived{1}).silent());
  CHECK(job.pass_with({1}, 3000).silent());
  CHECK(job.coordinator.roster().size() == 1);
}

TEST_CASE("a node that claims a taken rank and is told to leave meanwhile goes, and is in no round") {
  Job job(job_terms(1, 2, 3));
  job.say(1, claiming(job, 1, 0));
  job.say(2, claiming(job, 2, 0)).only<AreYouThere>();
  const Answer gone = job.say(2, NodeLeaves{15});
  CHECK(gone.to<EndJob>(2).job_result.reason == "stopped by SIGTERM");
  CHECK(gone.all<Dismiss>().size() == 1);
  job.on(SessionEnded{1, "reset"});
  CHECK(job.pass(60'000).all<PrepareRound>().empty());
  CHECK(job.coordinator.roster().size() == 0);
}

TEST_CASE("a node of the round that waits for its rank, and whose workers end meanwhile, joins once more with that") {
  Job job(job_terms(1, 2, 3));
  job.say(1, claiming(job, 1, 0));
  const auto round = job.say(2, claiming(job, 2, 1)).to<PrepareRound>(2);
  job.open_store();
  job.on(SessionEnded{2, "reset"});
  job.stop(1);
  job.say(3, claiming(job, 3, 1));
  NodeJoins back = claiming(job, 2, 1);
  back.facts = facts_of(round, job.coordinator.incarnation(), Activity::kStopping);
  CHECK(job.say(12, back).to<AreYouThere>(3) == AreYouThere{});
  CHECK(job.say(12, NodeProgress{}).silent());
  CHECK(job.say(12, NodeStopped{round.round + 1, {}}).silent());  // the node still waits for the rank of its round
  CHECK(job.say(12, back).silent());
  CHECK(job.stop(12).dropped(12));
  CHECK(job.stop(12).silent());
  back.facts.activity = Activity::kIdle;
  job.on(SessionEnded{3, "reset"});
  CHECK(job.say(22, back).all<PrepareRound>().size() == 2);
}

TEST_CASE("a refused claim names the rank and the node that has it, to both nodes and in the coordinator's log") {
  Job job(job_terms(2, 2));
  job.say(1, claiming(job, 1, 0));
  job.say(2, claiming(job, 2, 0));
  const Answer answer = job.on(KeepAliveReceived{1});
  const auto rejected = answer.only<Rejected>();
  CHECK(rejected.reason ==
        "node2 asks for rank 0, but node1 has it and is alive; give each node a rank of its own; 1 is free");
  CHECK(!rejected.retry_ms);
  CHECK(std::ranges::any_of(answer.effects, [&](const Effect& effect) {
    const auto* note = std::get_if<Note>(&effect);
    return note != nullptr && note->event == kRankTaken && is_warning(note->event) && note->text == rejected.reason;
  }));
  CHECK(job.pass_with({1}, 1000).only<Awaiting>().because == "node2 asks for rank 0, but node1 has it");
}

TEST_CASE("a node whose rank another one claims has answered if it shows progress") {
  Job job(job_terms(1, 2));
  job.say(1, claiming(job, 1, 0));
  job.say(2, claiming(job, 2, 0)).only<AreYouThere>();
  CHECK(job.say(1, NodeProgress{}).only<Rejected>().why == Rejected::Why::kRankTaken);
}

TEST_CASE("of a flood of claims of one rank so many are held, and the others told to try again") {
  Job job(job_terms(2, 2));
  job.say(1, claiming(job, 1, 0));
  for (NodeId node = 0; node < limits::kHeldNodes; ++node) {
    CHECK(job.say(100 + node, claiming(job, 100 + node, 0)).all<Rejected>().empty());
  }
  const auto rejected = job.say(99, claiming(job, 99, 0)).only<Rejected>();
  CHECK(rejected.why == Rejected::Why::kRankTaken);
  CHECK(rejected.retry_ms.has_value());
  CHECK(job.on(KeepAliveReceived{1}).all<Rejected>().size() == limits::kHeldNodes);
  CHECK(job.coordinator.roster().size() == 1);
}

TEST_CASE("other units and restarts are refused naming both, and what no elastic-run says is refused, too") {
  Job job(job_terms(1, 4, 3));
  job.join(1);
  NodeJoins other = job.joiner(2);
  other.terms.node_unit = 2;
  other.terms.max_restarts = 5;
  const std::string reason = job.say(2, other).only<Rejected>().reason;
  CHECK(reason.find("--node_unit=2 --max-restarts=5") != std::string::npos);
  CHECK(reason.find("--node_unit=1 --max-restarts=3") != std::string::npos);
  for (const int workers : {0, -1, 1 << 30}) {
    CHECK(job.join(3, workers).only<Rejected>().why == Rejected::Why::kTermsDiffer);
  }
  NodeJoins odd = job.joiner(4);
  odd.facts.place.node_rank = -1;
  job.say(4, odd).only<Rejected>();
  odd = job.joiner(4);
  odd.facts.restart_count = -1;
  job.say(4, odd).only<Rejected>();
  odd = job.joiner(4);
  odd.node_rank = -1;
  job.say(4, odd).only<Rejected>();
  CHECK(job.coordinator.roster().size() == 1);

  JobTerms impossible = job_terms(3, 4);
  impossible.node_unit = 5;
  Job none(impossible);
  CHECK(none.join(1).only<Rejected>().reason.find("--node_unit=5") != std::string::npos);
}

TEST_CASE("newcomers make no new round of a job whose workers all succeed as they are told to stop") {
  for (const bool all_succeed : {true, false}) {
    CAPTURE(all_succeed);
    Job job(job_terms(2, 3), {.last_call_ms = 0, .scale_up = ScaleUp::kNow});
    job.run({1, 2});
    CHECK(job.join(3).all<StopWorkers>().size() == 2);
    job.say(1, WorkersSucceeded{0});
    if (all_succeed) job.say(2, WorkersSucceeded{0});
    CHECK(job.stop(1).silent());
    const Answer stopped = job.stop(2);
    CHECK(stopped.all<PrepareRound>().size() == (all_succeed ? 0 : 3));
    REQUIRE(stopped.all<EndJob>().size() == (all_succeed ? 3 : 0));
    if (!all_succeed) continue;
    CHECK(stopped.to<EndJob>(3).job_result.outcome == JobResult::Outcome::kSucceeded);
  }
}

TEST_CASE("what a node succeeded in before does not count for the round that is stopped now") {
  Job job(job_terms(2, 3), {.last_call_ms = 0, .scale_up = ScaleUp::kNow});
  job.run({1, 2});
  job.say(1, WorkersSucceeded{0});
  lose(job, 2);
  job.stop(1);
  job.join(2);
  job.pass_with({1, 2}, 2000);
  REQUIRE(job.coordinator.round() == 1U);
  job.open_store();
  CHECK(job.join(3).all<StopWorkers>().size() == 2);
  job.say(2, WorkersSucceeded{1});
  job.stop(1);
  CHECK(job.stop(2).all<PrepareRound>().size() == 3);
}
