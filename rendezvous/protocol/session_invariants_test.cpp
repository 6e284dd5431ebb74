// Broken invariants of both ends of a session are noticed.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/session_test_support.h"
#include "src/base/check_test_support.h"
#include "src/base/limits.h"

namespace elastic::protocol {

// Breaks what holds of a session.
struct SessionBreaker {
  static void forget_hello(test::Talk& talk) { talk.agent.hello_.clear(); }
  static void keep_waiting(test::Talk& talk) { talk.agent.waiting_.emplace_back(test::kJoins); }
  static void learn_round(test::Talk& talk) { talk.agent.round_ = 3; }
  static void count_keep_alive(test::Talk& talk) { ++talk.agent.last_keep_alive_; }
  static void remember_all_keep_alives(test::Talk& talk) {
    for (std::size_t i = 0; i <= limits::kAgentUnansweredKeepAlives; ++i) {
      talk.agent.unanswered_.emplace_back(++talk.agent.last_keep_alive_, 0);
    }
  }
  static void skip_keep_alive(test::Talk& talk) {
    talk.agent.last_keep_alive_ += 2;
    talk.agent.unanswered_.emplace_back(talk.agent.last_keep_alive_, 0);
  }
  static void follow_older_term(test::Talk& talk) { talk.agent.introduction_.term = talk.agent.welcome_.term + 1; }
  static void forget_mark(test::Talk& talk) { talk.coordinator.mark_is_sent_ = false; }
  static void take_for_joined(test::Talk& talk) { talk.coordinator.has_joined_ = true; }
  static void take_any_name(test::Talk& talk) {
    talk.coordinator.introduction_.job.assign(limits::kAgentNameBytes + 1, 'j');
  }
};

namespace {

using namespace test;
using Breaker = SessionBreaker;

// The check that fails at the next bytes, which are too few for a frame.
std::string agent_notices(Talk& talk, void (*broken)(Talk&)) {
  broken(talk);
  return failed_check([&] { talk.agent.receive({}, talk.to_coordinator); });
}
std::string coordinator_notices(Talk& talk, void (*broken)(Talk&)) {
  broken(talk);
  return failed_check([&] { talk.coordinator.receive({}, talk.to_agent); });
}

TEST_CASE("an agent's end that keeps what is not of its state is noticed") {
  const auto before = [](void (*broken)(Talk&)) {
    Talk talk;
    return agent_notices(talk, broken);
  };
  const auto after = [](void (*broken)(Talk&)) {
    Talk talk;
    talk.welcome();
    talk.agent.keep_alive(5, talk.to_coordinator);
    return agent_notices(talk, broken);
  };
  CHECK(after([](Talk&) {}).empty());
  CHECK(after(Breaker::keep_waiting) == "waiting_.empty() || !may_talk");
  CHECK(before(Breaker::learn_round) == "may_talk || (last_keep_alive_ == 0 && !round_)");
  CHECK(before(Breaker::count_keep_alive) == "may_talk || (last_keep_alive_ == 0 && !round_)");
  CHECK(after(Breaker::follow_older_term) == "welcome_.term >= introduction_.term");
  CHECK(after(Breaker::remember_all_keep_alives) == "unanswered_.size() <= limits::kAgentUnansweredKeepAlives");
  CHECK(after(Breaker::count_keep_alive).starts_with("unanswered_.empty() || "));
  CHECK(after(Breaker::skip_keep_alive).starts_with("unanswered_.empty() || "));
}

TEST_CASE("an agent's end that has lost its HELLO is noticed") {
  Talk talk;
  talk.welcome();
  Breaker::forget_hello(talk);
  CHECK(failed_check([&] { talk.agent.keep_alive(5, talk.to_coordinator); }) ==
        "state_ == State::kHello || !hello_.empty()");
}

TEST_CASE("a coordinator's end that keeps what is not of its state is noticed") {
  Talk begun;
  CHECK(coordinator_notices(begun, [](Talk&) {}).empty());
  CHECK(coordinator_notices(begun, Breaker::take_for_joined).starts_with("!has_joined_ || is_introduced || "));
  Talk introduced;
  introduced.introduce();
  Breaker::forget_mark(introduced);
  CHECK(failed_check([&] { introduced.coordinator.welcome(kWelcome, introduced.to_agent); }) ==
        "mark_is_sent_ || state_ == State::kStart || state_ == State::kBroken");
  Talk named;
  named.welcome();
  CHECK(coordinator_notices(named, Breaker::take_any_name) == "introduction_.job.size() <= limits::kAgentNameBytes");
}

}  // namespace
}  // namespace elastic::protocol
