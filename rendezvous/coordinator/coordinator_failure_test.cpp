// Rounds that fail: which failure is named, what is charged, and when the next round may begin.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_test_support.h"
#include "rendezvous/protocol/lease.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::protocol;

namespace {

void add(Answer& all, const Answer& more) {
  all.effects.insert(all.effects.end(), more.effects.begin(), more.effects.end());
}

// A node that is never declared lost for silence, since it hosts the coordinator.
NodeJoins host(const Job& job, AgentId agent) {
  NodeJoins joins = job.joiner(agent);
  joins.hosts_coordinator = true;
  return joins;
}

// A job of two nodes, of which one is lost again and again, and its guardian reports each time that no process is left.
struct Flapping : Job {
  explicit Flapping(JobRules with_rules) : Job(job_terms(1, 2), with_rules) { say(1, host(*this, 1)); }

  // A node of this address joins, if it is let in, and its round runs.
  Answer come(NodeId session, const std::string& address) {
    NodeJoins joins = joiner(session);
    joins.address = address;
    Answer answer = say(session, joins);
    if (!answer.all<Rejected>().empty()) return answer;
    if (coordinator.state() == Coordinator::State::kStopping) stop(1);
    open_store();
    return answer;
  }
  Answer go(NodeId session) {
    on(SessionEnded{session, "reset"});
    on(NodeEmptied{session, coordinator.incarnation(), *coordinator.round()});
    Answer answer = stop(1);
    if (!coordinator.ending().job_result()) open_store();
    return answer;
  }
};

}  // namespace

TEST_CASE("in whatever order the news come, the dead node is named and its victims are not charged") {
  // The survivors' workers fail within milliseconds. The loss may be known before, between and after these failures.
  enum News { kFails1, kStops1, kFails2, kStops2, kLoss };
  for (const bool silent : {false, true}) {
    std::vector<int> order = {kFails1, kStops1, kFails2, kStops2, kLoss};
    int orders = 0;
    do {
      const auto place = [&](int news) { return std::ranges::find(order, news); };
      if (place(kStops1) < place(kFails1) || place(kStops2) < place(kFails2)) continue;
      ++orders;
      CAPTURE(orders);
      CAPTURE(silent);
      Job job(job_terms(2, 3, 0));
      job.run({1, 2, 3});
      const RoundNumber round = *job.coordinator.round();
      Answer all;
      for (const int news : order) {
        switch (news) {
          case kFails1: add(all, job.say(1, WorkerFailed{round, failure(0, 5)})); break;
          case kStops1: add(all, job.say(1, NodeStopped{round, {failure(0, 5)}})); break;
          case kFails2: add(all, job.say(2, WorkerFailed{round, failure(1, 6)})); break;
          case kStops2: add(all, job.say(2, NodeStopped{round, {failure(1, 6)}})); break;
          case kLoss:
            add(all, silent ? job.pass_with({1, 2}, 5100) : job.on(SessionEnded{3, "its connection was reset"}));
        }
      }
      add(all, job.pass_with({1, 2}, 4000));
      REQUIRE(all.all<PrepareRound>().size() == 2);
      const PrepareRound again = all.to<PrepareRound>(1);
      CHECK(again.round == round + 1);
      CHECK(again.restart_count == 0);
      CHECK(!again.charged);
      CHECK(again.losses == 1);
      CHECK(again.reason.starts_with("node 2 (node3) was lost: "));
      CHECK(all.all<EndJob>().empty());
    } while (std::ranges::next_permutation(order).found);
    CHECK(orders == 30);
  }
}

