// The details of the job's first failure, which its node tells the others; and what nodes tell their users while they
// wait.
#include <doctest/doctest.h>

#include <csignal>
#include <optional>
#include <string>

#include "rendezvous/agent/lifecycle.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

template <class Kind>
std::optional<Kind> find(const Effects& effects) {
  for (const Effect& effect : effects) {
    if (const auto* match = std::get_if<Kind>(&effect)) return *match;
  }
  return {};
}
// The details in the effects' JobResultHeard; none: there is no such message.
std::optional<std::string> heard(const Effects& effects) {
  for (const Effect& effect : effects) {
    const auto* sent = std::get_if<ToCoordinator>(&effect);
    const auto* message = sent == nullptr ? nullptr : std::get_if<JobResultHeard>(&sent->message);
    if (message != nullptr) return message->details;
  }
  return {};
}

// Node 1 of two, whose worker of rank 2 has failed in round 4, and on which no process of the round is left.
struct Failed {
  explicit Failed(bool shares = true)
      : life({.hosts_coordinator = false, .terms = {.min_nodes = 2, .max_nodes = 2}, .shares_details = shares}) {
    from(PrepareRound{.round = 4, .place = {1, 2, 2, 4, 2, 4}, .membership = 99});
    from(RunWorkers{4, {"10.0.0.1", 4000}});
    on(WorkerStarted{0, 100});
    on(WorkerExited{0, {.code = 3}, 7});
    on(AllGone{});
  }
  Effects on(const Event& event) { return life.on_event(event, now_ms); }
  Effects from(const CoordinatorMessage& message) { return on(FromCoordinator{message}); }
  Effects end() { return from(EndJob{job_result}); }

  Lifecycle life;
  JobResult job_result{
      .outcome = JobResult::Outcome::kFailed,
      .round = 4,
      .failures = {{.rank = 2, .node_rank = 1, .pid = 100, .exit = {.code = 3}, .wall_ms = 7, .host = "node-1"}}};
  std::int64_t now_ms = 0;
};

}  // namespace

TEST_CASE("a node that has given up its details, and has nothing left, starts no timer at a signal") {
  Failed node;
  node.end();
  node.now_ms = 2'000;
  CHECK(heard(node.on(TimerFired{})) == "");
  node.now_ms = 3'000;
  for (const int signal : {SIGTERM, SIGTSTP, SIGCONT}) {
    CAPTURE(signal);
    CHECK_FALSE(find<StartTimer>(node.on(SignalReceived{signal})));
  }
}

TEST_CASE("the node whose worker failed first gathers what is known of it before it has heard the job result") {
  Failed node;
  const Effects ended = node.end();
  CHECK(find<GatherDetails>(ended));
  CHECK(find<StartTimer>(ended)->delay_ms == 2000);
  CHECK(!heard(ended));
  CHECK(!node.life.waiting());
  const Effects gathered = node.on(DetailsGathered{"Traceback"});
  CHECK(heard(gathered) == "Traceback");
  CHECK(find<StopTimer>(gathered));
  CHECK(node.on(DetailsGathered{"again"}).empty());
  CHECK(find<Finish>(node.from(Dismiss{"Traceback"}))->details == "Traceback");
}

TEST_CASE("what a node has gathered for one job result is not told or reported with a later one") {
  Failed node;
  node.end();
  node.on(DetailsGathered{"Traceback"});
  CHECK(heard(node.from(EndJob{{.outcome = JobResult::Outcome::kSucceeded, .round = 5}})) == "");
  CHECK(find<Finish>(node.from(Dismiss{}))->details.empty());
}

TEST_CASE("what a node gathers for one job result after it has heard a later one is not told or reported, either") {
  Failed node;
  node.end();
  CHECK(!heard(node.from(EndJob{{.outcome = JobResult::Outcome::kSucceeded, .round = 5}})));
  CHECK(heard(node.on(DetailsGathered{"Traceback"})) == "");
  CHECK(find<Finish>(node.from(Dismiss{}))->details.empty());
}

