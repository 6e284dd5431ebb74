// A worker's error file stops the round before the worker has ended.
#include <doctest/doctest.h>

#include <csignal>
#include <optional>
#include <vector>

#include "rendezvous/agent/lifecycle.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

template <class Kind>
std::vector<Kind> all(const Effects& effects) {
  std::vector<Kind> out;
  for (const Effect& effect : effects) {
    if (const auto* match = std::get_if<Kind>(&effect)) out.push_back(*match);
  }
  return out;
}
template <class Message>
std::optional<Message> told(const Effects& effects) {
  for (const ToCoordinator& sent : all<ToCoordinator>(effects)) {
    if (const auto* match = std::get_if<Message>(&sent.message)) return *match;
  }
  return {};
}

// A node of three workers, the ranks 3 to 5, whose error files stop rounds.
struct Node {
  explicit Node(int max_restarts = 3, int node_count = 2) : max(max_restarts), nodes(node_count) { run(0); }
  void run(RoundNumber round, bool error_files_wait = false) {
    from(PrepareRound{.round = round,
                      .restart_count = 0,
                      .max_restarts = max,
                      .place = {nodes - 1, nodes, 3, 6, 3, 6},
                      .membership = 99,
                      .error_files_wait = error_files_wait});
    if (nodes == 1) on(StoreOpened{{"", 4000}});
    from(RunWorkers{round, {"10.0.0.1", 4000}});
    for (int rank = 0; rank < 3; ++rank) on(WorkerStarted{.local_rank = rank, .pid = 100 + rank});
  }
  Effects on(const Event& event) { return life.on_event(event, now_ms); }
  Effects from(const CoordinatorMessage& message) { return on(FromCoordinator{message}); }
  Effects writes(int local_rank, RoundNumber round = 0) { return on(ErrorFileWritten{round, local_rank, 3}); }
  Effects exits(int local_rank, ExitStatus exit) { return on(WorkerExited{local_rank, exit, 7}); }
  // The other workers end of their signal.
  void others_end(int but) {
    for (int rank = 0; rank < 3; ++rank) {
      if (rank != but) exits(rank, {.signal = SIGTERM});
    }
  }

  int max;
  int nodes;
  Lifecycle life = Lifecycle({.local_world_size = 3, .error_files_stop = true});
  std::int64_t now_ms = 0;
};

}  // namespace

TEST_CASE("an error file stops the other workers at once, and the coordinator hears of it before that") {
  Node node;
  const Effects effects = node.writes(1);
  const auto failed = told<WorkerFailed>(effects);
  REQUIRE(failed);
  CHECK(failed->is_uncertain);
  CHECK(failed->failure.rank == 4);
  CHECK(failed->failure.error_file_ms == 3);
  CHECK(std::holds_alternative<ToCoordinator>(effects.front()));
  const auto signals = all<SignalWorkers>(effects);
  REQUIRE(signals.size() == 1);
  CHECK(signals[0].signal == SIGTERM);
  CHECK(signals[0].spared == 1);
  CHECK(all<AwaitAllGone>(effects).size() == 1);
  CHECK(node.life.waiting()->what.starts_with("rank 4 has written an error file: waiting for 3 workers to end"));
  CHECK(node.from(StopWorkers{0}).empty());  // what the coordinator answers
  CHECK(node.writes(2).empty());
}

TEST_CASE("the worker that wrote the file has failed when it ends, and the others were stopped because of it") {
  Node node;
  node.writes(1);
  node.others_end(1);
  CHECK(all<SignalWorkers>(node.exits(1, {.code = 1})).empty());
  REQUIRE(node.life.failures().size() == 3);
  CHECK(node.life.failures()[0].rank == 4);
  CHECK(!node.life.failures()[0].stopped_by_us);
  CHECK(node.life.failures()[0].failed_ms() == 3);
  CHECK(node.life.failures()[1].failed_ms() == 7);
  CHECK(node.life.failures()[1].stopped_by_us);
  CHECK(node.life.failures()[2].stopped_by_us);
  const auto stopped = told<NodeStopped>(node.on(AllGone{}));
  REQUIRE(stopped);
  CHECK(!stopped->false_alarm);
  CHECK(stopped->failures == node.life.failures());
}

