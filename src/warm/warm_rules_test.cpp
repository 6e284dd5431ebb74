#include "src/warm/warm_rules.h"

#include <doctest/doctest.h>

using namespace elastic::warm;
using Step = WarmRules::Step;

namespace {

WarmSettings settings(Mode mode = Mode::kAuto) { return {.mode = mode, .after_ms = 30'000}; }

// A job whose server can fork, and whose workers wait, after the first round has run for a while.
WarmRules ready(Mode mode = Mode::kAuto) {
  WarmRules rules(settings(mode));
  rules.round_began(false, 3, 0);
  REQUIRE(rules.next_step(30'000) == Step::kStartServer);
  rules.server_is_ready();
  REQUIRE(rules.next_step(33'000) == Step::kPark);
  return rules;
}

}  // namespace

TEST_CASE("the import server is started when the first round has run a while, and workers wait when it is ready") {
  WarmRules rules(settings());
  CHECK_FALSE(rules.next_ms());
  rules.round_began(false, 3, 1'000);
  CHECK(rules.next_ms() == 31'000);
  CHECK(rules.next_step(30'999) == Step::kNothing);
  CHECK(rules.next_step(31'000) == Step::kStartServer);
  CHECK_FALSE(rules.next_ms());
  CHECK(rules.next_step(40'000) == Step::kNothing);
  CHECK(rules.why_cold(0, 2) == "the import server is not ready");
  rules.server_is_ready();
  CHECK(rules.next_step(40'000) == Step::kPark);
  CHECK(rules.next_step(40'000) == Step::kNothing);
  CHECK(rules.why_cold(1, 2) == "1 of 2 workers wait");
  CHECK(rules.why_cold(2, 2).empty());
}

TEST_CASE("after a round that used them, workers wait again when the next one has run for a moment") {
  WarmRules rules = ready();
  rules.round_ended(true, 50'000);
  CHECK_FALSE(rules.next_ms());
  rules.workers_have_gone();
  rules.round_began(true, 2, 51'000);
  CHECK(rules.next_step(60'999) == Step::kNothing);
  CHECK(rules.next_step(61'000) == Step::kPark);
}

TEST_CASE("after a round that could not take them, those that are missing are forked again") {
  WarmRules rules = ready();
  CHECK(rules.why_cold(1, 2) == "1 of 2 workers wait");
  rules.round_ended(true, 50'000);
  rules.round_began(false, 2, 51'000);
  CHECK(rules.next_step(61'000) == Step::kPark);
}

TEST_CASE("whether the next round's workers will be warm is known at any time, and what they lack") {
  using State = WarmRules::Outlook::State;
  WarmRules rules(settings());
  CHECK(rules.outlook(0, 2).state == State::kPreparing);  // whether a restart is left is not known yet
  rules.round_began(false, 3, 0);
  CHECK(rules.outlook(0, 2).state == State::kPreparing);
  CHECK(rules.outlook(0, 2).why == "the import server is not ready");
  REQUIRE(rules.next_step(30'000) == Step::kStartServer);
  rules.server_is_ready();
  CHECK(rules.outlook(1, 2).why == "1 of 2 workers wait");
  CHECK(rules.outlook(2, 2).state == State::kReady);
  CHECK(rules.outlook(2, 2).why.empty());
  rules.server_has_gone("it has a thread", true);
  CHECK(rules.outlook(0, 2).state == State::kCold);
  CHECK(rules.outlook(0, 2).why == "it has a thread");
}

TEST_CASE("workers stay cold without a restart, without the flag they are off, and with servers that are killed cold") {
  using State = WarmRules::Outlook::State;
  WarmRules last(settings());
  last.round_began(false, 0, 0);
  CHECK(last.outlook(0, 2).state == State::kCold);
  CHECK(last.outlook(0, 2).why == "no restart is left");
  CHECK(WarmRules(settings(Mode::kOff)).outlook(0, 2).state == State::kOff);
  WarmRules killed = ready();
  for (int servers = 1; servers < 5; ++servers) {
    killed.server_has_gone("it was killed", false);
    CHECK(killed.outlook(0, 2).state == State::kPreparing);
    REQUIRE(killed.next_step(100'000) == Step::kStartServer);
  }
  killed.server_has_gone("it was killed", false);
  CHECK(killed.outlook(0, 2).state == State::kCold);
  CHECK(killed.outlook(0, 2).why == "it was killed");
}

TEST_CASE("servers whose packages have changed are replaced as often as that happens") {
  WarmRules rules = ready();
  for (int changes = 0; changes < 10; ++changes) {
    rules.must_begin_again();
    REQUIRE(rules.next_step(1'000'000) == Step::kStartServer);
    rules.server_is_ready();
  }
}

TEST_CASE("where no restart is left, or workers cannot be warm, nothing is started") {
  WarmRules last(settings());
  last.round_began(false, 0, 0);
  CHECK(last.next_step(100'000) == Step::kNothing);
  WarmRules off(settings(Mode::kOff));
  off.round_began(false, 3, 0);
  CHECK(off.next_step(100'000) == Step::kNothing);
  WarmSettings never = settings();
  never.never = "--wrap starts other programs";
  WarmRules cannot(never);
  cannot.round_began(false, 3, 0);
  CHECK(cannot.next_step(100'000) == Step::kNothing);
  CHECK(cannot.why_cold(2, 2) == "--wrap starts other programs");
}

TEST_CASE("a warm round that fails soon makes the job cold, and one that does not, or is stopped, does not") {
  struct Case {
    bool is_warm;
    bool has_failed;
    std::int64_t lasted_ms;
    bool is_cold;
  };
  for (const Case& each : {Case{true, true, 29'999, true}, Case{true, true, 30'000, false},
                           Case{true, false, 1'000, false}, Case{false, true, 1'000, false}}) {
    WarmRules rules = ready();
    rules.workers_have_gone();
    rules.round_began(each.is_warm, 2, 100'000);
    rules.round_ended(each.has_failed, 100'000 + each.lasted_ms);
    CHECK(rules.may_be_warm() != each.is_cold);
    CHECK(rules.why_cold(2, 2).empty() != each.is_cold);
  }
}

TEST_CASE("a server that is killed is started again a few times, and one that refuses is not") {
  WarmRules rules(settings());
  rules.round_began(false, 3, 0);
  for (int servers = 0; servers < 5; ++servers) {
    CHECK(rules.next_step(30'000) == Step::kStartServer);
    rules.server_has_gone("it was killed", false);
    CHECK(rules.why_cold(2, 2) == "it was killed");
  }
  CHECK(rules.next_step(30'000) == Step::kNothing);
  WarmRules refused(settings());
  refused.round_began(false, 3, 0);
  CHECK(refused.next_step(30'000) == Step::kStartServer);
  refused.server_has_gone("there is no PyTorch", true);
  CHECK(refused.next_step(30'000) == Step::kNothing);
  CHECK(refused.why_cold(2, 2) == "there is no PyTorch");
}

TEST_CASE("why workers start cold is told once each, and only where warm ones are asked for") {
  WarmRules quiet = ready(Mode::kAuto);
  CHECK_FALSE(quiet.is_to_tell("no memory"));
  WarmRules loud(settings(Mode::kOn));
  CHECK_FALSE(loud.is_to_tell("the import server is not ready"));  // the first round
  loud.round_began(false, 3, 0);
  CHECK(loud.is_to_tell("no memory"));
  CHECK_FALSE(loud.is_to_tell("no memory"));
  CHECK(loud.is_to_tell("no torch"));
}
