#include "rendezvous/membership/scale_up.h"

#include <doctest/doctest.h>

#include "src/base/test_random.h"

using namespace elastic::membership;
using When = ScaleUp::When;

namespace {

FormingRules nodes(int least, int most, int unit = 1) {
  return {.min_nodes = least, .max_nodes = most, .node_unit = unit};
}

}  // namespace

TEST_CASE("scale_up is now, after=S, on-restart or never, and nothing else") {
  CHECK(parse_scale_up("now") == ScaleUp{.when = When::kNow});
  CHECK(parse_scale_up("on-restart") == ScaleUp{.when = When::kOnRestart});
  CHECK(parse_scale_up("never") == ScaleUp{.when = When::kNever});
  CHECK(parse_scale_up("after=1.5") == ScaleUp{.when = When::kAfter, .after_ms = 1500});
  CHECK(parse_scale_up("after=0") == ScaleUp{.when = When::kAfter, .after_ms = 0});
  CHECK(parse_scale_up("after=0.0014") == ScaleUp{.when = When::kAfter, .after_ms = 1});
  CHECK(parse_scale_up("after=315360000") == ScaleUp{.when = When::kAfter, .after_ms = 315'360'000'000});
  for (const char* text : {"", "Now", "after", "after=", "after=-1", "after=x", "after=nan", "after=inf", "after=1e300",
                           "after=315360001", "now ", "after=1s", "on_restart", "5"}) {
    CAPTURE(text);
    CHECK(!parse_scale_up(text));
  }
}

TEST_CASE("by default a newcomer is taken in once no other has joined for a second") {
  const ScaleUpDecision early = decide_scale_up(2, 1, 5000, nodes(1, 8), ScaleUp{}, 5999);
  CHECK(!early.grow_now);
  CHECK(early.look_again_ms == 6000);
  CHECK(decide_scale_up(2, 1, 5000, nodes(1, 8), ScaleUp{}, 6000).grow_now);
}

TEST_CASE("nodes that make up the maximum are taken in at once") {
  CHECK(decide_scale_up(2, 6, 5000, nodes(1, 8), ScaleUp{}, 5000).grow_now);
  CHECK(decide_scale_up(4, 5, 5000, nodes(1, 11, 4), ScaleUp{}, 5000).grow_now);
}

TEST_CASE("fewer newcomers than the unit, and any above the maximum, start no new round") {
  for (const When when : {When::kNow, When::kAfter}) {
    const ScaleUp scale_up{.when = when};
    const auto none = [&](int size, int standby) {
      const ScaleUpDecision decision = decide_scale_up(size, standby, 0, nodes(8, 12, 4), scale_up, 1'000'000);
      return !decision.grow_now && !decision.look_again_ms;
    };
    CHECK(none(8, 0));
    CHECK(none(8, 2));  // in DLRover nodes 8 and 9 wait as well
    CHECK(none(8, 3));
    CHECK(!none(8, 4));  // nodes 10 and 11 have come
    CHECK(!none(8, 6));
    CHECK(none(12, 6));
  }
}

TEST_CASE("now does not wait; on-restart and never start no round") {
  CHECK(decide_scale_up(2, 1, 5000, nodes(1, 8), {.when = When::kNow}, 5000).grow_now);
  for (const When when : {When::kOnRestart, When::kNever}) {
    const ScaleUpDecision decision = decide_scale_up(2, 6, 0, nodes(1, 8), {.when = when}, 1'000'000);
    CHECK(!decision.grow_now);
    CHECK(!decision.look_again_ms);
  }
}

TEST_CASE("ten nodes that arrive together cost one new round, not ten") {
  elastic::TestRandom random(3);
  const FormingRules rules = nodes(1, 64);
  int size = 4;
  int standby = 0;
  int rounds = 0;
  std::int64_t now_ms = 0;
  std::int64_t last_join_ms = 0;
  for (int joins = 0; joins < 10; ++joins) {
    now_ms += static_cast<std::int64_t>(random() % 1000);
    last_join_ms = now_ms;
    ++standby;
    REQUIRE(!decide_scale_up(size, standby, last_join_ms, rules, ScaleUp{}, now_ms).grow_now);
  }
  while (standby > 0) {
    const ScaleUpDecision decision = decide_scale_up(size, standby, last_join_ms, rules, ScaleUp{}, now_ms);
    if (decision.grow_now) {
      ++rounds;
      size = round_size(size + standby, rules);
      standby = 0;
      continue;
    }
    REQUIRE(decision.look_again_ms.value() > now_ms);
    now_ms = *decision.look_again_ms;
  }
  CHECK(rounds == 1);
  CHECK(size == 14);
  CHECK(now_ms == last_join_ms + 1000);
}

TEST_CASE("with never a round is never larger than the first; otherwise up to the maximum") {
  const FormingRules rules = nodes(2, 8);
  CHECK(size_limit({.when = When::kNever}, 0, rules) == 8);
  CHECK(size_limit({.when = When::kNever}, 4, rules) == 4);
  CHECK(size_limit({.when = When::kNever}, 9, rules) == 8);
  for (const When when : {When::kNow, When::kAfter, When::kOnRestart}) CHECK(size_limit({.when = when}, 4, rules) == 8);
}
