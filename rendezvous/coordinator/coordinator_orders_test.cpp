// What an operator orders while the job runs, in each of its states.
#include <doctest/doctest.h>

#include <csignal>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_test_support.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

using Kind = OrderAnswered::Kind;

constexpr NodeLeaves kDrained{.signal = SIGTERM, .ordered = true};
constexpr NodeLeaves kByScheduler{.signal = SIGTERM, .ordered = true, .by_scheduler = true};

OrderAnswered answered(const Answer& answer) {
  for (const Effect& effect : answer.effects) {
    if (const auto* found = std::get_if<OrderAnswered>(&effect)) return *found;
  }
  FAIL("the operator got no answer");
  return {};
}
Answer drain(Job& job, const std::string& node) { return job.on(OperatorOrder{.node = node, .from = "10.0.0.9"}); }
Answer stop(Job& job) { return job.on(OperatorOrder{.kind = OperatorOrder::Kind::kStop}); }

}  // namespace

TEST_CASE("a node that an operator drains leaves as if it had received SIGTERM, and no restart is charged") {
  Job job(job_terms(2, 3, 1));
  job.run({1, 2, 3});
  const Answer told = drain(job, "1");
  CHECK(answered(told).kind == Kind::kAccepted);
  CHECK(told.to<LeaveJob>(2).from == "10.0.0.9");
  CHECK(told.all<StopWorkers>().empty());  // the node says that it leaves; should it die first, it is lost
  CHECK(job.say(2, kDrained).all<StopWorkers>().size() == 2);
  job.stop(1);
  job.stop(3);
  const Answer gone = job.stop(2);
  const JobResult job_result = gone.to<EndJob>(2).job_result;
  CHECK(job_result.outcome == Outcome::kStopped);
  CHECK(job_result.signal == SIGTERM);
  CHECK(job_result.reason == "an operator has drained this node");
  CHECK(gone.all<Dismiss>().size() == 1);
  const auto again = gone.to<PrepareRound>(1);
  CHECK(again.reason == "node 1 (node2) was drained by an operator");
  CHECK(again.restart_count == 0);
  CHECK(!again.charged);
  CHECK(again.place.node_count == 2);
}

TEST_CASE("a node that the scheduler drains leaves the round that is prepared, and the failure before it is charged") {
  Job job(job_terms(1, 3, 1));
  job.run({1, 2, 3});
  job.fail(1, failure(0, 1000));
  job.stop(1, {failure(0, 1000)});
  job.stop(3);
  CHECK(job.stop(2).to<PrepareRound>(2).restart_count == 1);
  CHECK(job.say(2, kByScheduler).all<StopWorkers>().size() == 2);
  job.stop(1);
  job.stop(3);
  const Answer gone = job.stop(2);
  CHECK(gone.to<EndJob>(2).job_result.reason == "the scheduler has drained this node");
  const auto again = gone.to<PrepareRound>(1);
  CHECK(again.reason == "node 1 (node2) was drained by the scheduler");
  CHECK(!again.charged);
  CHECK(again.restart_count == 1);
  CHECK(again.place.node_count == 2);
}

TEST_CASE(
    "a job whose coordinator cannot move ends by name with the node that hosts it, when the scheduler drains that") {
  Job job(job_terms(1, 2, 1));
  NodeJoins host = job.joiner(1);
  host.hosts_coordinator = true;
  job.say(1, host);
  job.join(2);
  job.open_store();
  job.say(1, kByScheduler);
  job.stop(2);
  const JobResult ended = job.stop(1).to<EndJob>(2).job_result;
  CHECK(ended.outcome == Outcome::kStopped);
  CHECK(ended.reason == "node 0 (node1) was drained by the scheduler, and the coordinator stops with it");
}

TEST_CASE("a node that stands by and leaves is not why the round ends that runs without it") {
  Job job(job_terms(1, 2, 1));
  job.run({1, 2});
  job.join(3);
  job.say(3, NodeLeaves{SIGTERM});
  job.fail(1, failure(0, 1000));
  job.stop(1, {failure(0, 1000)});
  const auto again = job.stop(2).to<PrepareRound>(1);
  CHECK(again.reason.starts_with("rank 0 "));
  CHECK(again.charged);
}

