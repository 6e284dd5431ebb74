#include "rendezvous/membership/round_forming.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "src/base/test_random.h"

using namespace elastic::membership;
using Kind = FormingDecision::Kind;

namespace {

FormingRules nodes(int least, int most, int unit = 1) {
  return {.min_nodes = least, .max_nodes = most, .node_unit = unit};
}

// The view of a first round: so many nodes joined from 0 on, the last of them at `last_join_ms`.
FormingView joined(int ready, std::optional<std::int64_t> enough_since_ms = {}, std::int64_t last_join_ms = 0) {
  return {.ready = ready, .enough_since_ms = enough_since_ms, .last_join_ms = last_join_ms};
}

// The view of a later round that forms since 0. No node has joined for long.
FormingView left_over(int ready, int previous_size) {
  return {
      .ready = ready, .again = true, .previous_size = previous_size, .enough_since_ms = 0, .last_join_ms = -100'000};
}

void check_waits(const FormingDecision& decision, std::optional<std::int64_t> look_again_ms) {
  CHECK(decision.kind == Kind::kWait);
  CHECK(decision.look_again_ms == look_again_ms);
}

void check_forms(const FormingDecision& decision, int size) {
  CHECK(decision.kind == Kind::kForm);
  CHECK(decision.size == size);
  CHECK(!decision.look_again_ms);
}

}  // namespace

TEST_CASE("a round's size is a multiple of the unit between minimum and maximum, or none") {
  CHECK(round_size(0, nodes(1, 4)) == 0);
  CHECK(round_size(3, nodes(1, 4)) == 3);
  CHECK(round_size(9, nodes(1, 4)) == 4);
  CHECK(round_size(10, nodes(8, 12, 4)) == 8);
  CHECK(round_size(12, nodes(8, 12, 4)) == 12);
  CHECK(round_size(100, nodes(8, 15, 4)) == 12);
  CHECK(round_size(7, nodes(8, 12, 4)) == 0);
  CHECK(round_size(-1, nodes(1, 4)) == 0);
  // The minimum is rounded up: with DLRover 3 nodes and a unit of 4 make a round of no nodes.
  CHECK(least_size(nodes(3, 8, 4)) == 4);
  CHECK(round_size(3, nodes(3, 8, 4)) == 0);
  CHECK(round_size(4, nodes(3, 8, 4)) == 4);
  CHECK(least_size(nodes(2'000'000'000, 2'000'000'000, 1)) == 2'000'000'000);
}

TEST_CASE("below the minimum the last call says nothing, and the join timeout is waited for") {
  FormingRules rules = nodes(3, 3);
  rules.last_call_ms = 500;
  check_waits(decide_forming(joined(2), rules, 1000), 600'000);
}

TEST_CASE("the maximum forms the round at once") {
  check_forms(decide_forming(joined(3, 0), nodes(3, 3), 0), 3);
  check_forms(decide_forming(joined(5, 0), nodes(1, 3), 0), 3);
}

TEST_CASE("a maximum that is no multiple of the unit counts rounded down") {
  check_forms(decide_forming(joined(8, 0), nodes(4, 11, 4), 0), 8);
}

TEST_CASE("with the minimum there the round forms when the last call is over") {
  FormingRules rules = nodes(2, 3);
  rules.last_call_ms = 100;
  check_waits(decide_forming(joined(2, 20), rules, 119), 120);
  check_forms(decide_forming(joined(2, 20), rules, 120), 2);
}

TEST_CASE("nodes above a multiple of the unit are on standby after the last call") {
  FormingRules rules = nodes(8, 12, 4);
  rules.last_call_ms = 100;
  check_forms(decide_forming(joined(10, 0), rules, 200), 8);
}

TEST_CASE("further joins do not restart the last call") {
  // With DLRover nodes that join one after the other delay the round for ever.
  FormingRules rules = nodes(2, 100);
  for (int ready = 2; ready < 32; ++ready) {
    const std::int64_t now_ms = (ready - 2) * 1000;
    check_waits(decide_forming(joined(ready, 0, now_ms), rules, now_ms), 30'000);
  }
  check_forms(decide_forming(joined(32, 0, 30'000), rules, 30'000), 32);
}

TEST_CASE("a node that is gone before the round forms is not counted") {
  check_waits(decide_forming(joined(1), nodes(2, 2), 10), 600'000);
}

TEST_CASE("without the minimum the join timeout ends the wait, and the reason has the numbers") {
  const FormingRules rules = nodes(3, 4);
  check_waits(decide_forming(joined(2), rules, 599'999), 600'000);
  const FormingDecision decision = decide_forming(joined(2), rules, 600'000);
  CHECK(decision.kind == Kind::kGiveUp);
  CHECK(decision.reason == "gave up after 600 s: 2 nodes, 3 required");
  FormingRules units = nodes(3, 8, 4);
  units.join_timeout_ms = 1500;
  CHECK(decide_forming(joined(3), units, 1500).reason == "gave up after 1.5 s: 3 nodes, 4 required");
}

TEST_CASE(
    "where nobody else can come a later round below the minimum is given up at once, and the first waits as ever") {
  FormingRules rules = nodes(2, 3);
  rules.replacement_wait_ms = 0;
  const FormingDecision decision = decide_forming(left_over(1, 2), rules, 0);
  CHECK(decision.kind == Kind::kGiveUp);
  CHECK(decision.reason == "1 node, 2 required; not waiting for a replacement");
  check_waits(decide_forming(joined(1), rules, 10), 600'000);
  FormingView late = left_over(1, 2);
  late.awaited = 1;  // the node may come back
  check_waits(decide_forming(late, rules, 0), {});
  FormingView in_a_moment = left_over(1, 2);
  in_a_moment.back_by_ms = 3000;
  check_waits(decide_forming(in_a_moment, rules, 10), 3000);
  CHECK(decide_forming(in_a_moment, rules, 3000).kind == Kind::kGiveUp);
  check_forms(decide_forming(left_over(2, 3), rules, 0), 2);  // enough nodes are ready, with the standby nodes
}

TEST_CASE("the join timeout does not end a round that waits for its last call") {
  FormingRules rules = nodes(2, 4);
  rules.join_timeout_ms = 1000;
  check_waits(decide_forming(joined(2, 900), rules, 5000), 30'900);
}

TEST_CASE("nothing forms, and nothing is given up, while a node of the last round may still run") {
  FormingView view = left_over(4, 5);
  view.awaited = 1;
  check_waits(decide_forming(view, nodes(1, 4), 0), {});
  check_waits(decide_forming(view, nodes(5, 5), 10'000'000), {});
}

TEST_CASE("survivors that are enough form the next round at once") {
  check_forms(decide_forming(left_over(3, 4), nodes(2, 4), 0), 3);
  check_forms(decide_forming(left_over(3, 4), nodes(2, 4, 2), 0), 2);
  FormingView view = left_over(3, 4);
  view.last_join_ms = 10;  // other nodes may follow, but are not waited for
  check_forms(decide_forming(view, nodes(2, 8), 10), 3);
}

TEST_CASE("a grace lets a smaller round wait for replacements") {
  FormingRules rules = nodes(2, 8);
  rules.grace_ms = 5000;
  check_waits(decide_forming(left_over(3, 4), rules, 4999), 5000);
  check_forms(decide_forming(left_over(3, 4), rules, 5000), 3);
  check_forms(decide_forming(left_over(4, 4), rules, 1), 4);
  FormingView half = left_over(5, 6);  // a round of 4 leaves one node
  check_waits(decide_forming(half, {.min_nodes = 2, .max_nodes = 8, .node_unit = 2, .grace_ms = 5000}, 1), 5000);
  // Nodes that the last round had above the present maximum are not waited for.
  check_forms(decide_forming(left_over(3, 4), {.min_nodes = 2, .max_nodes = 3, .grace_ms = 5000}, 1), 3);
}

TEST_CASE("survivors below the minimum form a round when replacements have settled, or the maximum is there") {
  const FormingRules rules = nodes(4, 6);
  FormingView view = left_over(3, 4);
  view.was_below_min = true;
  view.enough_since_ms.reset();
  check_waits(decide_forming(view, rules, 10), 600'000);
  view.ready = 4;
  view.enough_since_ms = 20'000;
  view.last_join_ms = 20'000;
  check_waits(decide_forming(view, rules, 20'000), 21'000);
  view.ready = 5;
  view.last_join_ms = 20'900;
  check_waits(decide_forming(view, rules, 21'000), 21'900);
  check_forms(decide_forming(view, rules, 21'900), 5);
  view.ready = 6;
  check_forms(decide_forming(view, rules, 21'000), 6);
}

TEST_CASE("replacements that make fewer than the last round are given the rest of the grace") {
  FormingRules rules = nodes(2, 8);
  rules.grace_ms = 60'000;
  FormingView view = left_over(2, 4);
  view.was_below_min = true;
  view.last_join_ms = 10'000;
  check_waits(decide_forming(view, rules, 12'000), 60'000);
  view.ready = 4;
  check_forms(decide_forming(view, rules, 12'000), 4);
  // When the grace is over, the time in which other newcomers may follow the last one still holds.
  view.ready = 3;
  view.last_join_ms = 70'000;
  check_waits(decide_forming(view, rules, 70'500), 71'000);
}

TEST_CASE("survivors below the minimum give up after the join timeout, counted from when the round was lost") {
  FormingView view = left_over(2, 3);
  view.was_below_min = true;
  view.enough_since_ms.reset();
  view.since_ms = 50'000;
  check_waits(decide_forming(view, nodes(3, 3), 649'999), 650'000);
  const FormingDecision decision = decide_forming(view, nodes(3, 3), 650'000);
  CHECK(decision.kind == Kind::kGiveUp);
  CHECK(decision.reason == "gave up after 600 s: 2 nodes, 3 required");
}

TEST_CASE("every decision is allowed by the rules, and no wait is without an end") {
  elastic::TestRandom random(7);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  for (int i = 0; i < 30'000; ++i) {
    FormingRules rules;
    rules.node_unit = static_cast<int>(1 + below(4));
    rules.min_nodes = static_cast<int>(1 + below(6));
    rules.max_nodes = std::max(least_size(rules), rules.min_nodes + static_cast<int>(below(6)));
    rules.last_call_ms = below(50);
    rules.join_timeout_ms = 1 + below(100);
    rules.grace_ms = below(2) * below(60);
    rules.settle_ms = below(20);
    FormingView view;
    view.ready = static_cast<int>(below(14));
    view.awaited = below(4) == 0 ? static_cast<int>(below(3)) : 0;
    view.again = below(2) == 0;
    view.previous_size = view.again ? round_size(least_size(rules) + static_cast<int>(below(8)), rules) : 0;
    view.since_ms = below(100);
    const int size = round_size(view.ready, rules);
    if (size > 0) view.enough_since_ms = view.since_ms + below(50);
    view.last_join_ms = below(150);
    view.was_below_min = view.again && below(2) == 0;
    const std::int64_t now_ms = below(300);

    CAPTURE(i);
    const FormingDecision decision = decide_forming(view, rules, now_ms);
    REQUIRE(!decision.reason.empty());
    switch (decision.kind) {
      case Kind::kForm:
        REQUIRE(view.awaited == 0);
        REQUIRE(decision.size == size);
        REQUIRE(decision.size >= rules.min_nodes);
        REQUIRE(decision.size <= std::min(rules.max_nodes, view.ready));
        REQUIRE(decision.size % rules.node_unit == 0);
        REQUIRE(decide_forming(view, rules, now_ms + 1).kind == Kind::kForm);
        break;
      case Kind::kGiveUp:
        REQUIRE(view.awaited == 0);
        REQUIRE(size == 0);
        REQUIRE(now_ms >= view.since_ms + rules.join_timeout_ms);
        break;
      case Kind::kWait:
        REQUIRE(decision.look_again_ms.has_value() == (view.awaited == 0));
        if (!decision.look_again_ms) break;
        REQUIRE(size != round_size(rules.max_nodes, rules));
        REQUIRE(*decision.look_again_ms > now_ms);
        REQUIRE(decide_forming(view, rules, *decision.look_again_ms - 1).kind == Kind::kWait);
        REQUIRE(decide_forming(view, rules, *decision.look_again_ms).kind != Kind::kWait);
        break;
    }
  }
}
