#include "rendezvous/agent/node_round.h"

#include <doctest/doctest.h>

#include <csignal>

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

// A round of three workers on node 1, with the ranks 4 to 6.
const PrepareRound kOrder{.round = 2,
                          .restart_count = 1,
                          .max_restarts = 3,
                          .place = {.node_rank = 1, .node_count = 2, .base_rank = 4, .world_size = 7},
                          .losses = 5,
                          .membership = 99,
                          .fence = {4000, 2},
                          .transferred = {7, "a state"}};

struct Running {
  Running() {
    Effects out;
    round.begin(kOrder, 3, out);
    round.start();
    for (int rank = 0; rank < 3; ++rank) round.started({rank, 100 + rank});
  }
  std::string warned(PrepareRound order) {
    Effects out;
    round.begin(order, 3, out);
    return out.empty() ? "" : std::get<Warn>(out.at(0)).text;
  }

  NodeRound round;
};

}  // namespace

TEST_CASE("a round tells which workers are left, by their ranks, and when all have ended") {
  Running node;
  CHECK(node.round.who_is_left() == "3 workers to end (ranks 4-6)");
  node.round.exited({1, {}, 7}, false);
  CHECK(node.round.who_is_left() == "2 workers to end (ranks 4, 6)");
  node.round.exited({2, {}, 7}, false);
  CHECK(node.round.who_is_left() == "1 worker to end (rank 4)");
  CHECK(!node.round.all_have_ended());
  node.round.exited({0, {}, 7}, false);
  CHECK(node.round.who_is_left() == "processes that workers left running");
  CHECK(node.round.all_have_ended());
  CHECK(node.round.failures().empty());
}

TEST_CASE("a failure has the worker's ranks, process and end, and the first one is the cause if it was not stopped") {
  Running node;
  CHECK(node.round.cause() == nullptr);
  node.round.exited({.local_rank = 1, .exit = {.code = 3}, .wall_ms = 7}, false);
  node.round.exited({.local_rank = 0, .exit = {.signal = SIGTERM}, .wall_ms = 8}, true);
  const WorkerFailure first{.rank = 5,
                            .local_rank = 1,
                            .node_rank = 1,
                            .pid = 101,
                            .exit = {.code = 3},
                            .wall_ms = 7,
                            .stopped_by_us = false};
  REQUIRE(node.round.failures().size() == 2);
  CHECK(node.round.failures()[0] == first);
  CHECK(node.round.failures()[1].stopped_by_us);
  REQUIRE(node.round.cause() != nullptr);
  CHECK(*node.round.cause() == first);
  Running stopped;
  stopped.round.exited({.local_rank = 0, .exit = {.signal = SIGTERM}}, true);
  CHECK(stopped.round.cause() == nullptr);
  CHECK(!stopped.round.was_ended_from_outside());
}

TEST_CASE("a death by a signal that goes to whole process trees may come from outside; by another signal or code not") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGKILL, SIGSEGV, 0}) {
    Running node;
    node.round.exited({.local_rank = 0, .exit = {.code = signal == 0 ? 1 : 0, .signal = signal}}, false);
    const bool goes_to_trees = signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
    CHECK(node.round.was_ended_from_outside() == goes_to_trees);
  }
}

TEST_CASE("a worker is why the job failed if the job result's first failure is its own, in this round") {
  Running node;
  node.round.exited({.local_rank = 1, .exit = {.code = 3}, .wall_ms = 7}, false);
  const JobResult own{.outcome = JobResult::Outcome::kFailed, .round = 2, .failures = {node.round.failures()[0]}};
  CHECK(node.round.is_cause_of(own));
  const auto is_not = [&](auto change) {
    JobResult job_result = own;
    change(job_result);
    CHECK(!node.round.is_cause_of(job_result));
  };
  is_not([](JobResult& job_result) { job_result.outcome = JobResult::Outcome::kStopped; });
  is_not([](JobResult& job_result) { job_result.round = 3; });
  is_not([](JobResult& job_result) { job_result.failures.clear(); });
  is_not([](JobResult& job_result) { job_result.failures[0].node_rank = 0; });
  is_not([](JobResult& job_result) { job_result.failures[0].rank = 4; });
  is_not([](JobResult& job_result) { job_result.failures[0].pid = 9; });
  is_not([](JobResult& job_result) { job_result.failures[0].wall_ms = 8; });
  is_not([](JobResult& job_result) { job_result.failures[0].stopped_by_us = true; });
}

TEST_CASE("a round is warned of with its reason: whether workers ran before, and what the restart costs") {
  NodeRound fresh;
  Effects out;
  fresh.begin(kOrder, 3, out);
  CHECK(out.empty());
  PrepareRound again = kOrder;
  again.reason = "node 1 was lost";
  fresh.begin(again, 3, out);
  CHECK(std::get<Warn>(out.at(0)).text == "node 1 was lost; starting all workers (restart 1 of 3)");
  Running node;
  CHECK(node.warned(again) == "node 1 was lost; restarting all workers (restart 1 of 3)");
  again.charged = false;
  CHECK(node.warned(again) == "node 1 was lost; restarting all workers (not counted as a restart)");
}

TEST_CASE("what is known of a round is reported until the next one begins, and nothing before the first") {
  const NodeRound none;
  AgentFacts facts;
  status::Node shown;
  none.report(facts);
  none.report(shown);
  CHECK(facts == AgentFacts{});
  CHECK(!shown.round);

  Running node;
  const Crash crash{Crash::Kind::kImport, 7};
  node.round.exited({.local_rank = 1, .exit = {.code = 3}}, false);
  node.round.found(crash);
  node.round.report(facts);
  CHECK(facts == AgentFacts{.round = 2,
                            .place = kOrder.place,
                            .restart_count = 1,
                            .losses = 5,
                            .membership = 99,
                            .failures = node.round.failures(),
                            .birth_ms = 4000,
                            .transferred = {7, "a state"}});
  node.round.report(shown);
  CHECK(shown.round == 2);
  CHECK(shown.node_rank == 1);
  CHECK(shown.world_size == 7);
  REQUIRE(shown.workers.size() == 3);
  CHECK(shown.workers[1].rank == 5);
  CHECK(shown.workers[1].pid == 101);
  CHECK(!shown.workers[1].running);
  CHECK(shown.workers[2].running);
  CHECK(node.round.stopped() == NodeStopped{2, node.round.failures(), crash});

  CHECK(node.warned(kOrder).empty());
  CHECK(node.round.stopped() == NodeStopped{2, {}, {}});
  CHECK(!node.round.all_have_ended());
}
