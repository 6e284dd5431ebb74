#include "rendezvous/coordinator/transferred_state.h"

#include <doctest/doctest.h>

#include "rendezvous/coordinator/limits.h"
#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/test_messages.h"
#include "src/base/limits.h"

using namespace elastic;
using namespace elastic::coordinator;
using protocol::Crash;
using protocol::JobRules;
using protocol::Transferred;
using Taken = StateTransfer::Taken;

namespace {

constexpr protocol::JobTerms kTerms{.min_nodes = 2, .max_nodes = 8, .node_unit = 1, .max_restarts = 5};

TransferredState whole() {
  return {.rules = {.join_timeout_ms = 44'000, .scale_up = JobRules::ScaleUp::kNever, .node_losses = 2},
          .check = {.when = health::CheckRules::When::kFirst},
          .first_size = 6,
          .restarts_used = 4,
          .losses = 9,
          .crash = CrashLoop::Attempt{3, {Crash::Kind::kSyntax, 0xC8A54}},
          .hosts = {{"node-1", 1, 1'000'000, 300'000, 1'200'000}, {"node-2", 1, 900'000, 0, 0}},
          .evicted = {{"node-7"}, {"node-8", true}},
          .more = std::string("\x00\xff later", 8)};
}

// A coordinator's parts. Its clock shows 5 s when it is `unix_ms`.
struct Parts {
  explicit Parts(std::int64_t with_unix_ms) : unix_ms(with_unix_ms) {}
  operator TransferredParts() { return {settings, check, hang, 5000, unix_ms}; }

  std::int64_t unix_ms;
  JobSettings settings = settings_of(kTerms, {}, {});
  RoundCheck check = RoundCheck(health::no_check());
  HangDesk hang;
  StateTransfer state_transfer;
};

}  // namespace

TEST_CASE("a transferred state is the same after it was read") {
  CHECK(decode(encode(whole())) == whole());
  CHECK(decode(encode({})) == TransferredState{});
}

TEST_CASE("a later version may append to a state, and an earlier one may have had less") {
  const std::string bytes = encode(whole());
  CHECK(decode(bytes + "more fields") == whole());
  TransferredState without = whole();
  without.more.clear();
  std::string shorter = encode(without);
  shorter.resize(shorter.size() - 4);  // the length of `more`
  CHECK(decode(shorter) == without);
}

TEST_CASE("a state of many hosts with long names is within its bound, and the last of them are left out") {
  TransferredState state = whole();
  state.more.assign(limits::kTransferredMoreBytes, 'm');
  state.hosts.clear();
  state.evicted.clear();
  for (std::size_t i = 0; i < limits::kTransferredHosts; ++i) {
    state.hosts.push_back({.name = std::string(limits::kAgentNameBytes, 'a')});
    state.evicted.push_back({std::string(limits::kAgentNameBytes, 'b')});
  }
  state.hosts.front().losses = 7;
  const std::string bytes = encode(state);
  CHECK(bytes.size() <= limits::kTransferredBytes);
  CHECK(bytes.size() > limits::kTransferredBytes - 2 * limits::kAgentNameBytes);
  const auto read = decode(bytes);
  REQUIRE(read.has_value());
  CHECK(read->more == state.more);
  CHECK(read->hosts.front() == state.hosts.front());
  CHECK(read->evicted.size() >= 20);
}

TEST_CASE("a coordinator takes over the state that another one transfers, by its own clock") {
  Parts first(2'000'000);
  first.settings = settings_of(kTerms, {.join_timeout_ms = 44'000, .node_losses = 1}, {.excludes_stragglers = true});
  first.settings.first_size = 3;
  first.settings.budgets.restarts.set_used(2);
  first.settings.budgets.losses.count_loss();
  first.settings.budgets.losses.charge("node-1", 4000);
  first.settings.budgets.crash_loop.failed(Crash{Crash::Kind::kImport, 1}, 1);
  first.check.evict_host("node-7", Eviction::kUnhealthy);
  first.check.evict_host("node-8", Eviction::kHung);
  const Transferred transferred = first.state_transfer.give(1, first);

  Parts second(2'100'000);  // 100 s later
  REQUIRE(second.state_transfer.adopt_state(transferred, second) == Taken::kNew);
  CHECK(second.settings.rules == first.settings.rules);
  CHECK(second.settings.check == first.settings.check);
  CHECK(second.settings.terms == kTerms);
  CHECK(second.settings.first_size == 3);
  CHECK(second.settings.budgets.restarts.used() == 2);
  CHECK(second.settings.budgets.restarts.limit() == 5);
  CHECK(second.settings.budgets.losses.losses() == 1);
  CHECK(second.settings.budgets.losses.quarantined_until("node-1", 5000) == 4000 + 300'000 - 100'000);
  CHECK(second.settings.budgets.losses.charge("node-1", 5000) ==
        5000 + 600'000);  // the second time it is twice as long
  CHECK(second.settings.budgets.crash_loop.failed(Crash{Crash::Kind::kImport, 1}, 2) == 1);
  CHECK(second.check.eviction_of("node-7") == Eviction::kUnhealthy);
  CHECK(second.check.eviction_of("node-8") == Eviction::kHung);
}

TEST_CASE("counts of lost nodes that were not quarantined go on") {
  Parts first(2'000'000);
  first.settings.budgets.losses.charge("node-1", 4000);
  first.settings.budgets.losses.charge("node-1", 4500);
  Parts second(2'001'000);
  REQUIRE(second.state_transfer.adopt_state(first.state_transfer.give(1, first), second) == Taken::kNew);
  CHECK(!second.settings.budgets.losses.quarantined_until("node-1", 5000));
  CHECK(second.settings.budgets.losses.charge("node-1", 5000) == 5000 + 300'000);  // the third loss
}

TEST_CASE("of several states the newest holds, and each later coordinator's are newer") {
  StateTransfer state_transfer;
  Parts parts(2'000'000);
  const std::uint64_t first = state_transfer.give(1, parts).number;
  const std::uint64_t second = state_transfer.give(1, parts).number;
  CHECK(first > 0);
  CHECK(second > first);
  CHECK(StateTransfer().give(2, parts).number > second);

  TransferredState state = whole();
  REQUIRE(parts.state_transfer.adopt_state({7, encode(state)}, parts) == Taken::kNew);
  state.rules.join_timeout_ms = 1000;
  REQUIRE(parts.state_transfer.adopt_state({6, encode(state)}, parts) == Taken::kKnown);
  CHECK(parts.settings.rules.join_timeout_ms == 44'000);
  REQUIRE(parts.state_transfer.adopt_state({8, encode(state)}, parts) == Taken::kNew);
  CHECK(parts.settings.rules.join_timeout_ms == 1000);
}

TEST_CASE("what later versions transfer is passed on as it is") {
  Parts parts(2'000'000);
  REQUIRE(parts.state_transfer.adopt_state({7, encode(whole())}, parts) == Taken::kNew);
  const auto passed_on = decode(parts.state_transfer.give(2, parts).state);
  REQUIRE(passed_on.has_value());
  CHECK(passed_on->more == whole().more);
}

TEST_CASE(
    "what is known of hangs is transferred beside what later versions transfer, and an alarm gets older on the way") {
  TransferredMore more{.hang = TransferredHang{.record = {.state = hang::HangState::kCollecting,
                                                          .silent_ms = 1'000,
                                                          .has_beat = true,
                                                          .has_been_armed = true},
                                               .round = 3,
                                               .unix_ms = 1'999'000},
                       .more = "later"};
  more.hang->record.learned.learn(hang::Phase::kTrain, 20'000);
  CHECK(decode_more(encode_more(more)) == more);
  CHECK_FALSE(decode_more("\xff"));

  TransferredState state = whole();
  state.rules.hang = JobRules::Hang::kReport;
  state.more = encode_more(more);
  Parts parts(2'000'000);
  REQUIRE(parts.state_transfer.adopt_state({7, encode(state)}, parts) == Taken::kNew);
  const auto passed_on = decode(parts.state_transfer.give(2, parts).state);
  REQUIRE(passed_on.has_value());
  const auto read = decode_more(passed_on->more);
  REQUIRE((read && read->hang));
  CHECK(read->more == "later");
  CHECK(read->hang->record.silent_ms == 2'000);
  CHECK(read->hang->record.learned == more.hang->record.learned);
  CHECK(read->hang->round == 3);
}

TEST_CASE("bytes that are no state change nothing") {
  Parts parts(2'000'000);
  CHECK(parts.state_transfer.adopt_state({7, ""}, parts) == Taken::kUnreadable);
  CHECK(parts.state_transfer.adopt_state({7, "\xff"}, parts) == Taken::kUnreadable);
  CHECK(parts.settings.rules == JobRules{});
  CHECK(parts.state_transfer.adopt_state({6, encode(whole())}, parts) == Taken::kNew);
  CHECK(parts.settings.rules == whole().rules);
  CHECK(parts.state_transfer.adopt_state({}, parts) == Taken::kKnown);  // there is none
}

TEST_CASE("whatever numbers are transferred, they are brought within their bounds") {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t number : {kLeast, std::int64_t{-1}, kMost}) {
    const int small = number == kMost ? std::numeric_limits<int>::max() : std::numeric_limits<int>::min();
    TransferredState state = whole();
    state.first_size = state.restarts_used = state.losses = small;
    state.rules.join_timeout_ms = state.rules.quarantine_ms = state.rules.loss_window_ms = number;
    state.rules.node_losses = 1'000'000;
    state.hosts = {{"node-1", small, number, number, number}};
    Parts parts(2'000'000);
    REQUIRE(parts.state_transfer.adopt_state({1, encode(state)}, parts) == Taken::kNew);
    CHECK(parts.settings.first_size >= kTerms.min_nodes);
    CHECK(parts.settings.first_size <= kTerms.max_nodes);
    CHECK(parts.settings.budgets.restarts.used() >= 0);
    CHECK(parts.settings.budgets.losses.losses() >= 0);
    parts.settings.budgets.losses.charge("node-1", 5000);
    CHECK(parts.settings.budgets.losses.quarantined_until("node-1", 5000).value_or(5000) >= 5000);
    REQUIRE(decode(parts.state_transfer.give(2, parts).state).has_value());
  }
}

TEST_CASE("a state with any byte changed, or cut off anywhere, does no harm") {
  const std::string bytes = encode(whole());
  protocol::test::Dice dice(24);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Parts cut(2'000'000);
    cut.state_transfer.adopt_state({1, bytes.substr(0, at)}, cut);
    std::string changed = bytes;
    changed[at] = static_cast<char>(dice.number());
    Parts parts(2'000'000);
    if (parts.state_transfer.adopt_state({1, changed}, parts) == Taken::kUnreadable) continue;
    parts.settings.budgets.losses.charge("node-1", 5000);
    CHECK(decode(parts.state_transfer.give(2, parts).state).has_value());
  }
}
