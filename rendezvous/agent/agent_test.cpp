#include "rendezvous/agent/agent.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "rendezvous/agent/link_test_support.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::agent::testing;
using namespace elastic::protocol;

namespace {

using Activity = AgentFacts::Activity;

// An agent of two workers, a coordinator that can be taken away, and all effects of the agent.
struct Tied {
  explicit Tied(NodeSettings node = {})
      : agent(
            [&] {
              node.local_world_size = 2;
              node.hosts_coordinator = false;
              node.terms = {.min_nodes = 1, .max_nodes = 4, .max_restarts = 3};
              return node;
            }(),
            {.job = "j", .join_timeout_ms = 20'000}) {}

  void on(const AgentEvent& event) {
    for (AgentEffect& effect : agent.on_event(event, now_ms)) {
      log.push_back(effect);
      if (const auto* timer = std::get_if<StartLinkTimer>(&effect)) timer_ms = now_ms + timer->delay_ms;
      if (std::holds_alternative<Link::Connect>(effect)) connects = true;
      if (std::holds_alternative<Link::Disconnect>(effect)) connects = connected = false;
      if (auto* write = std::get_if<Link::Write>(&effect); write != nullptr && hears && connected) {
        pending.push_back(other.take(write->bytes));
      }
    }
  }
  // Makes connections and passes bytes on until the agent has no further effects.
  void settle() {
    for (int steps = 0; steps < 100; ++steps) {
      if (connects) {
        connects = false;
        if (reachable) {
          connected = true;
          other.accept();
          on(LinkConnected{});
        } else {
          on(LinkBroken{"connection refused"});
        }
      } else if (!pending.empty()) {
        const ByteString bytes = pending.front();
        pending.erase(pending.begin());
        if (connected && !bytes.empty()) on(LinkReceived{bytes});
      } else {
        return;
      }
    }
    FAIL("it does not come to rest");
  }
  void event(const AgentEvent& what) {
    on(what);
    settle();
  }
  void say(const CoordinatorMessage& message) { event(LinkReceived{other.say(message)}); }
  void broken() {
    connected = false;
    pending.clear();
    event(LinkBroken{"reset"});
  }
  void pass(std::int64_t ms) {
    const std::int64_t until_ms = now_ms + ms;
    for (int wakes = 0; timer_ms && *timer_ms <= until_ms; ++wakes) {
      REQUIRE(wakes < 10'000);
      now_ms = std::max(now_ms, *timer_ms);
      timer_ms.reset();
      event(LinkTimerFired{});
    }
    now_ms = until_ms;
  }
  // Brings the round `round` of two nodes so far that its workers run.
  void run(RoundNumber round = 0) {
    if (!connected) event(Begin{});
    say(PrepareRound{.round = round,
                     .max_restarts = 3,
                     .place = {1, 2, 2, 4, 2, 4},
                     .membership = 99,
                     .next_leaders = next_leaders});
    say(RunWorkers{round, {"10.0.0.1", 4000}});
    REQUIRE(count<StartWorkers>() > 0);
  }
  void all_gone() { event(AllGone{}); }

  template <class Kind>
  std::size_t count() const {
    std::size_t found = 0;
    for (const AgentEffect& effect : log) {
      const auto* inner = std::get_if<Effect>(&effect);
      if (inner != nullptr && std::holds_alternative<Kind>(*inner)) ++found;
    }
    return found;
  }
  // The last signal to the workers; 0: none.
  int signal() const {
    int last = 0;
    for (const AgentEffect& effect : log) {
      const auto* inner = std::get_if<Effect>(&effect);
      const auto* sent = inner == nullptr ? nullptr : std::get_if<SignalWorkers>(inner);
      if (sent != nullptr) last = sent->signal;
    }
    return last;
  }
  std::optional<JobResult> finished() const {
    for (const AgentEffect& effect : log) {
      const auto* inner = std::get_if<Effect>(&effect);
      const auto* finish = inner == nullptr ? nullptr : std::get_if<Finish>(inner);
      if (finish != nullptr) return finish->job_result;
    }
    return {};
  }
  std::size_t sessions() const { return other.introductions.size(); }

  std::vector<NextLeader> next_leaders = {};
  Agent agent;
  Other other;
  std::int64_t now_ms = 1'000'000;
  std::optional<std::int64_t> timer_ms;
  bool reachable = true;
  bool hears = true;
  bool connects = false;  // the agent wants a connection
  bool connected = false;
  std::vector<ByteString> pending;  // bytes on their way to the agent
  std::vector<AgentEffect> log;
};

}  // namespace

TEST_CASE("an agent finds its coordinator, runs a round, and ends when it is dismissed") {
  Tied tied;
  tied.run();
  CHECK(tied.other.last<NodeJoins>()->facts.incarnation == 0);
  tied.event(WorkerExited{0, {}, 5});
  tied.event(WorkerExited{1, {}, 5});
  CHECK(tied.other.last<WorkersSucceeded>()->round == 0);
  tied.say(EndJob{});
  CHECK(tied.other.last<JobResultHeard>() != nullptr);
  tied.all_gone();
  CHECK(!tied.finished());
  tied.say(Dismiss{});
  REQUIRE(tied.finished().has_value());
  CHECK(tied.finished()->outcome == JobResult::Outcome::kSucceeded);
  tied.log.clear();
  tied.event(LinkTimerFired{});
  CHECK(tied.log.empty());
}

TEST_CASE("details that are gathered while the connection is broken arrive over the next one") {
  for (const bool early : {true, false}) {
    Tied tied({.shares_details = true});
    tied.run();
    tied.event(WorkerStarted{0, 100});
    tied.event(WorkerExited{0, {.code = 3}, 5});
    tied.all_gone();
    const EndJob end{{.outcome = JobResult::Outcome::kFailed, .failures = tied.agent.lifecycle().failures()}};
    tied.say(end);
    CHECK(tied.count<GatherDetails>() == 1);
    CHECK(tied.other.last<JobResultHeard>() == nullptr);
    tied.reachable = false;
    tied.broken();
    if (early) tied.event(DetailsGathered{"Traceback"});
    tied.reachable = true;
    tied.pass(1000);
    REQUIRE(tied.sessions() == 2);
    tied.say(end);
    if (!early) tied.event(DetailsGathered{"Traceback"});
    REQUIRE(tied.other.last<JobResultHeard>() != nullptr);
    CHECK(tied.other.last<JobResultHeard>()->details == "Traceback");
    CHECK(tied.count<GatherDetails>() == 1);
    tied.say(Dismiss{"Traceback"});
    CHECK(tied.finished().has_value());
  }
}

TEST_CASE("an agent that has not found its coordinator yet ends as soon as it is told to") {
  Tied tied;
  tied.reachable = false;
  tied.event(Begin{});
  tied.pass(500);
  tied.event(SignalReceived{SIGTERM});
  REQUIRE(tied.finished().has_value());
  CHECK(tied.finished()->outcome == JobResult::Outcome::kStopped);
  CHECK(tied.finished()->signal == SIGTERM);
}

TEST_CASE("an agent that is told to end before it begins looks for no coordinator") {
  for (const Event& told : {Event(SignalReceived{SIGTERM}), Event(SegmentSeen{"/d/f"})}) {
    Tied tied;
    tied.on(told);
    CHECK(!tied.finished());
    CHECK(!tied.timer_ms);
    CHECK(!tied.agent.waiting());
    tied.on(Begin{});
    REQUIRE(tied.finished());
    CHECK(static_cast<int>(tied.finished()->outcome) == static_cast<int>(JobResult::Outcome::kStopped));
    CHECK(std::ranges::none_of(
        tied.log, [](const AgentEffect& effect) { return std::holds_alternative<Link::Connect>(effect); }));
  }
}

TEST_CASE("an agent that finds no coordinator ends with that reason") {
  Tied tied;
  tied.reachable = false;
  tied.event(Begin{});
  tied.pass(20'000);
  REQUIRE(tied.finished().has_value());
  CHECK(tied.finished()->outcome == JobResult::Outcome::kFailed);
  CHECK(tied.finished()->reason == "found no coordinator within 20 s: connection refused");
}

TEST_CASE("what an agent reports when it is back has what it was in, and what it has heard of") {
  Tied tied;
  tied.other.welcome.term = 3;
  tied.run(5);
  tied.pass(1000);
  tied.broken();
  const AgentFacts facts = tied.other.last<NodeJoins>()->facts;
  CHECK(facts.incarnation == 7);
  CHECK(facts.term == 3);
  CHECK(facts.round == 5);
  CHECK(facts.activity == Activity::kRunning);
  CHECK(facts.place == NodePlace{1, 2, 2, 4, 2, 4});
  CHECK(facts.membership == 99);
  CHECK(tied.signal() == 0);  // training goes on
}

TEST_CASE("a SIGTERM while the coordinator is away is told when it is back") {
  Tied tied;
  tied.run();
  tied.reachable = false;
  tied.broken();
  tied.event(SignalReceived{SIGTERM});
  CHECK(tied.other.last<NodeLeaves>() == nullptr);
  tied.reachable = true;
  tied.pass(2000);
  REQUIRE(tied.agent.link().attached());
  REQUIRE(tied.other.last<NodeLeaves>() != nullptr);
  CHECK(tied.other.last<NodeLeaves>()->signal == SIGTERM);
  tied.all_gone();
  CHECK(tied.other.last<NodeStopped>() != nullptr);
}

TEST_CASE("a SIGTERM while the coordinator is away ends the node without it once its workers are gone") {
  Tied tied;
  tied.run();
  tied.reachable = false;
  tied.broken();
  tied.event(SignalReceived{SIGTERM});
  CHECK(!tied.finished());
  tied.all_gone();
  REQUIRE(tied.finished().has_value());
  CHECK(tied.finished()->outcome == JobResult::Outcome::kStopped);
}

TEST_CASE("workers live through a coordinator's absence of less than the lease, and are killed when it is over") {
  Tied tied;
  tied.next_leaders = {{.agent = 8, .port = 4}};
  tied.run();
  tied.hears = false;
  tied.pass(2999);
  CHECK(tied.signal() == 0);
  tied.pass(1);
  CHECK(tied.signal() == SIGKILL);
  CHECK(tied.count<StartWorkers>() == 1);
  tied.hears = true;
  tied.pass(1000);
  CHECK(tied.sessions() == 1);  // a new one is opened when the last worker is gone
  tied.all_gone();
  CHECK(tied.sessions() == 2);
  CHECK(tied.other.last<NodeJoins>()->facts.activity == Activity::kIdle);
  tied.say(PrepareRound{.round = 1, .place = {0, 1, 0, 2, 0, 2}, .membership = 5});
  CHECK(tied.count<OpenStore>() == 1);
}

TEST_CASE("an agent that was stopped and goes on kills its workers before it looks at anything that has come") {
  Tied tied;
  tied.run();
  tied.now_ms += 10'000;
  tied.log.clear();
  tied.on(LinkReceived{tied.other.say(StopWorkers{0})});
  std::vector<int> signals;
  for (const AgentEffect& effect : tied.log) {
    const auto* inner = std::get_if<Effect>(&effect);
    if (inner == nullptr) continue;
    if (const auto* sent = std::get_if<SignalWorkers>(inner)) signals.push_back(sent->signal);
  }
  CHECK(signals == std::vector<int>{SIGKILL});
}

TEST_CASE("an agent that was stopped and goes on takes what its workers did meanwhile for a consequence") {
  Tied tied;
  tied.next_leaders = {{.agent = 8, .port = 4}};
  tied.run();
  tied.now_ms += 10'000;
  tied.event(WorkerExited{0, {.code = 1}, 5});
  CHECK(tied.signal() == SIGKILL);
  tied.all_gone();
  REQUIRE(tied.other.last<NodeJoins>()->facts.failures.size() == 1);
  CHECK(tied.other.last<NodeJoins>()->facts.failures[0].stopped_by_us);
}

TEST_CASE("an agent whose round went on kills its workers, and joins when they are gone") {
  Tied tied;
  tied.run();
  tied.say(Rejected{Rejected::Why::kRoundWentOn, "it went on", 0});
  CHECK(tied.signal() == SIGKILL);
  tied.pass(1000);
  CHECK(tied.sessions() == 1);
  tied.all_gone();
  CHECK(tied.sessions() == 2);
  CHECK(tied.other.last<NodeJoins>()->facts.activity == Activity::kIdle);
  CHECK(tied.other.introductions.back().incarnation == 7);
  CHECK(!tied.finished());
}

TEST_CASE("an agent that is turned away for good ends, its workers first") {
  Tied tied;
  tied.run();
  tied.say(Rejected{Rejected::Why::kTermsDiffer, "it was started with other terms", {}});
  CHECK(tied.signal() == SIGKILL);
  CHECK(!tied.finished());
  tied.all_gone();
  REQUIRE(tied.finished().has_value());
  CHECK(tied.finished()->reason == "it was started with other terms");
}

TEST_CASE("an agent that is to try again keeps its user's process waiting and tries") {
  Tied tied;
  tied.event(Begin{});
  tied.say(Rejected{Rejected::Why::kJobEnding, "it is ending", 500});
  CHECK(!tied.finished());
  tied.pass(499);
  CHECK(tied.sessions() == 1);
  tied.pass(1);
  CHECK(tied.sessions() == 2);
}

TEST_CASE("who is dismissed connects no more, and its workers have their time to end") {
  Tied tied;
  tied.run();
  tied.say(EndJob{{.outcome = JobResult::Outcome::kStopped}});
  CHECK(tied.signal() == SIGTERM);
  tied.say(Dismiss{});
  const auto lines = [&] {
    return std::ranges::count_if(tied.log, [](const auto& done) { return std::holds_alternative<Link::Log>(done); });
  };
  const auto before = lines();
  tied.broken();  // the coordinator has closed the connection
  tied.pass(25'000);
  CHECK(lines() == before);
  CHECK(tied.sessions() == 1);
  CHECK(tied.signal() == SIGTERM);  // and no SIGKILL because of a lease
  tied.all_gone();
  CHECK(tied.finished().has_value());
}

TEST_CASE("a job result that others may not have heard is told to a coordinator that is back, and kept if none is") {
  for (const bool is_back : {true, false}) {
    Tied tied;
    tied.run();
    tied.event(WorkerExited{0, {}, 5});
    tied.event(WorkerExited{1, {}, 5});
    tied.say(EndJob{{.outcome = JobResult::Outcome::kSucceeded, .round = 0}});
    tied.all_gone();
    tied.pass(1000);
    tied.reachable = is_back;
    tied.broken();
    if (is_back) {
      REQUIRE(tied.other.last<NodeJoins>()->facts.job_result.has_value());
      CHECK(tied.other.last<NodeJoins>()->facts.activity == Activity::kIdle);
      continue;
    }
    tied.pass(2'999);
    CHECK(!tied.finished());
    tied.pass(1);
    REQUIRE(tied.finished().has_value());
    CHECK(tied.finished()->outcome == JobResult::Outcome::kSucceeded);
  }
}

TEST_CASE("a node with a job result keeps that and ends when it is turned away, without asking again and again") {
  Tied tied;
  tied.run();
  tied.say(EndJob{{.outcome = JobResult::Outcome::kFailed, .reason = "why"}});
  tied.pass(1000);
  tied.broken();
  CHECK(tied.sessions() == 2);
  tied.say(Rejected{Rejected::Why::kRoundWentOn, "it goes on", 0});
  CHECK(tied.signal() == SIGKILL);
  tied.pass(500);
  CHECK(tied.sessions() == 2);
  tied.all_gone();
  REQUIRE(tied.finished().has_value());
  CHECK(tied.finished()->reason == "why");
}

TEST_CASE("a coordinator that does not come back ends the job for the node, and no worker is left") {
  for (const bool has_next_leader : {true, false}) {
    CAPTURE(has_next_leader);
    Tied tied;
    if (has_next_leader) tied.next_leaders = {{.agent = 8, .port = 4}};
    tied.run();
    tied.pass(1000);
    tied.reachable = false;
    tied.broken();
    tied.pass(2'000);
    CHECK(tied.signal() == 0);
    tied.pass(1'000);
    CHECK(tied.signal() == SIGKILL);
    CHECK(!tied.finished());
    tied.all_gone();
    CHECK(tied.finished().has_value() == !has_next_leader);
    tied.pass(30'000);
    REQUIRE(tied.finished().has_value());
    CHECK(tied.finished()->outcome == JobResult::Outcome::kFailed);
    CHECK(tied.finished()->reason ==
          (has_next_leader ? "lost the coordinator and could not reconnect: connection refused"
                           : "lost the coordinator and could not reconnect in time, and no other node can take "
                             "over: connection refused"));
  }
}

TEST_CASE("a timer is asked for when the next deadline changes, and not for each event") {
  Tied tied;
  tied.run();
  tied.log.clear();
  for (int rank = 0; rank < 2; ++rank) tied.event(WorkerStarted{rank, 100 + rank});
  for (const AgentEffect& effect : tied.log) CHECK(!std::holds_alternative<StartLinkTimer>(effect));
}
