// A coordinator that knows nothing learns from its agents what runs; and one that is not the job's any more goes.
#include <doctest/doctest.h>

#include "src/job/coordinator.h"
#include "src/job/coordinator_test_support.h"

using namespace elastic;
using namespace elastic::job;
using namespace elastic::job::testing;
using namespace elastic::protocol;

namespace {

using Activity = AgentFacts::Activity;
using State = Coordinator::State;

constexpr Incarnation kJob = 77;
constexpr Activity kActivities[] = {Activity::kIdle, Activity::kPreparing, Activity::kRunning, Activity::kSucceeded,
                                    Activity::kStopping};

// A coordinator of term 2, born at 500, and the nodes of a round that the one before it formed.
struct After : Job {
  explicit After(JobTerms with_terms, int nodes_of_round)
      : Job(with_terms, {}, {.term = 2, .incarnation = 1, .now_ms = 500}), size(nodes_of_round) {}

  // Node `rank` of the round has the session and agent number rank + 1.
  NodeJoins report(int rank, Activity activity) const {
    NodeJoins joins = joiner(static_cast<AgentId>(rank) + 1);
    PrepareRound its;
    its.round = round;
    its.restart_count = 2;
    its.losses = 1;
    its.membership = 4711;
    its.place = {rank, size, rank, size, rank, size};
    joins.facts = facts_of(its, kJob, activity);
    return joins;
  }
  Answer back(NodeId session, const NodeJoins& joins) {
    on(Introduced{joins.facts.incarnation, joins.facts.term});
    return say(session, joins);
  }
  Answer back(int rank, Activity activity) { return back(static_cast<NodeId>(rank) + 1, report(rank, activity)); }

  int size;
  RoundNumber round = 5;
};

bool goes_on(Activity activity) { return activity == Activity::kRunning || activity == Activity::kSucceeded; }

}  // namespace

TEST_CASE("a coordinator takes the job's name from the first that reports it, and a term above all it has heard of") {
  After job(job_terms(2, 2, 3), 2);
  NodeJoins joins = job.report(0, Activity::kRunning);
  joins.facts.term = 8;
  CHECK(job.back(1, joins).silent());
  CHECK(job.coordinator.incarnation() == kJob);
  CHECK(job.coordinator.term() == 9);
  CHECK(job.coordinator.state() == State::kRebuilding);
  CHECK(job.coordinator.round() == 5U);
}

TEST_CASE("whatever the nodes of a round were doing, it goes on untouched if that is all of it, or is made anew") {
  for (const Activity first : kActivities) {
    for (const Activity second : kActivities) {
      CAPTURE(static_cast<int>(first));
      CAPTURE(static_cast<int>(second));
      After job(job_terms(2, 2, 3), 2);
      Answer all = job.back(0, first);
      CHECK(job.coordinator.state() == State::kRebuilding);
      const Answer more = job.back(1, second);
      all.effects.insert(all.effects.end(), more.effects.begin(), more.effects.end());
      if (first == Activity::kSucceeded && second == Activity::kSucceeded) {
        CHECK(all.to<EndJob>(1).verdict.outcome == Verdict::Outcome::kSucceeded);
        continue;
      }
      if (goes_on(first) && goes_on(second)) {
        CHECK(all.silent());
        CHECK(job.coordinator.state() == State::kRunning);
        continue;
      }
      Answer last = more;
      for (const NodeId node : {1U, 2U}) {
        if ((node == 1 ? first : second) == Activity::kIdle) continue;
        CHECK(all.to<StopWorkers>(node).round == 5);
        CHECK(last.all<PrepareRound>().empty());
        last = job.stop(node);
      }
      const PrepareRound again = last.to<PrepareRound>(2);
      CHECK(again.round == 6);
      CHECK(again.place.node_rank == 1);  // as before
      CHECK(again.restart_count == 2);
      CHECK(again.losses == 1);
      CHECK(!again.charged);
      CHECK(!again.reason.empty());
    }
  }
}

