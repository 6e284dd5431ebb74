#include "rendezvous/agent/node_waits.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

using For = NodeWaits::For;

const JobTerms kTerms{.min_nodes = 4, .max_nodes = 8};

// A node that is idle since 1000 ms.
NodeWaits idle() {
  NodeWaits waits;
  waits.follow(For::kNothing, true, 1000);
  return waits;
}

}  // namespace

TEST_CASE("a wait counts from the event that began it, through all that follow while it goes on") {
  NodeWaits waits;
  waits.follow(For::kEnd, false, 100);
  waits.follow(For::kEnd, false, 200);
  CHECK(waits.since_ms() == 100);
  waits.follow(For::kDeath, false, 300);
  CHECK(waits.since_ms() == 300);
}

TEST_CASE("an idle node that has heard nothing waits for the nodes of the job's terms, since it is idle") {
  NodeWaits waits = idle();
  waits.follow(For::kNothing, true, 2000);
  const Waiting waiting = waits.for_round(kTerms);
  CHECK(waiting.what == "waiting for the next round of 4 to 8 nodes");
  CHECK(waiting.since_ms == 1000);
  CHECK(waiting.for_others);
  CHECK(waits.for_round({.min_nodes = 4, .max_nodes = 4}).what == "waiting for the next round of 4 nodes");
}

TEST_CASE("what the coordinator says about other nodes is told with its times, and with what happens at the end") {
  NodeWaits waits = idle();
  waits.heard(
      {.here = 1, .least = 4, .most = 8, .for_ms = 5000, .left_ms = 60'000, .because = "a\n", .because_ms = 700}, 9000);
  Waiting waiting = waits.for_round(kTerms);
  CHECK(waiting.what == "1 node present, 4 needed");
  CHECK(waiting.since_ms == 4000);
  CHECK(waiting.until_ms == 69'000);
  CHECK(waiting.at_end == "giving up");
  CHECK(waiting.because == "a\\x0a");
  CHECK(waiting.because_ms == 8300);
  waits.heard({.here = 4, .least = 4, .most = 8, .for_ms = 5990}, 10'000);
  waiting = waits.for_round(kTerms);
  CHECK(waiting.what == "4 of 8 nodes present");
  CHECK(waiting.since_ms == 4000);  // less than a second apart: the same wait
  CHECK(!waiting.until_ms);
  CHECK(waiting.at_end == "starting");
  waits.heard({.here = 4, .least = 4, .most = 8, .for_ms = 5000}, 10'000);
  CHECK(waits.for_round(kTerms).since_ms == 5000);
}

TEST_CASE("a node that is on standby says so in the coordinator's words, until those hold no longer") {
  NodeWaits waits = idle();
  CHECK(!waits.stands_by());
  waits.heard({.left_ms = 500, .what = "standing by\t"}, 9000);
  CHECK(waits.stands_by());
  CHECK(waits.for_round(kTerms).what == "standing by\\x09");
  CHECK(waits.for_round(kTerms).advice == "standing by\\x09");  // told once, at every level
  CHECK(waits.for_round(kTerms).advice_at_once);
  CHECK(waits.for_round(kTerms).since_ms == 1000);
  CHECK(waits.for_round(kTerms).until_ms == 9500);
  waits.forget_news();
  CHECK(!waits.stands_by());
  CHECK(waits.for_round(kTerms).what == "waiting for the next round of 4 to 8 nodes");
}

TEST_CASE("times that make no sense are brought into bounds") {
  NodeWaits waits = idle();
  for (const std::int64_t ms : {INT64_MAX, INT64_MIN}) {
    waits.heard({.here = 1, .least = 2, .most = 2, .for_ms = ms, .left_ms = ms, .because_ms = ms}, 1000);
    CHECK(waits.for_round(kTerms).since_ms <= 1000);
    CHECK(waits.for_round(kTerms).because_ms <= 1000);
    CHECK(waits.for_round(kTerms).until_ms >= 1000);
  }
}
