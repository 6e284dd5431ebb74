#include "src/job/coordinator.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::job;
using namespace elastic::protocol;

namespace {

constexpr int kSigterm = 15;

WorkerFailure failure(int rank, std::int64_t wall_ms, bool stopped_by_us = false) {
  return {.rank = rank, .local_rank = rank, .pid = 100 + rank, .exit = {.code = 1},
          .wall_ms = wall_ms, .stopped_by_us = stopped_by_us};
}

template <class Message>
const Message& only(const std::vector<Send>& sends) {
  REQUIRE(sends.size() == 1);
  REQUIRE(std::holds_alternative<Message>(sends[0].message));
  return std::get<Message>(sends[0].message);
}

// A job of one node with four workers, brought to running.
Coordinator running_job(int max_restarts) {
  Coordinator job({.nodes = 1, .max_restarts = max_restarts});
  only<PrepareRound>(job.on_message(7, NodeJoins{4, "default"}));
  only<RunWorkers>(job.on_message(7, StoreIsOpen{0, {"127.0.0.1", 4000}}));
  return job;
}

}  // namespace

TEST_CASE("a round is prepared when all nodes have joined, and run when its store is open") {
  Coordinator job({.nodes = 2, .max_restarts = 0});
  CHECK(job.on_message(1, NodeJoins{2, "default"}).empty());
  const auto prepared = job.on_message(2, NodeJoins{3, "default"});
  REQUIRE(prepared.size() == 2);
  const auto& second = std::get<PrepareRound>(prepared[1].message);
  CHECK(second.round == 0);
  CHECK(second.restart_count == 0);
  CHECK(second.place == NodePlace{1, 2, 2, 5, 2, 5});
  const auto run = job.on_message(1, StoreIsOpen{0, {"10.0.0.1", 4000}});
  REQUIRE(run.size() == 2);
  CHECK(std::get<RunWorkers>(run[1].message).store == StoreEndpoint{"10.0.0.1", 4000});
}

TEST_CASE("the job succeeds when every node's workers have") {
  Coordinator job({.nodes = 2, .max_restarts = 0});
  job.on_message(1, NodeJoins{1, "default"});
  job.on_message(2, NodeJoins{1, "default"});
  job.on_message(1, StoreIsOpen{0, {"a", 1}});
  CHECK(job.on_message(1, WorkersSucceeded{0}).empty());
  const auto end = job.on_message(2, WorkersSucceeded{0});
  REQUIRE(end.size() == 2);
  CHECK(std::get<EndJob>(end[0].message).verdict.outcome == Verdict::Outcome::kSucceeded);
  CHECK(job.ended());
}

TEST_CASE("a failure stops the round at once and is charged when all have stopped") {
  Coordinator job = running_job(1);
  CHECK(only<StopWorkers>(job.on_message(7, WorkerFailed{0, failure(2, 5)})).round == 0);
  CHECK(job.on_message(7, WorkerFailed{0, failure(3, 6)}).empty());
  const auto again = only<PrepareRound>(job.on_message(7, NodeStopped{0, {failure(2, 5)}}));
  CHECK(again.round == 1);
  CHECK(again.restart_count == 1);
  CHECK(again.reason == "rank 2 (local rank 2, pid 102) exited with code 1");
}

TEST_CASE("two workers that fail together cost one restart") {
  Coordinator job = running_job(2);
  job.on_message(7, WorkerFailed{0, failure(0, 5)});
  job.on_message(7, WorkerFailed{0, failure(1, 5)});
  const auto again =
      only<PrepareRound>(job.on_message(7, NodeStopped{0, {failure(0, 5), failure(1, 5)}}));
  CHECK(again.restart_count == 1);
}

TEST_CASE("with no restart left the job fails, the first failure first and consequences last") {
  Coordinator job = running_job(0);
  job.on_message(7, WorkerFailed{0, failure(2, 50)});
  const auto verdict = only<EndJob>(job.on_message(
      7, NodeStopped{0, {failure(0, 40, true), failure(2, 50), failure(1, 45, true)}})).verdict;
  CHECK(verdict.outcome == Verdict::Outcome::kFailed);
  REQUIRE(verdict.failures.size() == 3);
  CHECK(verdict.failures[0].rank == 2);
  CHECK(verdict.failures[1].rank == 0);
  CHECK(verdict.failures[2].rank == 1);
}

TEST_CASE("news of an older round changes nothing") {
  Coordinator job = running_job(3);
  job.on_message(7, WorkerFailed{0, failure(2, 5)});
  job.on_message(7, NodeStopped{0, {}});
  only<RunWorkers>(job.on_message(7, StoreIsOpen{1, {"127.0.0.1", 4001}}));
  CHECK(job.on_message(7, WorkerFailed{0, failure(1, 6)}).empty());
  CHECK(job.on_message(7, WorkersSucceeded{0}).empty());
  CHECK(job.on_message(7, NodeStopped{0, {}}).empty());
  CHECK(job.on_message(7, StoreIsOpen{0, {"127.0.0.1", 4000}}).empty());
  CHECK(!job.ended());
}

TEST_CASE("a signal ends the job when all have stopped, restarts left or not") {
  Coordinator job = running_job(3);
  only<StopWorkers>(job.on_message(7, NodeLeaves{kSigterm}));
  const auto verdict = only<EndJob>(job.on_message(7, NodeStopped{0, {}})).verdict;
  CHECK(verdict.outcome == Verdict::Outcome::kStopped);
  CHECK(verdict.signal == kSigterm);
  CHECK(verdict.reason == "stopped by SIGTERM");
}

TEST_CASE("a signal during the stop of a failed round outranks the restart") {
  Coordinator job = running_job(3);
  job.on_message(7, WorkerFailed{0, failure(2, 5)});
  CHECK(job.on_message(7, NodeLeaves{kSigterm}).empty());
  const auto verdict = only<EndJob>(job.on_message(7, NodeStopped{0, {}})).verdict;
  CHECK(verdict.outcome == Verdict::Outcome::kStopped);
}

TEST_CASE("a node that cannot run ends the job without a restart") {
  Coordinator job = running_job(3);
  only<StopWorkers>(job.on_message(7, NodeCannotRun{0, "cannot execute x"}));
  const auto verdict = only<EndJob>(job.on_message(7, NodeStopped{0, {}})).verdict;
  CHECK(verdict.outcome == Verdict::Outcome::kFailed);
  CHECK(verdict.reason == "cannot execute x");
  CHECK(verdict.restarts_used == 0);
}

TEST_CASE("a worker that fails after others have succeeded restarts them all") {
  Coordinator job({.nodes = 2, .max_restarts = 1});
  job.on_message(1, NodeJoins{1, "default"});
  job.on_message(2, NodeJoins{1, "default"});
  job.on_message(1, StoreIsOpen{0, {"a", 1}});
  job.on_message(1, WorkersSucceeded{0});
  job.on_message(2, WorkerFailed{0, failure(1, 5)});
  CHECK(job.on_message(1, NodeStopped{0, {}}).empty());
  CHECK(job.on_message(2, NodeStopped{0, {}}).size() == 2);
  job.on_message(1, StoreIsOpen{1, {"a", 2}});
  CHECK(job.on_message(2, WorkersSucceeded{1}).empty());
  CHECK(job.on_message(1, WorkersSucceeded{1}).size() == 2);
}

TEST_CASE("the budget is spent to its limit and no further") {
  RestartBudget budget(2);
  CHECK(budget.spend());
  CHECK(budget.spend());
  CHECK(!budget.spend());
  CHECK(budget.used() == 2);
}
