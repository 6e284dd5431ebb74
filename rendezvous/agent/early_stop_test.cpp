#include "rendezvous/agent/early_stop.h"

#include <doctest/doctest.h>

using elastic::agent::EarlyStop;

namespace {

EarlyStop in_a_round(bool is_on = true, bool may_restart = true, bool is_over = false) {
  EarlyStop early(is_on);
  early.round_began(may_restart, is_over);
  return early;
}

}  // namespace

TEST_CASE("an error file stops the others, and the worker that wrote it is left alone") {
  EarlyStop early = in_a_round();
  CHECK_FALSE(early.spared());
  CHECK(early.written(1, true));
  CHECK(early.spared() == 1);
  CHECK_FALSE(early.written(2, true));  // the others write theirs while they are stopped
  CHECK(early.spared() == 1);
}

TEST_CASE("an error file stops nobody where that is not wanted, no restart is left, or nobody else runs") {
  CHECK_FALSE(in_a_round(false).written(1, true));
  CHECK_FALSE(in_a_round(true, false).written(1, true));
  CHECK_FALSE(in_a_round().written(1, false));
}

TEST_CASE("it is a failure only if the worker then ends by itself, and not well") {
  EarlyStop fails = in_a_round();
  fails.written(1, true);
  CHECK_FALSE(fails.failed(0));  // it was stopped
  CHECK(fails.failed(1));
  CHECK_FALSE(fails.false_alarm());

  EarlyStop ends_well = in_a_round();
  ends_well.written(1, true);
  CHECK(ends_well.false_alarm() == 1);

  EarlyStop killed = in_a_round();
  killed.written(1, true);
  killed.is_signalled_too();
  CHECK_FALSE(killed.spared());
  CHECK_FALSE(killed.failed(1));
  CHECK(killed.false_alarm() == 1);

  CHECK_FALSE(in_a_round().false_alarm());
}

TEST_CASE("after a false alarm no error file stops a round, whatever later coordinators know of it") {
  EarlyStop early = in_a_round();
  early.written(1, true);
  early.round_began(true, true);
  CHECK_FALSE(early.false_alarm());
  CHECK_FALSE(early.written(1, true));
  early.round_began(true, false);
  CHECK(early.is_over());
  CHECK_FALSE(early.written(1, true));
}

TEST_CASE("a node knows of its own false alarm when the round has ended, before any coordinator tells it") {
  EarlyStop early = in_a_round();
  early.written(1, true);
  CHECK_FALSE(early.is_over());
  early.round_ended();
  CHECK(early.is_over());
  early.round_began(true, false);
  CHECK_FALSE(early.written(1, true));

  EarlyStop fails = in_a_round();
  fails.written(1, true);
  fails.failed(1);
  fails.round_ended();
  CHECK_FALSE(fails.is_over());
  EarlyStop quiet = in_a_round();
  quiet.round_ended();
  CHECK_FALSE(quiet.is_over());
}

TEST_CASE("each round has a failure of its own") {
  EarlyStop early = in_a_round();
  early.written(1, true);
  early.failed(1);
  early.round_began(true, false);
  CHECK_FALSE(early.spared());
  CHECK(early.written(0, true));
  CHECK(early.false_alarm() == 0);
}