TEST_CASE("what is not gathered in 2 s is not waited for") {
  Failed node;
  node.end();
  node.now_ms = 2000;
  CHECK(heard(node.on(TimerFired{})) == "");
  CHECK(node.on(DetailsGathered{"late"}).empty());
  CHECK(find<Finish>(node.from(Dismiss{}))->details.empty());
}

TEST_CASE("every other node has heard the job result at once, and ends with what another node has told") {
  const auto is_at_once = [](const char* why, auto change) {
    CAPTURE(why);
    Failed node;
    change(node);
    const Effects ended = node.end();
    CHECK(heard(ended) == "");
    CHECK(!find<GatherDetails>(ended));
    CHECK(find<Finish>(node.from(Dismiss{"another's"}))->details == "another's");
  };
  is_at_once("of another node", [](Failed& node) { node.job_result.failures[0].node_rank = 0; });
  is_at_once("of another round", [](Failed& node) { node.job_result.round = 5; });
  is_at_once("not run by this agent", [](Failed& node) { node.job_result.failures[0].pid = 101; });
  is_at_once("stopped by us", [](Failed& node) { node.job_result.failures[0].stopped_by_us = true; });
  is_at_once("no failure at all", [](Failed& node) { node.job_result.failures.clear(); });
  is_at_once("the job did not fail", [](Failed& node) { node.job_result.outcome = JobResult::Outcome::kStopped; });
  Failed alone(false);
  CHECK(heard(alone.end()) == "");
}

TEST_CASE("what was stopped is not the first failure, wherever it stands") {
  Failed node;
  node.job_result.failures.insert(node.job_result.failures.begin(),
                                  {.rank = 0, .pid = 50, .exit = {.signal = 15}, .stopped_by_us = true});
  CHECK(find<GatherDetails>(node.end()));
}

TEST_CASE(
    "a job result that is told again while details are gathered is heard once, with them, and later with the same") {
  Failed node;
  node.end();
  node.on(Detached{});
  node.on(Attached{});
  const Effects again = node.end();
  CHECK(!heard(again));
  CHECK(!find<GatherDetails>(again));
  CHECK(heard(node.on(DetailsGathered{"Traceback"})) == "Traceback");
  CHECK(heard(node.end()) == "Traceback");  // the first message may not have arrived
  CHECK(find<Finish>(node.from(Dismiss{}))->details == "Traceback");
}

TEST_CASE("details are gathered when nothing of the round is left") {
  Failed node;
  node.from(PrepareRound{.round = 5, .place = {1, 2, 2, 4, 2, 4}, .membership = 99});
  node.from(RunWorkers{5, {"10.0.0.1", 4000}});
  node.on(WorkerStarted{0, 101});
  node.on(WorkerExited{0, {.code = 3}, 8});
  node.job_result.round = 5;
  node.job_result.failures[0].pid = 101;
  node.job_result.failures[0].wall_ms = 8;
  const Effects ended = node.end();
  CHECK(!heard(ended));
  CHECK(!find<GatherDetails>(ended));
  const Effects gone = node.on(AllGone{});
  CHECK(find<GatherDetails>(gone));
  CHECK(heard(node.on(DetailsGathered{"Traceback"})) == "Traceback");
}

TEST_CASE("who is told to go meanwhile, or loses its coordinator for good, waits for no details") {
  Failed dismissed;
  dismissed.end();
  const Effects end = dismissed.from(Dismiss{"another's"});
  CHECK(find<Finish>(end)->details == "another's");
  CHECK(find<StopTimer>(end));
  Failed lost;
  lost.end();
  CHECK(find<Finish>(lost.on(GivenUp{"no coordinator"})));
  Failed hurried;
  hurried.end();
  hurried.on(SignalReceived{SIGTERM});
  hurried.now_ms = 1000;
  CHECK(heard(hurried.on(SignalReceived{SIGTERM})) == "");
}

// --- Waiting for nodes. ----------------------------------------------------------------------------------

