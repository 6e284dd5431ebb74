#include "rendezvous/coordinator/coordinator.h"

#include <doctest/doctest.h>

#include <csignal>

#include "rendezvous/coordinator/coordinator_test_support.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

JobTerms nodes(int min, int max, int max_restarts = 0) {
  return {.min_nodes = min, .max_nodes = max, .node_unit = 1, .max_restarts = max_restarts};
}

// A job of one node with four workers, in kRunning.
struct OneNode : Job {
  explicit OneNode(int max_restarts) : Job(nodes(1, 1, max_restarts)) {
    NodeJoins join = joiner(7, 4);
    join.hosts_coordinator = true;
    say(7, join).only<PrepareRound>();
    say(7, StoreIsOpen{0, {"127.0.0.1", 4000}}).only<RunWorkers>();
  }
};

}  // namespace

TEST_CASE("a round is prepared when all nodes have joined, and run when its store is open") {
  Job job(nodes(2, 2));
  CHECK(job.join(1, 2).silent());
  const auto prepared = job.join(2, 3).all<PrepareRound>();
  REQUIRE(prepared.size() == 2);
  CHECK(prepared[1].second.round == 0);
  CHECK(prepared[1].second.restart_count == 0);
  CHECK(prepared[1].second.place == NodePlace{1, 2, 2, 5, 2, 5});
  CHECK(prepared[0].second.membership == prepared[1].second.membership);
  const auto run = job.say(1, StoreIsOpen{0, {"10.0.0.1", 4000}}).all<RunWorkers>();
  REQUIRE(run.size() == 2);
  CHECK(run[1].second.store == StoreEndpoint{"10.0.0.1", 4000});
}

TEST_CASE("the job succeeds when every node's workers have, and all are dismissed when all have heard it") {
  Job job(nodes(2, 2));
  job.run({1, 2});
  CHECK(job.say(1, WorkersSucceeded{0}).silent());
  const auto end = job.say(2, WorkersSucceeded{0}).all<EndJob>();
  REQUIRE(end.size() == 2);
  CHECK(end[0].second.job_result.outcome == JobResult::Outcome::kSucceeded);
  CHECK(job.say(1, JobResultHeard{}).silent());
  CHECK(!job.coordinator.ended());
  CHECK(job.say(2, JobResultHeard{}).all<Dismiss>().size() == 2);
  CHECK(job.coordinator.ended());
}

TEST_CASE("a failure stops the round at once and is charged when all have stopped") {
  OneNode job(1);
  CHECK(job.say(7, WorkerFailed{0, failure(2, 5)}).only<StopWorkers>().round == 0);
  CHECK(job.say(7, WorkerFailed{0, failure(3, 6)}).silent());
  const auto again = job.say(7, NodeStopped{0, {failure(2, 5)}}).only<PrepareRound>();
  CHECK(again.round == 1);
  CHECK(again.restart_count == 1);
  CHECK(again.charged);
  CHECK(again.reason == "rank 2 (local rank 2, pid 102) exited with code 1");
}

TEST_CASE("two workers that fail together cost one restart") {
  OneNode job(2);
  job.say(7, WorkerFailed{0, failure(0, 5)});
  job.say(7, WorkerFailed{0, failure(1, 5)});
  CHECK(job.say(7, NodeStopped{0, {failure(0, 5), failure(1, 5)}}).only<PrepareRound>().restart_count == 1);
}

TEST_CASE("with no restart left the job fails, the first failure first and consequences last") {
  OneNode job(0);
  job.say(7, WorkerFailed{0, failure(2, 50)});
  const auto job_result = job.say(7, NodeStopped{0, {failure(0, 40, true), failure(2, 50), failure(1, 45, true)}})
                              .only<EndJob>()
                              .job_result;
  CHECK(job_result.outcome == JobResult::Outcome::kFailed);
  REQUIRE(job_result.failures.size() == 3);
  CHECK(job_result.failures[0].rank == 2);
  CHECK(job_result.failures[1].rank == 0);
  CHECK(job_result.failures[2].rank == 1);
}

TEST_CASE("news of an older round changes nothing") {
  OneNode job(3);
  job.say(7, WorkerFailed{0, failure(2, 5)});
  job.say(7, NodeStopped{0, {}});
  job.say(7, StoreIsOpen{1, {"127.0.0.1", 4001}}).only<RunWorkers>();
  CHECK(job.say(7, WorkerFailed{0, failure(1, 6)}).silent());
  CHECK(job.say(7, WorkersSucceeded{0}).silent());
  CHECK(job.say(7, NodeStopped{0, {}}).silent());
  CHECK(job.say(7, NodeCannotRun{0, "too late"}).silent());
  CHECK(job.say(7, StoreIsOpen{0, {"127.0.0.1", 4000}}).silent());
  CHECK(job.coordinator.state() == Coordinator::State::kRunning);
}