TEST_CASE("a node whose session ended before it got the order gets it in the next one, and nobody else does") {
  Job job(job_terms(1, 3));
  job.run({1, 2, 3});
  drain(job, "node2");
  job.on(SessionEnded{2, "its connection was reset"});
  NodeJoins back = job.joiner(2);
  CHECK(job.say(22, back).to<LeaveJob>(22).from.empty());
  CHECK(job.join(4).all<LeaveJob>().empty());
  CHECK(answered(drain(job, "node2")).text.contains("is leaving already"));
  // It has left: a node that is started there again is a new one.
  job.say(22, kDrained);
  CHECK(job.say(2, back).all<LeaveJob>().empty());
}

TEST_CASE("a node that waits leaves at once, and the round that runs goes on") {
  Job job(job_terms(1, 2));
  CHECK(answered(drain(job, "0")).kind == Kind::kUnknown);
  job.run({1, 2});
  job.join(3);
  CHECK(drain(job, "node3").all<LeaveJob>().size() == 1);
  const Answer left = job.say(3, kDrained);
  CHECK(left.to<EndJob>(3).job_result.reason == "an operator has drained this node");
  CHECK(left.all<StopWorkers>().empty());
  CHECK(job.coordinator.state() == State::kRunning);
  CHECK(job.coordinator.roster().size() == 2);
}

TEST_CASE("a job that an operator stops ends on all nodes as stopped, whatever fails meanwhile") {
  Job job(job_terms(2, 2, 3));
  job.run({1, 2});
  const Answer told = stop(job);
  CHECK(answered(told).kind == Kind::kAccepted);
  CHECK(told.all<StopWorkers>().size() == 2);
  const Answer twice = stop(job);
  CHECK(answered(twice).text == "the job is ending already, on all its nodes");
  CHECK(twice.all<StopWorkers>().empty());
  CHECK(answered(drain(job, "1")).kind == Kind::kAccepted);
  job.stop(1, {failure(0, 10)});
  const JobResult job_result = job.stop(2).to<EndJob>(2).job_result;
  CHECK(job_result.outcome == Outcome::kStopped);
  CHECK(job_result.reason == "stopped by an operator");
  CHECK(job_result.signal == SIGTERM);
  CHECK(job_result.restarts_used == 0);
  CHECK(answered(stop(job)).text == "the job is ending already, on all its nodes");
  job.say(1, JobResultHeard{});
  CHECK(job.say(2, JobResultHeard{}).all<Dismiss>().size() == 2);
  CHECK(job.coordinator.state() == State::kEnded);
}

TEST_CASE("a job without workers ends at once when an operator stops it") {
  Job forming(job_terms(2, 2));
  forming.join(1);
  CHECK(stop(forming).to<EndJob>(1).job_result.reason == "stopped by an operator");

  Job between(job_terms(2, 2));
  between.run({1, 2});
  between.say(2, kDrained);
  between.stop(1);
  between.stop(2);
  REQUIRE(between.coordinator.state() == State::kForming);
  CHECK(stop(between).to<EndJob>(1).job_result.outcome == Outcome::kStopped);

  Job preparing(job_terms(2, 2));
  preparing.join(1);
  preparing.join(2);
  REQUIRE(preparing.coordinator.state() == State::kPreparing);
  CHECK(stop(preparing).all<StopWorkers>().size() == 2);
  preparing.stop(1);
  CHECK(preparing.stop(2).all<EndJob>().size() == 2);
}

TEST_CASE("a coordinator that collects the nodes of a running round stops the job, too, and drains who is back") {
  for (const bool stops : {true, false}) {
    Job before(job_terms(2, 3));
    before.run({1, 2, 3});
    const Answer prepared = [&] {
      Job same(job_terms(2, 3));
      same.join(1);
      same.join(2);
      return same.join(3);
    }();
    Job job(job_terms(2, 3), {}, {.term = 2, .incarnation = 9});
    const auto back = [&](NodeId session) {
      NodeJoins joins = job.joiner(session);
      joins.facts = facts_of(prepared.to<PrepareRound>(session), 1, AgentFacts::Activity::kRunning);
      return job.say(session, joins);
    };
    job.on(Introduced{1, 1});
    back(1);
    back(2);
    REQUIRE(job.coordinator.state() == State::kRecovery);
    if (stops) {
      CHECK(stop(job).all<StopWorkers>().size() == 2);
      CHECK(back(3).all<StopWorkers>().size() == 1);
      for (const NodeId session : {1U, 2U}) job.stop(session);
      CHECK(job.stop(3).to<EndJob>(3).job_result.reason == "stopped by an operator");
    } else {
      CHECK(drain(job, "1").all<LeaveJob>().size() == 1);
      CHECK(job.say(2, kDrained).all<StopWorkers>().size() == 1);
    }
  }
}
