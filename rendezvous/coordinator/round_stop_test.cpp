#include "rendezvous/coordinator/round_stop.h"

#include <doctest/doctest.h>

#include <csignal>

#include "rendezvous/coordinator/limits.h"
#include "src/base/exit_status.h"

using namespace elastic;
using coordinator::conclude;
using coordinator::Conclusion;
using coordinator::JobBudgets;
using coordinator::LossBudget;
using coordinator::RestartBudget;
using coordinator::RoundStop;
using membership::Node;
using protocol::Crash;
using protocol::JobRules;
using protocol::WorkerFailure;

namespace {

JobBudgets budgets_of(int restarts) { return {.restarts = RestartBudget(restarts)}; }

Node node_of(int node_rank) {
  Node node;
  node.agent = static_cast<protocol::AgentId>(node_rank);
  node.address = "host" + std::to_string(node_rank);
  node.slot = node_rank;
  node.place.node_rank = node_rank;
  return node;
}

WorkerFailure failure(int rank, bool stopped_by_us = false, int code = 1) {
  return {.rank = rank, .pid = 1, .exit = {.code = code}, .stopped_by_us = stopped_by_us};
}

RoundStop worker_failed_on(int node_rank, int code = 1) {
  RoundStop stop;
  stop.add_failures(node_of(node_rank), {failure(node_rank, false, code)}, true);
  return stop;
}

}  // namespace

TEST_CASE("a round that was stopped for the error file of a worker that did not fail costs nothing, once") {
  JobBudgets budgets = budgets_of(1);
  RoundStop stop;
  stop.add_failures(node_of(0), {failure(0, true)}, true);
  stop.false_alarm = 1;
  const Conclusion first = conclude(stop, {.has_run = true}, budgets);
  CHECK(!first.job_result);
  REQUIRE(first.again);
  CHECK(first.again->cause == RoundCause::kFalseAlarm);
  CHECK(!first.again->charged);
  CHECK(first.again->because.starts_with("rank 1 wrote an error file, but did not fail"));
  CHECK(first.counted.empty());
  CHECK(budgets.restarts.used() == 0);
  CHECK(budgets.error_files_wait);
  // Workers elsewhere fail because their peers were stopped, but an exit code that forbids a restart holds.
  stop.add_failures(node_of(1), {failure(2)}, true);
  CHECK(!conclude(stop, {.has_run = true}, budgets).again->charged);
  stop.add_failures(node_of(1), {failure(3, false, kDoNotRequeue)}, true);
  CHECK(conclude(stop, {.has_run = true}, budgets).job_result);
}

TEST_CASE("a false alarm is all that a job gets, also where a lost node or another reason explains the next round") {
  RoundStop lost;
  lost.lose(node_of(0), "its connection was reset");
  RoundStop left;
  left.left = {"node 0 (host0) received SIGTERM and leaves"};
  RoundStop grows;
  grows.other = "1 more node has joined";
  for (RoundStop& stop : std::vector{lost, left, grows}) {
    JobBudgets budgets = budgets_of(1);
    CHECK(conclude(stop, {.has_run = true}, budgets).again);
    CHECK(!budgets.error_files_wait);
    stop.false_alarm = 1;
    CHECK(conclude(stop, {.has_run = true}, budgets).again->cause != RoundCause::kFalseAlarm);
    CHECK(budgets.error_files_wait);
  }
}

TEST_CASE("the rank for whose error file a round was stopped is the cause, and what failed before it ended is not") {
  JobBudgets budgets = budgets_of(1);
  RoundStop stop;
  stop.stopped_for = 1;
  WorkerFailure peer = failure(4);
  peer.wall_ms = 5;
  stop.add_failures(node_of(1), {peer}, true);
  WorkerFailure suspect = failure(1);
  suspect.wall_ms = 900;
  stop.add_failures(node_of(0), {suspect}, true);
  stop.crashes = {{1, Crash{Crash::Kind::kSyntax, 8}}, {0, Crash{Crash::Kind::kImport, 7}}};
  const Conclusion ended = conclude(stop, {.has_run = true}, budgets);
  CHECK(ended.failures.at(0).rank == 1);
  CHECK(ended.again->because == ended.failures[0].text());
  CHECK(ended.counted.at(0).rank == 1);
  CHECK(conclude(stop, {.has_run = true}, budgets).job_result->failures.at(0).rank == 1);
  CHECK(budgets.crash_loop.last()->crash.kind == Crash::Kind::kImport);
}