TEST_CASE("budgets go on from what agents report: a failure after the rebuilding is one more restart") {
  After job(job_terms(2, 2, 3), 2);
  job.back(0, Activity::kRunning);
  job.back(1, Activity::kRunning);
  job.fail(1, failure(0, 5));
  job.stop(1, {failure(0, 5)});
  CHECK(job.stop(2).to<PrepareRound>(1).restart_count == 3);
  job.open_store();
  job.fail(2, failure(1, 5));
  job.stop(1);
  CHECK(job.stop(2, {failure(1, 5)}).to<EndJob>(1).verdict.restarts_used == 3);
}

TEST_CASE("a failure that the coordinator before did not live to judge is charged by the next, once") {
  After job(job_terms(2, 2, 3), 2);
  NodeJoins failed = job.report(0, Activity::kIdle);
  failed.facts.failures = {failure(0, 5)};
  job.back(1, failed);
  CHECK(job.back(1, Activity::kRunning).to<StopWorkers>(2).round == 5);
  const PrepareRound again = job.stop(2, {failure(1, 6, true)}).to<PrepareRound>(1);
  CHECK(again.restart_count == 3);
  CHECK(again.charged);
  CHECK(again.reason == "rank 0 (local rank 0, pid 100) exited with code 1");
}

TEST_CASE("a node that does not come back is lost when every lease of the coordinator before is over, and not earlier") {
  After job(job_terms(1, 2, 3), 2);
  job.back(0, Activity::kRunning);
  const std::int64_t over_ms = LeaseTimes{}.over_ms();
  job.on(Heard{1});
  CHECK(job.pass(over_ms - 1).silent());
  CHECK(job.pass(1).only<StopWorkers>().round == 5);
  const PrepareRound again = job.stop(1).only<PrepareRound>();
  CHECK(again.reason == "node 1 was lost: it did not come back when the coordinator did");
  CHECK(again.restart_count == 2);
  CHECK(again.losses == 2);
  CHECK(again.place.node_count == 1);
}

TEST_CASE("a node that reports twice is one, and another is waited for all the same") {
  for (const Activity activity : {Activity::kIdle, Activity::kRunning}) {
    After job(job_terms(1, 2, 3), 2);
    job.back(0, activity);
    job.on(SessionEnded{1, "reset"});
    CHECK(job.back(11, job.report(0, activity)).all<PrepareRound>().empty());
    CHECK(job.coordinator.state() == State::kRebuilding);
    job.on(Heard{11});
    CHECK(job.pass_with({11}, 3000).all<PrepareRound>().empty());
  }
}

TEST_CASE("a connection that breaks while the round is taken over stops it, as at any other time") {
  After job(job_terms(2, 2, 3), 2);
  job.back(0, Activity::kRunning);
  job.on(SessionEnded{1, "reset"});
  CHECK(job.back(11, job.report(0, Activity::kRunning)).to<StopWorkers>(11).round == 5);
  CHECK(job.back(1, Activity::kRunning).to<StopWorkers>(2).round == 5);
}

TEST_CASE("who reports an older round than another has not heard that it went on, and is told so") {
  for (const bool older_first : {true, false}) {
    After job(job_terms(1, 2, 3), 2);
    NodeJoins older = job.report(1, Activity::kRunning);
    older.facts.round = 4;
    older.facts.membership = 4;
    job.size = 1;  // the later round is of one node
    const NodeJoins newer = job.report(0, Activity::kRunning);
    const Answer first = older_first ? job.back(2, older) : job.back(1, newer);
    CHECK(first.silent());
    const Answer second = older_first ? job.back(1, newer) : job.back(2, older);
    CHECK(second.to<Rejected>(2).why == Rejected::Why::kRoundWentOn);
    CHECK(second.to<Rejected>(2).retry_ms == 0);
    CHECK(second.all<StopWorkers>().empty());
    CHECK(job.coordinator.state() == State::kRunning);
    CHECK(job.coordinator.round() == 5U);
  }
}

