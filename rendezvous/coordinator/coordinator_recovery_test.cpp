// A coordinator that has just started learns from its agents which round runs; one that was replaced ends.
#include <doctest/doctest.h>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/coordinator/transferred_state.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

constexpr Incarnation kJob = 77;
constexpr Activity kActivities[] = {Activity::kIdle, Activity::kPreparing, Activity::kRunning, Activity::kSucceeded,
                                    Activity::kStopping};

// A coordinator of term 2 that is started at 500 ms, and the nodes of a round that the previous one formed.
struct After : Job {
  explicit After(JobTerms with_terms, int nodes_of_round, LeaseTimes lease = {})
      : Job(with_terms, {}, {.term = 2, .incarnation = 1, .lease = lease, .now_ms = 500}), size(nodes_of_round) {}

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

// The same where the nodes vote, and have elected the coordinator.
struct Elected : After {
  Elected(JobTerms with_terms, int nodes_of_round) : After(with_terms, nodes_of_round) {
    rules.failover = JobRules::Failover::kMajority;
  }
  Answer back(int rank, Activity activity) {
    const NodeId session = static_cast<NodeId>(rank) + 1;
    const NodeJoins joins = report(rank, activity);
    Answer all = After::back(session, joins);
    Answer more = vote(session, joins.facts);
    all.effects.insert(all.effects.end(), more.effects.begin(), more.effects.end());
    return all;
  }
};

// The workers of such a node run under a lease, or are about to.
bool holds_lease(Activity activity) { return activity == Activity::kRunning || activity == Activity::kPreparing; }
bool goes_on(Activity activity) { return activity == Activity::kRunning || activity == Activity::kSucceeded; }

}  // namespace

TEST_CASE("a coordinator takes the job's name from the first that reports it, and a term above all it has heard of") {
  After job(job_terms(2, 2, 3), 2);
  NodeJoins joins = job.report(0, Activity::kRunning);
  joins.facts.term = 8;
  CHECK(job.back(1, joins).silent());
  CHECK(job.coordinator.incarnation() == kJob);
  CHECK(job.coordinator.term() > 8);
  CHECK(job.coordinator.state() == State::kRecovery);
  CHECK(job.coordinator.round() == 5U);
}