TEST_CASE("a signal to the coordinator's node ends the job when all have stopped, restarts left or not") {
  OneNode job(3);
  job.say(7, NodeLeaves{SIGTERM}).only<StopWorkers>();
  const auto job_result = job.say(7, NodeStopped{0, {}}).only<EndJob>().job_result;
  CHECK(job_result.outcome == JobResult::Outcome::kStopped);
  CHECK(job_result.signal == SIGTERM);
  CHECK(job_result.reason == "stopped by SIGTERM");
}

TEST_CASE("a signal during the stop of a failed round outranks the restart") {
  OneNode job(3);
  job.say(7, WorkerFailed{0, failure(2, 5)});
  CHECK(job.say(7, NodeLeaves{SIGTERM}).silent());
  CHECK(job.say(7, NodeStopped{0, {}}).only<EndJob>().job_result.outcome == JobResult::Outcome::kStopped);
}

TEST_CASE("a node that cannot run ends the job without a restart") {
  OneNode job(3);
  job.say(7, NodeCannotRun{0, "cannot execute x"}).only<StopWorkers>();
  const auto job_result = job.say(7, NodeStopped{0, {}}).only<EndJob>().job_result;
  CHECK(job_result.outcome == JobResult::Outcome::kFailed);
  CHECK(job_result.reason == "cannot execute x");
  CHECK(job_result.restarts_used == 0);
}

TEST_CASE("a worker that fails after others have succeeded restarts them all") {
  Job job(nodes(2, 2, 1));
  job.run({1, 2});
  job.say(1, WorkersSucceeded{0});
  CHECK(job.say(2, WorkerFailed{0, failure(1, 5)}).all<StopWorkers>().size() == 2);
  CHECK(job.say(1, NodeStopped{0, {}}).silent());
  CHECK(job.say(2, NodeStopped{0, {failure(1, 5)}}).all<PrepareRound>().size() == 2);
  job.open_store();
  CHECK(job.say(2, WorkersSucceeded{1}).silent());
  CHECK(job.say(1, WorkersSucceeded{1}).all<EndJob>().size() == 2);
}

TEST_CASE("a lost node costs no restart and is named, though another's workers failed before it was known") {
  Job job(nodes(1, 2, 0));
  job.run({1, 2});
  job.say(1, WorkerFailed{0, failure(0, 5)});
  job.say(1, NodeStopped{0, {failure(0, 5)}});
  CHECK(job.coordinator.state() == Coordinator::State::kStopping);  // the other node has not answered
  const Answer lost = job.on(SessionEnded{2, "its connection was reset"});
  CHECK(lost.all<PrepareRound>().empty());  // its lease may hold
  const auto again = job.pass_with({1}, 4000).only<PrepareRound>();
  CHECK(again.restart_count == 0);
  CHECK(!again.charged);
  CHECK(again.reason == "node 1 (node2) was lost: its connection was reset");
  CHECK(again.place.node_count == 1);
}

TEST_CASE("a round after a loss begins when the lost node's lease is over, and not before") {
  Job job(nodes(1, 2));
  job.run({1, 2});
  job.now_ms = 10'000;
  job.on(KeepAliveReceived{2});
  job.on(KeepAliveReceived{1});
  job.on(SessionEnded{2, "reset"});
  job.say(1, NodeStopped{0, {}});
  const LeaseTimes lease;
  CHECK(job.pass(lease.over_ms() - 1).all<PrepareRound>().empty());
  CHECK(job.pass(1).all<PrepareRound>().size() == 1);
}

TEST_CASE("a guardian's death notice ends the wait for its node's lease") {
  Job job(nodes(1, 2));
  job.run({1, 2});
  job.on(SessionEnded{2, "reset"});
  job.say(1, NodeStopped{0, {}});
  CHECK(job.on(NodeEmptied{2, job.coordinator.incarnation() + 1, 0}).silent());
  CHECK(job.on(NodeEmptied{2, job.coordinator.incarnation(), 1}).silent());
  CHECK(job.on(NodeEmptied{2, job.coordinator.incarnation(), 0}).all<PrepareRound>().size() == 1);
}

TEST_CASE("a silent node is lost when the loss timeout is over") {
  Job job(nodes(1, 2));
  job.run({1, 2});
  CHECK(job.pass_with({1}, 4900).silent());
  const Answer lost = job.pass_with({1}, 200);
  CHECK(lost.dropped(2));
  CHECK(lost.all<StopWorkers>().size() == 1);
}

TEST_CASE("nodes that arrive together cost one new round") {
  Job job(nodes(1, 4), {.last_call_ms = 0});
  job.run({1});
  CHECK(job.join(2).silent());
  CHECK(job.pass_with({1, 2}, 900).silent());
  CHECK(job.join(3).silent());
  CHECK(job.pass_with({1, 2, 3}, 900).silent());
  CHECK(job.pass_with({1, 2, 3}, 200).only<StopWorkers>().round == 0);
  const auto prepared = job.say(1, NodeStopped{0, {}}).all<PrepareRound>();
  REQUIRE(prepared.size() == 3);
  CHECK(prepared[0].second.restart_count == 0);
}