TEST_CASE("newcomers stand by while a round is taken over, and do not disturb it") {
  After job(job_terms(2, 2, 3), 2);
  CHECK(job.join(9).silent());
  CHECK(job.back(0, Activity::kRunning).silent());
  CHECK(job.join(8).silent());
  CHECK(job.back(1, Activity::kRunning).silent());
  CHECK(job.coordinator.state() == State::kRunning);
  CHECK(job.coordinator.nodes() == 4);
}

TEST_CASE("the terms are those of the nodes that are in the job, not of a newcomer that was earlier") {
  After job(job_terms(2, 2, 3), 2);
  NodeJoins newcomer = job.joiner(9);
  newcomer.terms.max_nodes = 4;
  CHECK(job.say(9, newcomer).silent());
  const Answer back = job.back(0, Activity::kRunning);
  CHECK(back.only<Rejected>().why == Rejected::Why::kTermsDiffer);
  CHECK(back.to<Rejected>(9).reason.find("--nnodes=2:4 ") != std::string::npos);
  CHECK(job.back(1, Activity::kRunning).silent());
  CHECK(job.coordinator.state() == State::kRunning);
  job.fail(1, failure(0, 5));
  job.stop(1, {failure(0, 5)});
  CHECK(job.stop(2).to<PrepareRound>(1).max_restarts == 3);
}

TEST_CASE("a newcomer that was earlier and claims the rank of a node which runs is the one that is refused") {
  After job(job_terms(2, 2, 3), 2);
  NodeJoins newcomer = job.joiner(9);
  newcomer.node_rank = 0;
  job.say(9, newcomer);
  NodeJoins member = job.report(0, Activity::kRunning);
  member.node_rank = 0;
  const Answer back = job.back(1, member);
  CHECK(back.to<Rejected>(9).why == Rejected::Why::kRankTaken);
  CHECK(back.all<AreYouThere>().empty());
  CHECK(job.back(1, Activity::kRunning).silent());
  CHECK(job.coordinator.state() == State::kRunning);
}

TEST_CASE("a verdict that was heard ends the job even where others report that they run") {
  After job(job_terms(2, 2, 3), 2);
  job.back(0, Activity::kRunning);
  NodeJoins knows = job.report(1, Activity::kIdle);
  knows.facts.verdict = Verdict{.outcome = Verdict::Outcome::kFailed, .reason = "why", .round = 5};
  const Answer ended = job.back(2, knows);
  CHECK(ended.to<EndJob>(1).verdict.reason == "why");
  CHECK(ended.to<EndJob>(2).verdict.reason == "why");
  job.say(1, VerdictHeard{});
  CHECK(job.say(2, VerdictHeard{}).all<Dismiss>().empty());  // others may look for us as long as leases run
  CHECK(job.pass_with({1, 2}, 4000).all<Dismiss>().size() == 2);
}

TEST_CASE("a verdict that comes too late, when the job goes on, is not taken in") {
  After job(job_terms(1, 2, 3), 2);
  job.back(0, Activity::kRunning);
  job.pass_with({1}, 3200);
  job.stop(1);
  NodeJoins late = job.report(1, Activity::kIdle);
  late.facts.verdict = Verdict{};
  CHECK(job.back(2, late).only<Rejected>().why == Rejected::Why::kRoundWentOn);
  CHECK(job.coordinator.nodes() == 1);
}

TEST_CASE("a coordinator steps down when an agent knows of a later one, and not for older or other news") {
  Job job(job_terms(2, 2), {}, {.term = 3, .incarnation = kJob});
  job.run({1, 2});
  CHECK(job.on(Introduced{kJob, 3}).silent());
  CHECK(job.on(Introduced{kJob, 2}).silent());
  CHECK(job.on(Introduced{kJob + 1, 9}).silent());
  CHECK(job.on(Introduced{0, 9}).silent());
  CHECK(!job.coordinator.ended());
  const Answer answer = job.on(Introduced{kJob, 4});
  CHECK(answer.dropped(1));
  CHECK(answer.dropped(2));
  CHECK(job.coordinator.ended());
  CHECK(!job.coordinator.verdict());
  CHECK(job.say(1, WorkersSucceeded{0}).effects.empty());
}