TEST_CASE("a worker's failure costs one restart, and with none left the job ends with the failures") {
  JobBudgets budgets = budgets_of(1);
  const Conclusion first = conclude(worker_failed_on(1), {.has_run = true}, budgets);
  CHECK(!first.job_result);
  REQUIRE(first.again);
  CHECK(first.again->cause == RoundCause::kWorkerFailure);
  CHECK(first.again->charged);
  CHECK(first.again->because == first.failures.at(0).text());
  REQUIRE(first.counted.size() == 1);
  CHECK(first.counted[0].node == "host1");
  CHECK(first.counted[0].rank == 1);
  const Conclusion second = conclude(worker_failed_on(1), {.has_run = true}, budgets);
  REQUIRE(second.job_result);
  CHECK(second.job_result->outcome == Outcome::kFailed);
  CHECK(second.job_result->reason.empty());
  CHECK(second.job_result->failures == second.failures);
  CHECK(second.again->cause == RoundCause::kWorkerFailure);
  CHECK(!second.again->charged);
  CHECK(budgets.restarts.used() == 1);
}

TEST_CASE("a lost node, a node that left and an ordered stop each explain the failures of others, which cost nothing") {
  RoundStop lost = worker_failed_on(1);
  lost.lose(node_of(0), "its connection was reset");
  RoundStop left = worker_failed_on(1);
  left.left = {"node 0 (host0) received SIGTERM and leaves"};
  RoundStop grows = worker_failed_on(1);
  grows.other = "1 more node has joined";
  RoundStop unhealthy = worker_failed_on(1);
  unhealthy.other = "node 0 (host0) is unfit";
  unhealthy.by_check = true;
  struct Case {
    RoundStop stop;
    RoundCause cause;
    std::string because;
    std::size_t counted;
  };
  const std::vector<Case> cases = {
      {lost, RoundCause::kNodeLost, "node 0 (host0) was lost: its connection was reset", 1},
      {left, RoundCause::kMembershipChange, left.left[0], 0},
      {grows, RoundCause::kMembershipChange, grows.other, 0},
      {unhealthy, RoundCause::kCheck, unhealthy.other, 0},
  };
  for (const Case& each : cases) {
    CAPTURE(each.because);
    JobBudgets budgets = budgets_of(1);
    const Conclusion ended = conclude(each.stop, {.has_run = true}, budgets);
    CHECK(!ended.job_result);
    REQUIRE(ended.again);
    CHECK(ended.again->cause == each.cause);
    CHECK(ended.again->because == each.because);
    CHECK(!ended.again->charged);
    CHECK(ended.counted.size() == each.counted);
    CHECK(ended.failures.size() == 1);
    CHECK(budgets.restarts.used() == 0);
  }
}

TEST_CASE("a round that nothing explains was cut short with its coordinator, and costs nothing") {
  JobBudgets budgets = budgets_of(0);
  const Conclusion ended = conclude({}, {}, budgets);
  CHECK(!ended.job_result);
  CHECK(ended.again->cause == RoundCause::kCoordinatorLost);
  CHECK(ended.counted.empty());
}

TEST_CASE("a job whose workers had all succeeded before the stop has succeeded, unless a node is missed") {
  JobBudgets budgets = budgets_of(0);
  RoundStop grows;
  grows.other = "1 more node has joined";
  const Conclusion succeeded = conclude(grows, {.all_succeeded = true}, budgets);
  REQUIRE(succeeded.job_result);
  CHECK(succeeded.job_result->outcome == Outcome::kSucceeded);
  CHECK(!succeeded.again);
  grows.lose(node_of(0), "reset");
  CHECK(!conclude(grows, {.all_succeeded = true}, budgets).job_result);
}

TEST_CASE("the job ends when it has lost more nodes than it may") {
  JobBudgets budgets{.restarts = RestartBudget(9), .losses = LossBudget({.per_job = 1})};
  for (const bool ends : {false, true}) {
    RoundStop stop;
    stop.lose(node_of(0), "reset");
    budgets.losses.count_loss();
    const Conclusion ended = conclude(stop, {.has_run = true}, budgets);
    CHECK(ended.job_result.has_value() == ends);
    CHECK(ended.again->cause == RoundCause::kNodeLost);
    if (!ends) continue;
    CHECK(ended.job_result->reason ==
          "node 0 (host0) was lost: reset; the job has lost 2 nodes, more than job_losses allows");
  }
}

TEST_CASE("an exit code that forbids a restart ends the job, also when many others failed before") {
  JobBudgets budgets = budgets_of(5);
  RoundStop stop;
  std::vector<WorkerFailure> failures;
  for (int rank = 0; rank < static_cast<int>(limits::kFailuresKept) + 10; ++rank) {
    failures.push_back(failure(rank));
    failures.back().wall_ms = rank;
  }
  failures.back().exit.code = kDoNotRequeue;
  stop.add_failures(node_of(0), failures, true);
  const Conclusion ended = conclude(stop, {.has_run = true}, budgets);
  REQUIRE(ended.job_result);
  CHECK(ended.job_result->reason == "a worker has ended with 93: the job is not to be started again");
  CHECK(ended.job_result->failures.size() == limits::kFailuresKept);
  CHECK(ended.job_result->failures.back().is_final());
  CHECK(budgets.restarts.used() == 0);
}

