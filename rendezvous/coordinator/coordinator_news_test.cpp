// Messages about older rounds, and the end of a job.
#include <doctest/doctest.h>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_test_support.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

// A job of two nodes that is in round 1 after a restart, in this state.
Job in_state(State state) {
  Job job(job_terms(2, 2, 3));
  job.run({1, 2});
  job.fail(1, failure(0, 5));
  job.stop(1, {failure(0, 5)});
  job.stop(2);
  if (state == State::kPreparing) return job;
  job.open_store();
  if (state == State::kStopping) job.fail(1, failure(0, 5));
  if (state == State::kEnding) {
    job.say(1, WorkersSucceeded{1});
    job.say(2, WorkersSucceeded{1});
  }
  if (state == State::kForming) {
    job.say(2, NodeLeaves{15});
    job.stop(2);
    job.stop(1);
  }
  return job;
}

}  // namespace

TEST_CASE("news of a round that is over, or is not yet, change nothing in any state") {
  for (const State state : {State::kForming, State::kPreparing, State::kRunning, State::kStopping, State::kEnding}) {
    for (const RoundNumber round : {0U, 2U, 4'000'000'000U}) {
      CAPTURE(static_cast<int>(state));
      CAPTURE(round);
      Job job = in_state(state);
      REQUIRE(job.coordinator.state() == state);
      const std::vector<AgentMessage> news = {StoreIsOpen{round, {"10.0.0.9", 1}},
                                              WorkerFailed{round, failure(0, 5)},
                                              WorkersSucceeded{round},
                                              NodeCannotRun{round, "no"},
                                              NodeStopped{round, {failure(0, 5)}},
                                              CheckDone{round, 0, "ok"},
                                              LoaderSays{round, {.failed = tuning::RankFailed{}}}};
      for (const AgentMessage& message : news) {
        for (const NodeId node : {1U, 2U}) CHECK(job.say(node, message).silent());
      }
      CHECK(job.on(NodeEmptied{1, job.coordinator.incarnation(), round}).silent());
      CHECK(job.on(NodeEmptied{2, job.coordinator.incarnation() + 1, 1}).silent());
      CHECK(job.coordinator.state() == state);
      CHECK(job.coordinator.round() == 1U);
      if (state == State::kStopping) {  // none of the messages was counted as an answer
        CHECK(job.stop(1).silent());
        CHECK(job.stop(2).to<PrepareRound>(1).restart_count == 2);
      }
      if (state == State::kRunning) {
        job.say(1, WorkersSucceeded{1});
        CHECK(job.say(2, WorkersSucceeded{1}).to<EndJob>(1).job_result.restarts_used == 1);
      }
    }
  }
}

TEST_CASE("news of a session that is closed, or never joined, change nothing") {
  Job job(job_terms(2, 2));
  job.run({1, 2});
  for (const NodeId stranger : {7U, 8U}) {
    CHECK(job.say(stranger, WorkerFailed{0, failure(0, 5)}).silent());
    CHECK(job.say(stranger, NodeLeaves{15}).silent());
    CHECK(job.on(SessionEnded{stranger, "reset"}).silent());
    CHECK(job.on(KeepAliveReceived{stranger}).silent());
  }
  CHECK(job.coordinator.state() == State::kRunning);
}

TEST_CASE("a node that has not been told to stop cannot have stopped, and only the first node's store counts") {
  Job job(job_terms(2, 2));
  job.join(1);
  job.join(2);
  CHECK(job.say(2, StoreIsOpen{0, {"10.0.0.2", 4000}}).silent());
  CHECK(job.stop(2).silent());
  CHECK(job.say(1, StoreIsOpen{0, {"10.0.0.1", 4000}}).to<RunWorkers>(2).store.address == "10.0.0.1");
  CHECK(job.say(1, StoreIsOpen{0, {"10.0.0.1", 4001}}).silent());
}

TEST_CASE("nodes that finish early wait, and rejoin a new round if one is needed") {
  Job job(job_terms(3, 3, 1));
  job.run({1, 2, 3});
  job.say(1, WorkersSucceeded{0});
  CHECK(job.pass_with({1, 2, 3}, 400'000).silent());  // the first node, with the store, without limit
  job.fail(2, failure(1, 5));
  job.stop(1);
  job.stop(2, {failure(1, 5)});
  CHECK(job.stop(3).all<PrepareRound>().size() == 3);
}

TEST_CASE("a node that has waited long enough for the others goes, and the job succeeds without it") {
  Job job(job_terms(2, 2));
  job.run({1, 2});
  CHECK(job.say(2, NodeLeaves{0}).silent());  // ignored, since its workers run
  job.say(2, WorkersSucceeded{0});
  const Answer left = job.say(2, NodeLeaves{0});
  left.only<Dismiss>();
  CHECK(left.all<StopWorkers>().empty());
  CHECK(job.coordinator.roster().size() == 1);
  CHECK(job.say(1, WorkersSucceeded{0}).only<EndJob>().job_result.outcome == JobResult::Outcome::kSucceeded);
}

TEST_CASE("a node that goes as it is told to stop is not waited for") {
  Job job(job_terms(1, 2, 1));
  job.run({1, 2});
  job.say(2, WorkersSucceeded{0});
  job.fail(1, failure(0, 5));
  job.stop(1, {failure(0, 5)});
  const Answer left = job.say(2, NodeLeaves{0});
  left.only<Dismiss>();
  CHECK(left.only<PrepareRound>().place.node_count == 1);
}

TEST_CASE("a job that is ending says when to try again; its own nodes may come back for the job result") {
  Job job = in_state(State::kEnding);
  const auto rejected = job.join(9).only<Rejected>();
  CHECK(rejected.why == Rejected::Why::kJobEnding);
  CHECK(rejected.retry_ms > 0);
  job.say(1, JobResultHeard{});
  CHECK(job.on(SessionEnded{2, "reset"}).silent());
  CHECK(job.pass_with({1}, 3000).silent());  // the node may come back for the job result while its lease may hold
  CHECK(job.pass_with({1}, 200).all<Dismiss>().size() == 1);
  Job other = in_state(State::kEnding);
  other.say(1, JobResultHeard{});
  NodeJoins back = other.joiner(2);
  back.facts = {.incarnation = other.coordinator.incarnation(),
                .term = 1,
                .round = 1,
                .activity = AgentFacts::Activity::kSucceeded};
  CHECK(other.say(12, back).to<EndJob>(12).job_result.outcome == JobResult::Outcome::kSucceeded);
  other.say(12, JobResultHeard{});
  CHECK(other.pass_with({1, 12}, 3200).all<Dismiss>().size() == 2);
}

TEST_CASE("a node that was asked about is told that the job ends, too") {
  Job job(job_terms(1, 1));
  NodeJoins first = job.joiner(1);
  first.node_rank = 0;
  job.say(1, first);
  job.open_store();
  NodeJoins second = job.joiner(2);
  second.node_rank = 0;
  // The incumbent's first message ends the job, and also shows that the node is alive.
  job.say(2, second).only<AreYouThere>();
  CHECK(job.say(1, WorkersSucceeded{0}).only<Rejected>().why == Rejected::Why::kRankTaken);
}

TEST_CASE("a job waits until every node has heard its result, those that are lost meanwhile excepted") {
  Job job = in_state(State::kEnding);
  CHECK(job.say(1, JobResultHeard{}).silent());
  CHECK(job.say(1, JobResultHeard{}).silent());
  CHECK(job.pass_with({1, 2}, 60'000).silent());
  CHECK(!job.coordinator.ended());
  const Answer silence = job.pass_with({1}, 9000);
  CHECK(silence.dropped(2));
  silence.only<Dismiss>();
  CHECK(job.coordinator.ended());
}

TEST_CASE("a stuck worker on a node that came back while the next round is forming ends the job all the same") {
  Job job(job_terms(2, 3));
  job.join(1);
  job.join(2);
  const PrepareRound its = job.join(3).to<PrepareRound>(3);
  job.open_store();
  job.on(SessionEnded{3, "reset"});
  job.stop(1);
  job.stop(2);
  CHECK(job.coordinator.state() == State::kForming);
  NodeJoins back = job.joiner(3);
  back.facts = facts_of(its, job.coordinator.incarnation(), AgentFacts::Activity::kStopping);
  job.say(13, back);
  CHECK(job.say(13, NodeCannotRun{0, "it does not end"}).to<EndJob>(1).job_result.reason ==
        "node 2 (node3): it does not end");
}

TEST_CASE("what the first node says of its loaders is for all others, and what these say is for the first") {
  Job job(job_terms(3, 3, 3));
  job.run({1, 2, 3});
  const tuning::LoaderWord values{.values =
                                      tuning::ChosenValues{.version = 4, .workers = tuning::ChosenValue{1, 2, 4}}};
  const auto told = job.say(1, LoaderSays{0, values}).all<LoaderTold>();
  CHECK(told == std::vector<std::pair<NodeId, LoaderTold>>{{2, {0, 0, values}}, {3, {0, 0, values}}});
  const tuning::LoaderWord state{.node = tuning::NodeState{.free_bytes = 5}};
  job.join(4);  // a standby
  CHECK(job.say(3, LoaderSays{0, state}).all<LoaderTold>() ==
        std::vector<std::pair<NodeId, LoaderTold>>{{1, {0, 2, state}}});
  CHECK(job.say(4, LoaderSays{0, values}).silent());
  job.on(SessionEnded{2, "reset"});
  CHECK(job.say(1, LoaderSays{0, values}).all<LoaderTold>() ==
        std::vector<std::pair<NodeId, LoaderTold>>{{3, {0, 0, values}}});
}

TEST_CASE("how a round has ended for the loaders of another node is heard until all nodes have stopped") {
  Job job(job_terms(2, 2, 3));
  job.run({1, 2});
  const LoaderSays died{0, {.failed = tuning::RankFailed{"host-memory"}}};
  job.fail(2, failure(0, 5));
  job.stop(1);
  CHECK(job.say(2, died).to<LoaderTold>(1).word == died.word);
  CHECK(!job.stop(2, {failure(0, 5)}).all<PrepareRound>().empty());
  CHECK(job.say(2, died).silent());
  // Before the store is open the first node says what holds.
  const LoaderSays holds{1, {.values = tuning::ChosenValues{}}};
  CHECK(job.say(1, holds).to<LoaderTold>(2).word == holds.word);
}