TEST_CASE("a worker that was killed is the cause, though one that lost its peer by that has written its file before") {
  Node node;
  node.writes(1);
  const auto signals = all<SignalWorkers>(node.exits(2, {.signal = SIGKILL}));
  REQUIRE(signals.size() == 1);
  CHECK(signals[0].signal == SIGTERM);
  CHECK(signals[0].only == 1);
  CHECK(all<SignalWorkers>(node.exits(0, {.signal = SIGKILL})).empty());  // a second one is a consequence
  node.exits(1, {.signal = SIGTERM});
  REQUIRE(node.life.failures().size() == 3);
  CHECK(node.life.failures()[0].rank == 5);
  CHECK(!node.life.failures()[0].stopped_by_us);
  CHECK(node.life.failures()[1].stopped_by_us);
  CHECK(node.life.failures()[2].stopped_by_us);
  CHECK(!told<NodeStopped>(node.on(AllGone{}))->false_alarm);
}

TEST_CASE("who ends by our own signal, or by an exit code, does not explain an error file") {
  Node node;
  node.writes(1);
  CHECK(all<SignalWorkers>(node.exits(0, {.signal = SIGTERM})).empty());
  CHECK(all<SignalWorkers>(node.exits(2, {.code = 1})).empty());
  node.exits(1, {.code = 1});
  CHECK(node.life.failures()[0].rank == 4);
}

TEST_CASE("if it ends well, or does not end by itself, the coordinator hears that it has not failed") {
  Node well;
  well.writes(1);
  well.others_end(1);
  well.exits(1, {});
  CHECK(told<NodeStopped>(well.on(AllGone{}))->false_alarm == 4);

  Node hangs;
  hangs.writes(1);
  hangs.others_end(1);
  const auto killed = all<SignalWorkers>(hangs.on(TimerFired{}));
  REQUIRE(killed.size() == 1);
  CHECK(killed[0].signal == SIGKILL);
  CHECK(!killed[0].spared);
  hangs.exits(1, {.signal = SIGKILL});
  CHECK(hangs.life.failures().back().stopped_by_us);
  CHECK(told<NodeStopped>(hangs.on(AllGone{}))->false_alarm == 4);
}

TEST_CASE("after a false alarm error files stop nobody, and the node says so to each coordinator") {
  Node node;
  node.writes(1);
  node.others_end(1);
  node.exits(1, {});
  CHECK(!node.life.joins().facts.false_alarm);
  node.on(AllGone{});
  CHECK(node.life.joins().facts.false_alarm == 4);
  CHECK(node.life.joins().facts.error_files_wait);
  node.run(1);  // this coordinator has not heard of it
  CHECK(node.writes(1, 1).empty());
  CHECK(!node.life.joins().facts.false_alarm);
  CHECK(node.life.joins().facts.error_files_wait);
  // The worker ends as without --warm-workers.
  const Effects failed = node.exits(1, {.code = 1});
  CHECK(!told<WorkerFailed>(failed)->is_uncertain);
  CHECK(!all<SignalWorkers>(failed)[0].spared);
}

TEST_CASE("an error file stops nobody in another round, of a worker that has ended, without a restart, or alone") {
  Node node;
  CHECK(node.writes(1, 7).empty());
  node.exits(0, {});
  CHECK(node.writes(0).empty());
  CHECK(Node(0).writes(1).empty());
  Node last_of_its_job(3, 1);
  last_of_its_job.exits(0, {});
  last_of_its_job.exits(2, {});
  CHECK(last_of_its_job.writes(1).empty());
  Node last_of_its_node;
  last_of_its_node.exits(0, {});
  last_of_its_node.exits(2, {});
  CHECK(!last_of_its_node.writes(1).empty());
}

TEST_CASE("when the node leaves or the job ends, the worker that was left alone is told to end, too") {
  Node leaves;
  leaves.writes(1);
  const auto signals = all<SignalWorkers>(leaves.on(SignalReceived{SIGINT}));
  REQUIRE(signals.size() == 1);
  CHECK(signals[0].signal == SIGINT);
  CHECK(signals[0].only == 1);
  leaves.exits(1, {.signal = SIGINT});
  CHECK(leaves.life.failures().back().stopped_by_us);
  CHECK(all<SignalWorkers>(leaves.on(SignalReceived{SIGHUP})).empty());

  Node ends;
  ends.writes(1);
  const auto order = all<SignalWorkers>(ends.from(EndJob{{.outcome = JobResult::Outcome::kStopped}}));
  REQUIRE(order.size() == 1);
  CHECK(order[0].only == 1);
}