TEST_CASE("restarts count as in the latest round that is reported, not as in one that never ran") {
  NodeJoins stale = After(job_terms(2, 2, 3), 2).report(0, Activity::kIdle);
  stale.facts.round = 4;
  stale.facts.membership = 4710;
  stale.facts.restart_count = 3;
  for (const bool comes_first : {true, false}) {
    After taken(job_terms(2, 2, 3), 2);
    if (comes_first) taken.back(3, stale);
    taken.back(0, Activity::kIdle);
    if (!comes_first) taken.back(3, stale);
    taken.back(1, Activity::kIdle);
    const auto rounds = taken.pass_with({1, 2}, 5'000).all<PrepareRound>();
    REQUIRE(!rounds.empty());
    CHECK(rounds.front().second.restart_count == 2);
  }
}

TEST_CASE("a round of a later coordinator is later than one of an earlier coordinator, which may have counted on") {
  const auto given_in = [](std::uint64_t term, NodeJoins joins) {
    joins.facts.transferred = {term << 32 | 1, encode(TransferredState{})};
    return joins;
  };
  for (const bool comes_first : {true, false}) {
    After job(job_terms(1, 2, 3), 2);
    NodeJoins counted_on = given_in(2, job.report(0, Activity::kIdle));
    counted_on.agent = 3;
    counted_on.facts.round = 6;
    counted_on.facts.membership = 4712;
    counted_on.facts.restart_count = 0;
    if (comes_first) job.back(3, counted_on);
    // It is enough that one of them has heard of the coordinator that took their round over.
    job.back(1, given_in(comes_first ? 3 : 1, job.report(0, Activity::kIdle)));
    job.back(2, given_in(3, job.report(1, Activity::kIdle)));
    if (!comes_first) job.back(3, counted_on);
    CHECK(job.coordinator.round() == 5U);
    const auto rounds = job.pass_with({1, 2, 3}, 5'000).all<PrepareRound>();
    REQUIRE(rounds.size() == 2);
    for (const NodeId member : {1u, 2u}) CHECK(rounds.at(member - 1).first == member);
    CHECK(rounds.front().second.restart_count == 2);
  }
}

TEST_CASE("a false alarm that the coordinator before had not concluded costs no restart, and is remembered") {
  for (const bool is_false_alarm : {true, false}) {
    CAPTURE(is_false_alarm);
    After taken(job_terms(2, 2, 3), 2);
    NodeJoins first = taken.report(0, Activity::kIdle);
    if (is_false_alarm) first.facts.false_alarm = 0;
    taken.back(1, first);
    NodeJoins second = taken.report(1, Activity::kIdle);
    second.facts.failures = {failure(1, 6)};
    taken.back(2, second);
    const auto rounds = taken.pass_with({1, 2}, 5'000).all<PrepareRound>();
    REQUIRE(!rounds.empty());
    const PrepareRound& again = rounds.front().second;
    CHECK(again.charged == !is_false_alarm);
    CHECK(again.restart_count == (is_false_alarm ? 2 : 3));
    CHECK(again.error_files_wait == is_false_alarm);
    CHECK(again.reason.starts_with(is_false_alarm ? "rank 0 wrote an error file" : "rank 1 "));
  }
}

TEST_CASE("a coordinator that takes a round over finds out for whose error file the one before had stopped it") {
  After taken(job_terms(2, 2, 3), 2);
  NodeJoins first = taken.report(0, Activity::kIdle);
  first.facts.failures = {failure(0, 900)};
  first.facts.failures[0].error_file_ms = 3;
  taken.back(1, first);
  NodeJoins second = taken.report(1, Activity::kIdle);
  second.facts.failures = {failure(1, 6)};
  taken.back(2, second);
  const auto rounds = taken.pass_with({1, 2}, 5'000).all<PrepareRound>();
  REQUIRE(!rounds.empty());
  CHECK(rounds.front().second.reason.starts_with("rank 0 "));
}

TEST_CASE("whatever the nodes of a round were doing, it goes on untouched if that is all of it, or is made anew") {
  for (const Activity first : kActivities) {
    for (const Activity second : kActivities) {
      CAPTURE(static_cast<int>(first));
      CAPTURE(static_cast<int>(second));
      After job(job_terms(2, 2, 3), 2);
      Answer all = job.back(0, first);
      CHECK(job.coordinator.state() == State::kRecovery);
      Answer more = job.back(1, second);
      all.effects.insert(all.effects.end(), more.effects.begin(), more.effects.end());
      if (!holds_lease(first) && !holds_lease(second)) {  // a later round of other nodes may run
        CHECK(all.all<PrepareRound>().empty());
        CHECK(all.all<EndJob>().empty());
        more = job.pass_with({1, 2}, LeaseTimes{}.over_ms());
        all.effects.insert(all.effects.end(), more.effects.begin(), more.effects.end());
      }
      if (first == Activity::kSucceeded && second == Activity::kSucceeded) {
        CHECK(all.to<EndJob>(1).job_result.outcome == JobResult::Outcome::kSucceeded);
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
      CHECK(again.place.node_rank == 1);  // it keeps its rank
      CHECK(again.restart_count == 2);
      CHECK(again.losses == 1);
      CHECK(!again.charged);
      CHECK(!again.reason.empty());
    }
  }
}

TEST_CASE("nodes that run nothing may have missed a round: a later one is waited for, and comes first") {
  After job(job_terms(1, 2, 3), 1);
  CHECK(job.back(0, Activity::kIdle).all<PrepareRound>().empty());
  const LeaseTimes lease;
  CHECK(job.pass_with({1}, lease.over_ms() - 100).all<PrepareRound>().empty());
  job.round = 6;
  NodeJoins later = job.report(1, Activity::kRunning);
  later.facts.membership = 4712;
  later.facts.place = {0, 1, 0, 1, 0, 1};
  CHECK(job.back(2, later).all<PrepareRound>().empty());
  CHECK(job.coordinator.round() == 6U);
  CHECK(job.coordinator.state() != State::kRecovery);
}

TEST_CASE("budgets go on from what agents report: a failure after the recovery is one more restart") {
  After job(job_terms(2, 2, 3), 2);
  job.back(0, Activity::kRunning);
  job.back(1, Activity::kRunning);
  job.fail(1, failure(0, 5));
  job.stop(1, {failure(0, 5)});
  CHECK(job.stop(2).to<PrepareRound>(1).restart_count == 3);
  job.open_store();
  job.fail(2, failure(1, 5));
  job.stop(1);
  CHECK(job.stop(2, {failure(1, 5)}).to<EndJob>(1).job_result.restarts_used == 3);
}

TEST_CASE("rounds after the recovery have the birth that nodes report and the term of the new coordinator") {
  After job(job_terms(2, 2, 3), 2);
  for (int rank = 0; rank < 2; ++rank) {
    NodeJoins joins = job.report(rank, Activity::kRunning);
    joins.facts.birth_ms = 4000;
    joins.facts.term = 9;
    job.back(static_cast<NodeId>(rank) + 1, joins);
  }
  job.fail(1, failure(0, 5));
  job.stop(1, {failure(0, 5)});
  const Answer next = job.stop(2);
  CHECK(job.coordinator.term() > 9);
  for (const NodeId node : {1U, 2U}) {
    CHECK(next.to<PrepareRound>(node).fence == Fence{4000, job.coordinator.term()});
  }
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

TEST_CASE(
    "a node that does not come back is lost when every lease of the coordinator before is over, and not earlier") {
  Elected job(job_terms(1, 2, 3), 2);
  job.back(0, Activity::kRunning);
  const std::int64_t over_ms = LeaseTimes{}.over_ms();
  job.on(KeepAliveReceived{1});
  CHECK(job.pass(over_ms - 1).silent());
  CHECK(job.pass(1).only<StopWorkers>().round == 5);
  const PrepareRound again = job.stop(1).only<PrepareRound>();
  CHECK(again.reason == "node 1 was lost: it did not reconnect after the coordinator was lost");
  CHECK(again.restart_count == 2);
  CHECK(again.losses == 2);
  CHECK(again.place.node_count == 1);
}

TEST_CASE("with a short loss timeout, too, every node has the time to find the coordinator") {
  for (const std::int64_t timeout_ms : {1000, 3000, 5000}) {
    const LeaseTimes lease{timeout_ms};
    CHECK(lease.all_back_ms() >= lease.over_ms());
    CHECK(lease.all_back_ms() > LeaseTimes::kLongestPauseMs);
  }
  After job(job_terms(1, 2, 3), 2, {1000});
  job.back(0, Activity::kRunning);
  CHECK(job.pass_with({1}, LeaseTimes::kLongestPauseMs).silent());
  CHECK(job.back(1, Activity::kRunning).silent());
  CHECK(job.coordinator.state() == State::kRunning);
}

TEST_CASE("a coordinator that was asleep reads what has come meanwhile before it takes anybody to be missing") {
  const LeaseTimes lease;
  After fresh(job_terms(2, 3, 3), 2);  // it is stopped before it can read anything
  fresh.rules.last_call_ms = 0;
  fresh.now_ms += lease.all_back_ms() + 500;
  CHECK(fresh.join(8).silent());
  CHECK(fresh.join(9).all<PrepareRound>().empty());
  CHECK(fresh.back(0, Activity::kIdle).all<PrepareRound>().empty());
  CHECK(fresh.coordinator.round() == 5U);
  After knowing(job_terms(1, 2, 3), 2);
  knowing.back(0, Activity::kRunning);
  knowing.now_ms += lease.all_back_ms() + 500;
  CHECK(knowing.on(TimePassed{}).silent());
  CHECK(knowing.back(1, Activity::kRunning).silent());
  CHECK(knowing.coordinator.state() == State::kRunning);
}

TEST_CASE("a node that reports twice is one, and another is waited for all the same") {
  for (const Activity activity : {Activity::kIdle, Activity::kRunning}) {
    After job(job_terms(1, 2, 3), 2);
    job.back(0, activity);
    job.on(SessionEnded{1, "reset"});
    CHECK(job.back(11, job.report(0, activity)).all<PrepareRound>().empty());
    CHECK(job.coordinator.state() == State::kRecovery);
    job.on(KeepAliveReceived{11});
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
    job.size = 1;  // the later round has one node
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

TEST_CASE("newcomers are on standby while a round is taken over, and do not disturb it") {
  After job(job_terms(2, 2, 3), 2);
  CHECK(job.join(9).silent());
  CHECK(job.back(0, Activity::kRunning).silent());
  CHECK(job.join(8).silent());
  CHECK(job.back(1, Activity::kRunning).silent());
  CHECK(job.coordinator.state() == State::kRunning);
  CHECK(job.coordinator.roster().size() == 4);
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

TEST_CASE("a job result that was heard ends the job even where others report that they run") {
  After job(job_terms(2, 2, 3), 2);
  job.back(0, Activity::kRunning);
  NodeJoins knows = job.report(1, Activity::kIdle);
  knows.facts.job_result = JobResult{.outcome = JobResult::Outcome::kFailed, .reason = "why", .round = 5};
  const Answer ended = job.back(2, knows);
  CHECK(ended.to<EndJob>(1).job_result.reason == "why");
  CHECK(ended.to<EndJob>(2).job_result.reason == "why");
  job.say(1, JobResultHeard{});
  CHECK(job.say(2, JobResultHeard{}).all<Dismiss>().empty());  // others may look for the coordinator while leases hold
  CHECK(job.pass_with({1, 2}, 4000).all<Dismiss>().size() == 2);
}

TEST_CASE("a job result that comes too late, when the job goes on, is not taken in") {
  Elected job(job_terms(1, 2, 3), 2);
  job.back(0, Activity::kRunning);
  job.pass_with({1}, 3200);
  job.stop(1);
  NodeJoins late = job.report(1, Activity::kIdle);
  late.facts.job_result = JobResult{};
  CHECK(job.After::back(2, late).only<Rejected>().why == Rejected::Why::kRoundWentOn);
  CHECK(job.coordinator.roster().size() == 1);
}

TEST_CASE("a coordinator steps down when an agent knows of a later one, and not for older or other news") {
  Job job(job_terms(2, 2), {}, {.term = 3, .incarnation = kJob});
  job.now_ms = LeaseTimes{}.over_ms();
  job.on(TimePassed{});
  job.now_ms += 300;  // the process may have been suspended, and has read everything since
  job.run({1, 2});
  CHECK(job.on(Introduced{kJob, 3}).silent());
  CHECK(job.on(Introduced{kJob, 2}).silent());
  CHECK(job.on(Introduced{kJob + 1, 9}).silent());
  CHECK(job.on(Introduced{0, 9}).silent());
  CHECK(!job.coordinator.ended());
  CHECK(job.coordinator.term() > 9);  // otherwise those agents would take this coordinator for an outdated one
  const Answer answer = job.on(Introduced{kJob, job.coordinator.term() + 1});
  CHECK(answer.dropped(1));
  CHECK(answer.dropped(2));
  CHECK(job.coordinator.ended());
  CHECK(!job.coordinator.ending().job_result());
  CHECK(job.say(1, WorkersSucceeded{0}).effects.empty());
}

TEST_CASE("a job result does not end nodes that were never in that job: they try again, whoever came first") {
  for (const bool fresh_first : {true, false}) {
    CAPTURE(fresh_first);
    After job(job_terms(2, 2, 3), 2);
    NodeJoins knows = job.report(1, Activity::kIdle);
    knows.facts.job_result = JobResult{.outcome = JobResult::Outcome::kFailed, .reason = "why", .round = 5};
    if (fresh_first) CHECK(job.join(9).silent());
    const Answer ended = job.back(2, knows);
    CHECK(ended.only<EndJob>().job_result.reason == "why");
    const Rejected rejected = fresh_first ? ended.to<Rejected>(9) : job.join(9).only<Rejected>();
    CHECK(rejected.why == Rejected::Why::kJobEnding);
    CHECK(rejected.retry_ms == 500);
    CHECK(rejected.reason == "a job of this name is ending; it can be started again when that has ended");
    CHECK(job.coordinator.roster().size() == 1);
  }
}

TEST_CASE("a coordinator that meets some new nodes only begins no round while leases of one before may run") {
  const std::int64_t over_ms = LeaseTimes{}.over_ms();
  Job job(job_terms(1, 3, 3), {.last_call_ms = 0}, {.now_ms = 500});
  CHECK(job.join(8).silent());
  CHECK(job.join(9).silent());
  CHECK(job.pass_with({8, 9}, 3000).silent());
  CHECK(job.pass(over_ms - 3000 - 1).silent());
  CHECK(job.pass(1).all<PrepareRound>().size() == 2);

  Job later(job_terms(1, 3, 3), {.last_call_ms = 0}, {.now_ms = 500});
  later.now_ms = 500 + over_ms;
  later.join(8);
  later.join(9);
  CHECK(later.pass(250).all<PrepareRound>().size() == 2);  // there was no event for long: there may be more to read
}

TEST_CASE("a coordinator that meets a node of a job that is older than itself begins no round before it has reported") {
  for (const bool is_met : {true, false}) {
    After job(job_terms(1, 3), 1);
    job.rules.last_call_ms = 0;
    job.now_ms = 500;
    job.join(8);
    CHECK(job.pass_with({8}, LeaseTimes{}.all_back_ms() - 100).all<PrepareRound>().empty());
    if (is_met) job.on(Introduced{kJob, 1});
    CHECK(job.pass_with({8}, 200).all<PrepareRound>().empty() == is_met);
    if (is_met)
      CHECK(job.pass_with({8}, LeaseTimes{}.all_back_ms()).all<PrepareRound>().size() == 1);  // it did not report
  }
}

TEST_CASE("nodes that know no round of an earlier start of the job begin another one, not that one once more") {
  After job(job_terms(1, 3), 3);
  job.rules.last_call_ms = 0;
  job.now_ms = 500;
  const Incarnation own = job.coordinator.incarnation();
  // A node of the round introduces itself and is gone before its first message has come.
  job.on(Introduced{kJob, 1});
  CHECK(job.coordinator.incarnation() == kJob);
  job.join(8);
  CHECK(job.pass_with({8}, 2 * LeaseTimes{}.all_back_ms()).all<PrepareRound>().size() == 1);
  CHECK(job.coordinator.incarnation() == own);
  // The node is back too late, with a round of the other incarnation.
  job.on(Introduced{kJob, 1});
  CHECK(job.say(1, job.report(0, Activity::kRunning)).all<PrepareRound>().empty());
  CHECK(job.coordinator.incarnation() == own);
}

TEST_CASE("a job result is sent again with an older job's incarnation when that job is met while it is being told") {
  After job(job_terms(1, 3, 3), 2);
  NodeJoins host = job.joiner(8);
  host.hosts_coordinator = true;
  job.say(8, host);
  job.join(9);
  CHECK(job.say(8, NodeLeaves{15}).all<EndJob>().size() == 2);
  job.say(8, JobResultHeard{});
  // Only node 9 gets the job result again: node 8 has answered already.
  CHECK(job.on(Introduced{kJob, 1}).all<EndJob>().size() == 1);
  CHECK(job.say(9, JobResultHeard{}).all<Dismiss>().size() == 2);
}

TEST_CASE(
    "with all nodes that it may have a first round waits for nobody's lease, unless one has met another coordinator") {
  for (const Term met : {0U, 1U}) {
    Job job(job_terms(2, 2), {}, CoordinatorConfig{});
    if (met > 0) job.on(Introduced{0, met});
    job.join(1);
    CHECK(job.join(2).all<PrepareRound>().size() == (met > 0 ? 0 : 2));
    CHECK(job.pass_with({1, 2}, 4000).all<PrepareRound>().size() == (met > 0 ? 2 : 0));
  }
}

// The node that runs the round has introduced itself; its first message is still under way.
TEST_CASE("a node on standby that comes back before the node that trains gets no round of its own") {
  After job(job_terms(1, 1), 1);
  job.on(Introduced{kJob, 1});
  CHECK(job.join(7).silent());
  CHECK(job.back(0, Activity::kRunning).all<Rejected>().empty());
  CHECK(job.coordinator.state() == State::kRunning);
  CHECK(job.coordinator.round() == 5U);
}

TEST_CASE("a node that was missing when the job was taken over is counted under its host once that is known") {
  for (const int losses : {1, 2}) {
    CAPTURE(losses);
    Elected job(job_terms(1, 2, 3), 2);
    job.rules.node_losses = losses;
    job.back(0, Activity::kRunning);
    job.pass_with({1}, 3200);
    CHECK(job.stop(1).only<PrepareRound>().losses == 2);
    const Answer late = job.say(2, job.report(1, Activity::kIdle));
    if (losses == 1) {
      CHECK(late.only<Rejected>().why == Rejected::Why::kQuarantined);
      continue;
    }
    CHECK(late.all<Rejected>().empty());  // the loss is charged once, not each time that the node comes
    job.on(SessionEnded{2, "reset"});
    CHECK(job.say(12, job.report(1, Activity::kIdle)).all<Rejected>().empty());
  }
}

// --- Where nobody votes. ------------------------------------------------------------------------------

TEST_CASE(
    "where nobody votes a round goes on if all its nodes are back while their leases last, and else the job ends") {
  const std::int64_t back_ms = LeaseTimes{}.all_back_ms();
  for (const bool all_come : {true, false}) {
    CAPTURE(all_come);
    After job(job_terms(1, 3, 3), 3);
    NodeJoins host = job.joiner(9);
    host.hosts_coordinator = true;
    CHECK(job.say(9, host).silent());
    CHECK(job.back(1, Activity::kRunning).silent());
    CHECK(job.back(2, Activity::kRunning).silent());
    CHECK(!job.keeps(2));  // two of three are not enough
    CHECK(job.keeps(9));   // this node runs nothing
    CHECK(job.pass_with({2, 3, 9}, back_ms - 100).silent());
    if (all_come) {
      CHECK(job.back(0, Activity::kRunning).silent());
      CHECK(job.keeps(2));
      CHECK(job.coordinator.state() == State::kRunning);
      continue;
    }
    const Answer ended = job.pass_with({2, 3, 9}, 200);
    CHECK(ended.all<StopWorkers>().empty());
    for (const NodeId node : {2U, 3U, 9U}) {
      CHECK(ended.to<EndJob>(node).job_result.outcome == JobResult::Outcome::kFailed);
      CHECK(ended.to<EndJob>(node).job_result.reason.starts_with(
          "the coordinator was lost, and of the 3 nodes of round 5 only 2 came back to it (node ranks 1-2)"));
    }
  }
}

TEST_CASE("where nobody votes, nodes that were here one after the other are not all of them") {
  After job(job_terms(1, 3, 3), 3);
  job.back(0, Activity::kSucceeded);
  job.back(1, Activity::kSucceeded);
  job.on(SessionEnded{1, "the network is cut"});
  job.back(2, Activity::kSucceeded);
  CHECK(job.pass_with({2, 3}, 1'000).all<EndJob>().empty());
  CHECK(job.coordinator.state() == State::kRecovery);
  CHECK(job.pass_with({2, 3}, LeaseTimes{}.all_back_ms()).all<EndJob>().size() == 2);
}

TEST_CASE("who is told to end the job while not all of it is back ends it") {
  After job(job_terms(1, 3, 3), 3);
  NodeJoins host = job.joiner(9);
  host.hosts_coordinator = true;
  job.say(9, host);
  job.back(1, Activity::kIdle);
  CHECK(job.coordinator.state() == State::kRecovery);
  job.say(9, NodeLeaves{15});
  const Answer ended = job.pass_with({2, 9}, LeaseTimes{}.all_back_ms());
  CHECK(ended.to<EndJob>(2).job_result.outcome == JobResult::Outcome::kStopped);
}