TEST_CASE("two attempts that fail with the same crash end the job, unless the user wants it restarted") {
  for (const auto rule : {JobRules::CrashLoop::kStop, JobRules::CrashLoop::kRestart}) {
    JobBudgets budgets = budgets_of(5);
    RoundStop stop = worker_failed_on(1);
    stop.crashes = {{0, Crash{Crash::Kind::kSyntax, 8}}, {1, Crash{Crash::Kind::kImport, 7}}};
    CHECK(!conclude(stop, {.has_run = true, .crash_loop = rule}, budgets).job_result);
    const Conclusion second = conclude(stop, {.has_run = true, .crash_loop = rule}, budgets);
    REQUIRE(second.job_result.has_value() == (rule == JobRules::CrashLoop::kStop));
    if (!second.job_result) continue;
    CHECK(second.job_result->is_deterministic);
    CHECK(second.job_result->reason == coordinator::text_of_crash_loop(Crash::Kind::kImport, 0, 1));
  }
}

TEST_CASE("attempts are not compared over a round whose workers ran and stopped for another reason") {
  for (const bool has_run : {false, true}) {
    JobBudgets budgets = budgets_of(5);
    RoundStop crash = worker_failed_on(1);
    crash.crashes = {{1, Crash{Crash::Kind::kImport, 7}}};
    conclude(crash, {.has_run = true}, budgets);
    RoundStop grows;
    grows.other = "1 more node has joined";
    conclude(grows, {.has_run = has_run}, budgets);
    CHECK(conclude(crash, {.has_run = true}, budgets).job_result.has_value() == !has_run);
  }
}

TEST_CASE("a job that a user stops ends with the signal, and its failures do not count") {
  JobBudgets budgets = budgets_of(5);
  RoundStop stop = worker_failed_on(1);
  stop.host_leaves("node 0 (host0)", {.signal = SIGTERM});
  const Conclusion ended = conclude(stop, {.has_run = true}, budgets);
  REQUIRE(ended.job_result);
  CHECK(ended.job_result->outcome == Outcome::kStopped);
  CHECK(ended.job_result->signal == SIGTERM);
  CHECK(ended.job_result->reason == "stopped by SIGTERM");
  CHECK(ended.job_result->failures.size() == 1);
  CHECK(ended.counted.empty());
  CHECK(!ended.again);
  CHECK(budgets.restarts.used() == 0);
}

TEST_CASE("a killed outer process of the coordinator's host fails the job") {
  JobBudgets budgets = budgets_of(5);
  RoundStop stop;
  stop.host_leaves("node 0 (host0)", {.signal = SIGKILL});
  const Conclusion ended = conclude(stop, {.has_run = true}, budgets);
  REQUIRE(ended.job_result);
  CHECK(ended.job_result->outcome == Outcome::kFailed);
  CHECK(ended.job_result->signal == 0);
  CHECK(ended.job_result->reason.starts_with("node 0 (host0): its outer "));
}

TEST_CASE("the first node that cannot run its workers gives the job result its reason") {
  JobBudgets budgets = budgets_of(5);
  RoundStop stop;
  stop.fails("node 1: no such file");
  stop.fails("node 0: another reason");
  const Conclusion ended = conclude(stop, {.is_check_only = false}, budgets);
  CHECK(ended.job_result->reason == "node 1: no such file");
  REQUIRE(ended.counted.size() == 1);
  CHECK(ended.counted[0].cause == RoundCause::kWorkerFailure);
  CHECK(ended.counted[0].text == "node 1: no such file");
  CHECK(conclude(stop, {.is_check_only = true}, budgets).counted.at(0).cause == RoundCause::kCheck);
}

TEST_CASE("of two lost nodes of one host only the first is charged to it; hosts without a name are all charged") {
  RoundStop stop;
  CHECK(stop.lose(node_of(0), "reset"));
  CHECK(stop.lose(node_of(1), "reset"));
  CHECK(!stop.lose(node_of(0), "reset"));
  Node unnamed;
  CHECK(stop.lose(unnamed, "reset"));
  CHECK(stop.lose(unnamed, "reset"));
  CHECK(stop.lost.size() == 5);
}

TEST_CASE("failures bear the rank of their node, and its host only among many nodes") {
  RoundStop stop;
  stop.add_failures(node_of(3), {failure(0, true)}, false);
  CHECK(!stop.worker_failed);
  CHECK(stop.failures.back().node_rank == 3);
  CHECK(stop.failures.back().host.empty());
  stop.add_failures(node_of(4), {failure(0)}, true);
  CHECK(stop.worker_failed);
  CHECK(stop.failures.back().host == "host4");
}

TEST_CASE("of very many failures the likeliest causes are kept") {
  RoundStop stop;
  for (std::size_t i = 0; i < 2 * limits::kFailuresKept; ++i) stop.add_failures(node_of(1), {failure(1, true)}, true);
  CHECK(stop.failures.size() == 2 * limits::kFailuresKept);
  stop.add_failures(node_of(2), {failure(2)}, true);
  CHECK(stop.failures.size() == limits::kFailuresKept);
  CHECK(stop.failures.front().node_rank == 2);
}