TEST_CASE("a node that waits for others says how many are here, and how the wait ends") {
  Lifecycle life({.terms = {.min_nodes = 4, .max_nodes = 8}});
  life.on_event(Attached{}, 1000);
  CHECK(life.waiting_for_round()->what == "waiting for the next round of 4 to 8 nodes");
  life.on_event(FromCoordinator{Awaiting{.here = 3, .least = 4, .most = 8, .for_ms = 5000, .left_ms = 60'000}}, 9000);
  CHECK(life.waiting_for_round()->what == "3 nodes present, 4 needed");
  CHECK(life.waiting_for_round()->since_ms == 4000);
  CHECK(life.waiting_for_round()->until_ms == 69'000);
  CHECK(life.waiting_for_round()->at_end == "giving up");
  life.on_event(FromCoordinator{Awaiting{.here = 4, .least = 4, .most = 8, .for_ms = 5990, .left_ms = 20'000}}, 10'000);
  CHECK(life.waiting_for_round()->what == "4 of 8 nodes present");
  CHECK(life.waiting_for_round()->since_ms == 4000);  // a message that took longer does not begin it anew
  CHECK(life.waiting_for_round()->until_ms == 30'000);
  CHECK(life.waiting_for_round()->at_end == "starting");
  life.on_event(FromCoordinator{Awaiting{.here = 1, .least = 4, .most = 4, .for_ms = 50'000}}, 60'000);
  CHECK(life.waiting_for_round()->what == "1 node present, 4 needed");
  CHECK(life.waiting_for_round()->since_ms == 10'000);
  CHECK(!life.waiting_for_round()->until_ms);
}

TEST_CASE("a node that waits because another was lost says who, how, when, and what is needed") {
  Lifecycle life({.terms = {.min_nodes = 2, .max_nodes = 3}});
  life.on_event(Attached{}, 1000);
  life.on_event(FromCoordinator{Awaiting{.here = 1,
                                         .least = 2,
                                         .most = 3,
                                         .for_ms = 5000,
                                         .left_ms = 60'000,
                                         .because = "node 1 (n1) was lost: reset\n",
                                         .because_ms = 7000}},
                9000);
  const Waiting waiting = *life.waiting_for_round();
  CHECK(waiting.what == "1 node present, 2 needed");
  CHECK(waiting.because == "node 1 (n1) was lost: reset\\x0a");
  CHECK(waiting.because_ms == 2000);
  CHECK(waiting.until_ms == 69'000);
}

TEST_CASE("a node on standby says that it is") {
  Lifecycle life({});
  life.on_event(Attached{}, 1000);
  life.on_event(FromCoordinator{Awaiting{.what = "standing by: the job has its maximum of 4 nodes"}}, 9000);
  CHECK(life.waiting_for_round()->what == "standing by: the job has its maximum of 4 nodes");
  CHECK(life.waiting_for_round()->since_ms == 1000);
}

TEST_CASE("what was waited for is forgotten with the connection and with the round that is prepared") {
  const FromCoordinator news{Awaiting{.here = 3, .least = 4, .most = 4, .for_ms = 5000}};
  Lifecycle life({.hosts_coordinator = false, .terms = {.min_nodes = 4, .max_nodes = 4}});
  life.on_event(news, 9000);
  life.on_event(Detached{}, 9500);
  CHECK(life.waiting_for_round()->what == "waiting for the next round of 4 nodes");
  life.on_event(news, 10'000);
  life.on_event(FromCoordinator{PrepareRound{.round = 0, .place = {1, 4, 1, 4, 1, 4}, .membership = 9}}, 11'000);
  CHECK(!life.waiting_for_round());
  life.on_event(FromCoordinator{StopWorkers{0}}, 12'000);
  life.on_event(AllGone{}, 12'000);
  CHECK(life.waiting_for_round()->what == "waiting for the next round of 4 nodes");
}

TEST_CASE("senseless times of a wait do no harm") {
  Lifecycle life({});
  constexpr std::int64_t kMost = INT64_MAX;
  for (const std::int64_t ms : {kMost, -kMost, std::int64_t{0}}) {
    life.on_event(FromCoordinator{Awaiting{.here = 1, .least = 2, .most = 2, .for_ms = ms, .left_ms = ms}}, 1000);
    CHECK(life.waiting_for_round()->since_ms <= 1000);
    CHECK(life.waiting_for_round()->until_ms >= 1000);
  }
}