TEST_CASE("failures on several nodes are one restart in every order, and the first of them is its reason") {
  enum News { kFails1, kStops1, kFails2, kStops2 };
  std::vector<int> order = {kFails1, kStops1, kFails2, kStops2};
  do {
    const auto place = [&](int news) { return std::ranges::find(order, news); };
    if (place(kStops1) < place(kFails1) || place(kStops2) < place(kFails2)) continue;
    Job job(job_terms(2, 2, 5));
    job.run({1, 2});
    Answer all;
    for (const int news : order) {
      switch (news) {
        case kFails1: add(all, job.say(1, WorkerFailed{0, failure(0, 50)})); break;
        case kStops1: add(all, job.say(1, NodeStopped{0, {failure(0, 50)}})); break;
        case kFails2: add(all, job.say(2, WorkerFailed{0, failure(1, 20)})); break;
        case kStops2: add(all, job.say(2, NodeStopped{0, {failure(1, 20)}}));
      }
    }
    REQUIRE(all.all<PrepareRound>().size() == 2);
    CHECK(all.to<PrepareRound>(1).restart_count == 1);
    CHECK(all.to<PrepareRound>(1).reason.find("rank 1 (node 1") != std::string::npos);
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("a worker that says so by its exit code ends the job, whatever restarts are left") {
  Job job(job_terms(2, 2, 3));
  job.run({1, 2});
  WorkerFailure final = failure(1, 5);
  final.exit.code = kDoNotRequeue;
  job.say(2, WorkerFailed{0, final});
  job.say(1, NodeStopped{0, {failure(0, 4, true)}});
  const Answer stopped = job.say(2, NodeStopped{0, {final}});
  for (const NodeId node : {1U, 2U}) {
    const JobResult job_result = stopped.to<EndJob>(node).job_result;
    CHECK(job_result.outcome == JobResult::Outcome::kFailed);
    CHECK(job_result.restarts_used == 0);
    CHECK(job_result.reason == "a worker has ended with 93: the job is not to be started again");
  }
}

TEST_CASE("the last restart is spent once, and then the job result with the first failure reaches every node") {
  Job job(job_terms(2, 2, 1));
  job.run({1, 2});
  for (const RoundNumber round : {0U, 1U}) {
    job.say(2, WorkerFailed{round, failure(1, 5)});
    job.say(1, NodeStopped{round, {failure(0, 4, true)}});
    const Answer stopped = job.say(2, NodeStopped{round, {failure(1, 5)}});
    if (round == 0) {
      CHECK(stopped.to<PrepareRound>(1).restart_count == 1);
      job.open_store();
      continue;
    }
    for (const NodeId node : {1U, 2U}) {
      const JobResult job_result = stopped.to<EndJob>(node).job_result;
      CHECK(job_result.outcome == JobResult::Outcome::kFailed);
      CHECK(job_result.restarts_used == 1);
      REQUIRE(job_result.failures.size() == 2);
      CHECK(job_result.failures[0].rank == 1);
      CHECK(job_result.failures[0].node_rank == 1);
      CHECK(job_result.failures[0].host == "node2");
    }
  }
}

TEST_CASE("a node that is lost too often is quarantined, twice as long the second time, and let in afterwards") {
  Flapping job({.node_losses = 2, .job_losses = -1});
  std::int64_t quarantined_ms = 300'000;
  NodeId session = 2;
  for (int time = 0; time < 2; ++time) {
    for (int loss = 0; loss < 2; ++loss) {
      CHECK(job.come(session, "flaky").all<Rejected>().empty());
      CHECK(job.go(session++).to<PrepareRound>(1).restart_count == 0);
    }
    const auto rejected = job.come(session++, "flaky").only<Rejected>();
    CHECK(rejected.why == Rejected::Why::kQuarantined);
    CHECK(rejected.retry_ms == quarantined_ms);
    job.pass(quarantined_ms - 1);
    job.come(session++, "flaky").only<Rejected>();
    job.pass(1);
    quarantined_ms *= 2;
  }
  CHECK(job.come(session, "flaky").all<Rejected>().empty());
  CHECK(job.coordinator.roster().size() == 2);
}

TEST_CASE("a job that loses more nodes than it may ends, though each was lost once") {
  Flapping job({.job_losses = 2});
  for (const NodeId session : {2U, 3U}) {
    job.come(session, "node" + std::to_string(session));
    CHECK(job.go(session).to<PrepareRound>(1).losses == static_cast<int>(session) - 1);
  }
  job.come(4, "node4");
  const JobResult job_result = job.go(4).only<EndJob>().job_result;
  CHECK(job_result.outcome == JobResult::Outcome::kFailed);
  CHECK(job_result.reason ==
        "node 1 (node4) was lost: reset; the job has lost 3 nodes, more than "
        "job_losses allows");
}

TEST_CASE("the next round begins when the lost node's lease is over by every clock, counted from its last message") {
  for (const std::int64_t timeout_ms : {500, 5000, 60'000}) {
    const LeaseTimes lease{timeout_ms};
    CHECK(lease.over_ms() == timeout_ms * 3 / 5 + timeout_ms * 3 / 500 + 100);
    Job job(job_terms(1, 2), {}, {.lease = lease});
    job.say(1, host(job, 1));
    job.join(2);
    job.open_store();
    job.now_ms = 1'000'000;
    job.on(KeepAliveReceived{2});
    job.now_ms += timeout_ms / 10;
    job.on(SessionEnded{2, "reset"});
    job.stop(1);
    CHECK(job.pass(lease.over_ms() - timeout_ms / 10 - 1).silent());
    CHECK(job.pass(1).only<PrepareRound>().place.node_count == 1);
  }
}

TEST_CASE(
    "a node that is silent for the loss timeout has no lease left, and is waited for no longer than a kill takes") {
  Job job(job_terms(1, 2));
  job.say(1, host(job, 1));
  job.join(2);
  job.open_store();
  const Answer lost = job.pass(5000);
  CHECK(lost.dropped(2));
  CHECK(lost.only<StopWorkers>().round == 0);
  job.stop(1);
  CHECK(job.pass(LeaseTimes::kKillMs - 1).silent());
  CHECK(job.pass(1).only<PrepareRound>().reason == "node 1 (node2) was lost: it sent nothing for 5000 ms");
}

TEST_CASE("after a sleep in which a lease has ended, its guardian has time to kill") {
  for (const bool is_lost_before : {true, false}) {
    Job job(job_terms(1, 2));
    job.say(1, host(job, 1));
    job.join(2);
    job.open_store();
    if (is_lost_before) job.on(SessionEnded{2, "reset"});
    job.now_ms += 100'000;  // the machine with all of them was suspended
    if (!is_lost_before) job.on(SessionEnded{2, "reset"});
    job.stop(1);
    CHECK(job.pass(LeaseTimes::kKillMs - 1).silent());
    CHECK(job.pass(1).only<PrepareRound>().losses == 1);
  }
}

TEST_CASE("a coordinator that was asleep hears first what nodes have sent meanwhile") {
  Job job(job_terms(2, 2));
  job.run({1, 2});
  job.now_ms += 60'000;
  CHECK(job.on(TimePassed{}).silent());
  job.on(KeepAliveReceived{1});
  job.on(KeepAliveReceived{2});
  CHECK(job.pass_with({1, 2}, 4000).silent());
}

TEST_CASE("a lost node that comes back within its lease is told to stop, and is in the next round") {
  Job job(job_terms(2, 2));
  job.join(1);
  const PrepareRound its = job.join(2).to<PrepareRound>(2);
  job.open_store();
  job.on(SessionEnded{2, "reset"});
  job.stop(1);
  NodeJoins back = job.joiner(2);
  back.facts = facts_of(its, job.coordinator.incarnation(), AgentFacts::Activity::kRunning);
  CHECK(job.say(12, back).only<StopWorkers>().round == 0);
  CHECK(job.pass_with({1, 12}, 10'000).silent());  // its lease does not expire, since it is connected
  const Answer again = job.say(12, NodeStopped{0, {}});
  CHECK(again.to<PrepareRound>(12).place.node_rank == 1);
  CHECK(again.to<PrepareRound>(12).losses == 1);
}

TEST_CASE("news of a session that its agent has given up for another change nothing, however late they come") {
  Job job(job_terms(2, 2));
  job.join(1);
  NodeJoins second = job.joiner(2);
  second.session = 1;
  job.say(2, second);
  job.open_store();
  NodeJoins first = job.joiner(2);  // it was sent before the node was in any round
  const Answer late = job.say(7, first);
  CHECK(late.dropped(7));
  CHECK(!late.dropped(2));
  CHECK(late.all<StopWorkers>().empty());
  CHECK(job.on(SessionEnded{7, "reset"}).silent());
  CHECK(job.coordinator.roster().size() == 2);
}

TEST_CASE("an agent that opens another session has lost the first, which is closed") {
  Job job(job_terms(2, 2));
  job.join(1);
  const PrepareRound its = job.join(2).to<PrepareRound>(2);
  job.open_store();
  NodeJoins back = job.joiner(2);
  back.facts = facts_of(its, job.coordinator.incarnation(), AgentFacts::Activity::kRunning);
  const Answer answer = job.say(12, back);
  CHECK(answer.dropped(2));
  CHECK(answer.all<StopWorkers>().size() == 2);
  CHECK(job.say(2, NodeStopped{0, {}}).silent());  // the message is of the closed session
  CHECK(job.coordinator.roster().size() == 2);
}

TEST_CASE("a death notice that overtakes the end of its agent's session is the loss, and needs no lease") {
  Job job(job_terms(1, 2));
  job.run({1, 2});
  const Answer word = job.on(NodeEmptied{2, job.coordinator.incarnation(), 0});
  CHECK(word.dropped(2));
  CHECK(word.only<StopWorkers>().round == 0);
  CHECK(job.on(SessionEnded{2, "reset"}).silent());
  CHECK(job.stop(1).only<PrepareRound>().losses == 1);
}

TEST_CASE("a death notice changes nothing when it is late, or of a node that has no processes or is not known") {
  Job job(job_terms(1, 2));
  job.run({1, 2});
  job.on(SessionEnded{2, "reset"});
  job.stop(1);
  job.pass_with({1}, 3200);
  job.open_store();
  CHECK(job.on(NodeEmptied{2, job.coordinator.incarnation(), 0}).silent());
  CHECK(job.on(NodeEmptied{2, job.coordinator.incarnation(), 1}).silent());
  CHECK(job.on(NodeEmptied{1, job.coordinator.incarnation(), 0}).silent());  // it is about the previous round
  CHECK(job.coordinator.state() == Coordinator::State::kRunning);
  Job waiting(job_terms(2, 2));
  waiting.join(1);
  CHECK(waiting.on(NodeEmptied{1, waiting.coordinator.incarnation(), 0}).silent());
  CHECK(waiting.coordinator.roster().size() == 1);
}

TEST_CASE("a node that was told to leave is waited for no longer than its stop, and nothing is charged or lost") {
  Job job(job_terms(1, 2, 0));
  job.run({1, 2});
  CHECK(job.say(2, NodeLeaves{SIGTERM}).only<StopWorkers>().round == 0);  // that node stops by itself
  job.fail(1, failure(0, 5));                                             // a consequence for its peer
  job.stop(1, {failure(0, 5)});
  const Answer gone = job.stop(2);
  CHECK(gone.to<EndJob>(2).job_result.outcome == JobResult::Outcome::kStopped);
  CHECK(gone.to<EndJob>(2).job_result.signal == SIGTERM);
  CHECK(gone.only<Dismiss>() == Dismiss{});
  const PrepareRound again = gone.only<PrepareRound>();
  CHECK(again.restart_count == 0);
  CHECK(again.losses == 0);
  CHECK(again.reason == "node 1 (node2) received SIGTERM and leaves");
}

TEST_CASE("a leaving node whose connection breaks is waited for until its lease is over, and is no loss") {
  Job job(job_terms(1, 2));
  job.run({1, 2});
  job.say(2, NodeLeaves{SIGTERM});
  job.stop(1);
  CHECK(job.on(SessionEnded{2, "reset"}).silent());
  const PrepareRound again = job.pass_with({1}, 3200).only<PrepareRound>();
  CHECK(again.losses == 0);
  CHECK(again.reason == "node 1 (node2) received SIGTERM and leaves");
}

TEST_CASE("a node that is on standby, or is done, leaves without anybody's being stopped") {
  Job job(job_terms(2, 3), {.last_call_ms = 0, .scale_up = JobRules::ScaleUp::kNever});
  job.run({1, 2});
  job.join(3);
  const Answer standby = job.say(3, NodeLeaves{SIGTERM});
  CHECK(standby.to<EndJob>(3).job_result.outcome == JobResult::Outcome::kStopped);
  CHECK(standby.all<StopWorkers>().empty());
  job.say(2, WorkersSucceeded{0});
  CHECK(job.say(2, NodeLeaves{SIGTERM}).silent());
  CHECK(job.stop(2).to<EndJob>(2).job_result.outcome == JobResult::Outcome::kStopped);
  CHECK(job.say(1, WorkersSucceeded{0}).only<EndJob>().job_result.outcome == JobResult::Outcome::kSucceeded);
}

TEST_CASE("a host of the coordinator whose outer process is killed fails the job, and every node hears its name") {
  Job job(job_terms(1, 2, 3));
  job.say(1, host(job, 1));
  job.join(2);
  job.open_store();
  CHECK(job.say(1, NodeLeaves{9}).all<StopWorkers>().size() == 2);
  CHECK(job.stop(1).all<EndJob>().empty());
  CHECK(job.on(SessionEnded{1, "it has ended"}).silent());
  const Answer end = job.stop(2);
  const JobResult job_result = end.to<EndJob>(2).job_result;
  CHECK(job_result.outcome == JobResult::Outcome::kFailed);
  CHECK(job_result.signal == 0);
  CHECK(job_result.reason == "node 0 (node1): its outer elastic-run process was killed, and the coordinator with it");
  job.say(2, JobResultHeard{}).only<Dismiss>();  // no other node is waited for

  Job waiting(job_terms(2, 2));
  waiting.say(1, host(waiting, 1));
  CHECK(waiting.say(1, NodeLeaves{9}).only<EndJob>().job_result.outcome == JobResult::Outcome::kFailed);
}

TEST_CASE(
    "a node of a Slurm step that is lost below the minimum ends the job when its lease is over, and standbys count") {
  for (const bool stands_by : {false, true}) {
    Job job(job_terms(2, 2), {.scale_up = JobRules::ScaleUp::kNever, .replacement_wait_ms = 0});
    job.run({1, 2});
    if (stands_by) job.join(3);
    job.on(SessionEnded{2, "reset"});
    CHECK(job.stop(1).silent());
    const Answer later = job.pass_with({1, 3}, 10'000);
    if (stands_by) {
      CHECK(later.all<PrepareRound>().size() == 2);
      continue;
    }
    CHECK(later.only<EndJob>().job_result.reason ==
          "node 1 (node2) was lost: reset; 1 node, 2 required; not waiting for a replacement (--nnodes=2)");
  }
}

TEST_CASE("where nobody else can come, a node that had stopped and loses its connection has time to come back") {
  Job job(job_terms(2, 2, 3), {.replacement_wait_ms = 0});
  job.run({1, 2});
  job.fail(2, failure(1, 5));
  job.stop(1);
  job.on(SessionEnded{1, "reset"});
  CHECK(job.stop(2, {failure(1, 5)}).all<EndJob>().empty());
  CHECK(job.pass_with({2}, 1000).all<EndJob>().empty());
  NodeJoins back = job.joiner(1);
  back.facts = {.incarnation = job.coordinator.incarnation(), .term = 1, .round = 0};
  CHECK(job.say(11, back).all<PrepareRound>().size() == 2);
}

TEST_CASE("when every node is told to leave the job has been stopped") {
  Job job(job_terms(2, 2));
  job.run({1, 2});
  job.say(1, NodeLeaves{SIGTERM});
  job.say(2, NodeLeaves{SIGTERM});
  CHECK(job.stop(1).to<EndJob>(1).job_result.outcome == JobResult::Outcome::kStopped);
  CHECK(job.stop(2).to<EndJob>(2).job_result.outcome == JobResult::Outcome::kStopped);
  CHECK(job.coordinator.ended());
  CHECK(job.coordinator.ending().job_result()->outcome == JobResult::Outcome::kStopped);
}

TEST_CASE("a node that is done and lost is not missed, unless it serves the round's store") {
  for (const NodeId done : {1U, 2U}) {
    Job job(job_terms(2, 2));
    job.run({1, 2});
    job.say(done, WorkersSucceeded{0});
    CHECK(job.on(SessionEnded{done, "reset"}).all<StopWorkers>().size() == (done == 1 ? 1 : 0));
  }
}

TEST_CASE(
    "a host is quarantined, not its rank: another one may take that, and it gets in neither with nor without it") {
  Job job(job_terms(1, 2), {.node_losses = 1, .job_losses = -1});
  job.say(1, host(job, 1));
  NodeJoins flaky = job.joiner(2);
  flaky.node_rank = 1;
  job.say(2, flaky);
  job.open_store();
  job.on(SessionEnded{2, "reset"});
  job.stop(1);
  job.pass(4000);
  REQUIRE(job.coordinator.round() == 1U);
  flaky.agent = 20;
  CHECK(job.say(20, flaky).only<Rejected>().why == Rejected::Why::kQuarantined);
  flaky.node_rank.reset();
  CHECK(job.say(21, flaky).only<Rejected>().why == Rejected::Why::kQuarantined);
  NodeJoins other = job.joiner(22);
  other.node_rank = 1;
  CHECK(job.say(22, other).all<Rejected>().empty());
  CHECK(job.coordinator.roster().size() == 2);
}

TEST_CASE("a host that takes several agents with it is charged with one loss, and the job has lost them all") {
  Job job(job_terms(1, 3), {.node_losses = 2, .job_losses = -1});
  job.say(1, host(job, 1));
  const auto on_one_host = [&](NodeId session) {
    NodeJoins joins = job.joiner(session);
    joins.address = "both";
    return job.say(session, joins);
  };
  on_one_host(2);
  on_one_host(3);
  job.open_store();
  for (const NodeId node : {2U, 3U}) job.on(SessionEnded{node, "reset"});
  job.stop(1);
  CHECK(job.pass(4000).only<PrepareRound>().losses == 2);
  job.open_store();
  CHECK(on_one_host(12).all<Rejected>().empty());
  job.pass(2000);
  job.stop(1);
  REQUIRE(job.coordinator.round() == 2U);
  job.on(SessionEnded{12, "reset"});
  CHECK(on_one_host(13).only<Rejected>().why == Rejected::Why::kQuarantined);
}

TEST_CASE("an error file stops all nodes, and only what becomes of its worker is charged") {
  for (const bool has_failed : {true, false}) {
    CAPTURE(has_failed);
    Job job(job_terms(2, 2, 3));
    job.run({1, 2});
    WorkerFailed news{.round = 0, .failure = failure(0, 0), .is_uncertain = true};
    const Answer stop = job.say(1, news);
    CHECK(stop.all<StopWorkers>().size() == 2);
    CHECK(job.say(1, news).all<StopWorkers>().empty());
    CHECK(job.coordinator.status(0, 0).restarts_charged == 0);
    // The other node's worker has lost its peer.
    job.say(2, WorkerFailed{0, failure(1, 6)});
    job.say(2, NodeStopped{0, {failure(1, 6)}});
    NodeStopped stopped;
    if (has_failed) stopped.failures = {failure(0, 5)};
    if (!has_failed) stopped.false_alarm = 0;
    const PrepareRound again = job.say(1, stopped).to<PrepareRound>(1);
    CHECK(again.restart_count == (has_failed ? 1 : 0));
    CHECK(again.charged == has_failed);
    CHECK(again.error_files_wait == !has_failed);
    CHECK(again.reason.starts_with(has_failed ? "rank 0 " : "rank 0 wrote an error file, but did not fail"));
  }
}

TEST_CASE("the worker for whose error file the round was stopped is its cause, unless another had failed before") {
  for (const bool is_first : {true, false}) {
    CAPTURE(is_first);
    Job job(job_terms(2, 2, 3));
    job.run({1, 2});
    if (!is_first) job.say(2, WorkerFailed{0, failure(1, 6)});
    job.say(1, WorkerFailed{.round = 0, .failure = failure(0, 0), .is_uncertain = true});
    // Other nodes' files come too late to be the reason.
    job.say(2, WorkerFailed{.round = 0, .failure = failure(1, 0), .is_uncertain = true});
    job.say(2, NodeStopped{0, {failure(1, 6)}});
    const PrepareRound again = job.say(1, NodeStopped{0, {failure(0, 900)}}).to<PrepareRound>(1);
    CHECK(again.restart_count == 1);
    CHECK(again.reason.starts_with(is_first ? "rank 0 " : "rank 1 "));
  }
}

TEST_CASE("a coordinator that takes the job over hears from its nodes that there was a false alarm") {
  Job job(job_terms(1, 1, 3));
  NodeJoins joins = job.joiner(1);
  joins.facts.error_files_wait = true;
  CHECK(job.say(1, joins).to<PrepareRound>(1).error_files_wait);
}