TEST_CASE("a node that claims a rank which a living one has is refused, and takes it from a dead one") {
  Job job(nodes(2, 2));
  NodeJoins first = job.joiner(1);
  first.node_rank = 0;
  job.say(1, first);
  NodeJoins second = job.joiner(2);
  second.node_rank = 0;
  job.say(2, second).only<AreYouThere>();
  CHECK(job.on(KeepAliveReceived{1}).only<Rejected>().why == Rejected::Why::kRankTaken);
  NodeJoins third = job.joiner(3);
  third.node_rank = 0;
  job.say(3, third).only<AreYouThere>();
  CHECK(job.pass(1000).dropped(1));
  CHECK(job.coordinator.roster().size() == 1);
}

TEST_CASE("a node whose workers are of a round that went on has to end them before it may join") {
  Job job(nodes(1, 2));
  job.run({1, 2});
  job.on(SessionEnded{2, "reset"});
  job.say(1, NodeStopped{0, {}});
  job.pass_with({1}, 4000);
  REQUIRE(job.coordinator.round() == 1U);
  NodeJoins back = job.joiner(2);
  back.facts = {.incarnation = job.coordinator.incarnation(), .round = 0, .activity = AgentFacts::Activity::kRunning};
  CHECK(job.say(12, back).only<Rejected>().why == Rejected::Why::kRoundWentOn);
  back.facts.activity = AgentFacts::Activity::kIdle;
  CHECK(job.say(13, back).all<Rejected>().empty());
}

TEST_CASE("a coordinator that is back within the lease takes over what its agents report, and touches nothing") {
  Job before(nodes(2, 2, 3));
  const auto prepared = [&] {
    before.join(1);
    return before.join(2).all<PrepareRound>();
  }();
  REQUIRE(prepared.size() == 2);
  Job after(nodes(2, 2, 3), {}, {.term = 2, .incarnation = 99, .now_ms = 500});
  for (const auto& [session, round] : prepared) {
    NodeJoins back = after.joiner(session);
    back.facts = {.incarnation = before.coordinator.incarnation(),
                  .term = 1,
                  .round = 0,
                  .activity = AgentFacts::Activity::kRunning,
                  .place = round.place,
                  .restart_count = 2,
                  .membership = round.membership};
    after.on(Introduced{back.facts.incarnation, back.facts.term});
    CHECK(after.say(session, back).silent());
  }
  CHECK(after.coordinator.state() == Coordinator::State::kRunning);
  CHECK(after.coordinator.incarnation() == before.coordinator.incarnation());
  after.say(1, WorkersSucceeded{0});
  CHECK(after.say(2, WorkersSucceeded{0}).to<EndJob>(1).job_result.restarts_used == 2);
}

TEST_CASE("a job result that one agent has heard reaches all through the coordinator that comes after") {
  Job after(nodes(2, 2), {}, {.term = 2, .incarnation = 99, .now_ms = 500});
  NodeJoins knows = after.joiner(1);
  knows.facts = {.incarnation = 5, .term = 1, .round = 3, .job_result = JobResult{.round = 3}};
  after.on(Introduced{5, 1});
  CHECK(after.say(1, knows).only<EndJob>().job_result.outcome == JobResult::Outcome::kSucceeded);
  after.say(1, JobResultHeard{});
  NodeJoins other = after.joiner(2);
  other.facts = {.incarnation = 5, .term = 1, .round = 3, .activity = AgentFacts::Activity::kSucceeded};
  CHECK(after.say(2, other).only<EndJob>().job_result.outcome == JobResult::Outcome::kSucceeded);
  CHECK(after.say(2, JobResultHeard{}).all<Dismiss>().empty());  // others may still look for the coordinator
  CHECK(after.pass_with({1, 2}, 4000).all<Dismiss>().size() == 2);
}

TEST_CASE("a job result of a coordinator before the one that has formed the round is not taken") {
  for (const Term given : {1u, 7u}) {
    Job job(nodes(2, 2), {}, {.term = 7, .incarnation = 5});
    job.run({1, 2});
    NodeJoins knows = job.joiner(3);
    knows.facts = {.incarnation = 5, .term = 1, .round = 0, .job_result = JobResult{.round = 0, .term = given}};
    job.say(3, knows);
    CHECK((job.coordinator.state() == Coordinator::State::kEnding) == (given == 7));
  }
}

TEST_CASE("nodes that were started with other terms are refused, naming both") {
  Job job(nodes(2, 2));
  job.join(1);
  NodeJoins other = job.joiner(2);
  other.terms.max_nodes = 4;
  const auto rejected = job.say(2, other).only<Rejected>();
  CHECK(rejected.why == Rejected::Why::kTermsDiffer);
  CHECK(rejected.reason.find("--nnodes=2:4") != std::string::npos);
  CHECK(rejected.reason.find("--nnodes=2 ") != std::string::npos);
}
