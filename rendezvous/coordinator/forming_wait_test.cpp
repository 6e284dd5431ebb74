#include "rendezvous/coordinator/forming_wait.h"

#include <doctest/doctest.h>

using namespace elastic;
using coordinator::FormingWait;
using Kind = membership::FormingDecision::Kind;

namespace {

const membership::FormingRules kRules = {
    .min_nodes = 2, .max_nodes = 4, .last_call_ms = 30'000, .join_timeout_ms = 600'000, .settle_ms = 1000};

}  // namespace

TEST_CASE("the last call counts from when the nodes became enough, and begins anew if they were too few meanwhile") {
  FormingWait wait(0, 0);
  CHECK(wait.decide({.ready = 1}, kRules, 1000).kind == Kind::kWait);
  CHECK(wait.decide({.ready = 2}, kRules, 5000).look_again_ms == 35'000);
  CHECK(wait.decide({.ready = 3}, kRules, 20'000).look_again_ms == 35'000);
  CHECK(wait.decide({.ready = 1}, kRules, 21'000).kind == Kind::kWait);
  CHECK(wait.decide({.ready = 2}, kRules, 25'000).look_again_ms == 55'000);
  CHECK(wait.decide({.ready = 2}, kRules, 55'000).kind == Kind::kForm);
}

TEST_CASE("join_timeout counts from the first node, or from the end of the last round") {
  FormingWait wait(0, 0);
  wait.restart_clock(7000);
  CHECK(wait.since_ms() == 7000);
  CHECK(wait.decide({.ready = 1}, kRules, 606'999).kind == Kind::kWait);
  CHECK(wait.decide({.ready = 1}, kRules, 607'000).kind == Kind::kGiveUp);
  wait.begin(1'000'000);
  CHECK(wait.decide({.ready = 1, .again = true}, kRules, 1'599'999).kind == Kind::kWait);
  CHECK(wait.decide({.ready = 1, .again = true}, kRules, 1'600'000).kind == Kind::kGiveUp);
}

TEST_CASE("a later round that depends on newcomers waits until none has come for a while") {
  FormingWait wait(0, 0);
  wait.begin(0);
  CHECK(wait.decide({.ready = 1, .again = true, .previous_size = 2}, kRules, 0).kind == Kind::kWait);
  wait.newcomer_joins(500);
  CHECK(wait.last_join_ms() == 500);
  CHECK(wait.decide({.ready = 2, .again = true, .previous_size = 2}, kRules, 500).look_again_ms == 1500);
  CHECK(wait.decide({.ready = 2, .again = true, .previous_size = 2}, kRules, 1500).kind == Kind::kForm);
}

TEST_CASE("a later round with enough survivors forms as soon as nobody is awaited, whoever joined") {
  FormingWait wait(0, 0);
  wait.begin(0);
  wait.newcomer_joins(0);
  CHECK(wait.decide({.ready = 1, .awaited = 1, .again = true, .previous_size = 2}, kRules, 0).kind == Kind::kWait);
  CHECK(wait.decide({.ready = 2, .again = true, .previous_size = 2}, kRules, 0).kind == Kind::kForm);
}

TEST_CASE("what one wait remembers is forgotten when the next begins") {
  FormingWait wait(0, 0);
  wait.begin(0);
  wait.decide({.ready = 1, .again = true, .previous_size = 2}, kRules, 0);
  wait.newcomer_joins(100);
  wait.begin(100);
  CHECK(wait.decide({.ready = 2, .again = true, .previous_size = 2}, kRules, 100).kind == Kind::kForm);
}

TEST_CASE("the job does not give up while a waiting node may come back") {
  FormingWait wait(0, 0);
  membership::FormingRules rules = kRules;
  rules.replacement_wait_ms = 0;
  wait.begin(0);
  wait.may_be_back_by(3000);
  CHECK(wait.decide({.ready = 1, .again = true, .previous_size = 2}, rules, 2999).kind == Kind::kWait);
  CHECK(wait.decide({.ready = 1, .again = true, .previous_size = 2}, rules, 3000).kind == Kind::kGiveUp);
}

TEST_CASE("the first round begins when a new job may, or, once there is an older one, when its nodes may be back") {
  FormingWait wait(0, 3000);
  CHECK(wait.first_not_before_ms() == 3000);
  wait.begin(1000);
  wait.not_first_before(4500);
  CHECK(wait.first_not_before_ms() == 4500);
}
