#pragma once

#include <cstdint>
#include <optional>
#include <string>

// When a round begins, and with how many nodes. Times are milliseconds of one clock that does not jump.
namespace elastic::membership {

// 1 <= min_nodes <= max_nodes, 1 <= node_unit (less than 1 counts as 1).
struct FormingRules {
  int min_nodes = 1;
  int max_nodes = 1;
  int node_unit = 1;                                     // a round has a multiple of so many nodes
  std::int64_t last_call_ms = 30'000;                    // how long the first round waits for more than the minimum
  std::int64_t join_timeout_ms = 600'000;                // how long a round waits for the minimum of nodes
  std::optional<std::int64_t> replacement_wait_ms = {};  // the same of a later round; empty: join_timeout_ms
  std::int64_t grace_ms = 0;                             // how long a later round waits for the size of the last one
  std::int64_t settle_ms = 1000;                         // after a newcomer, how long others are waited for
};

// How many of `ready` nodes form a round: at most the maximum, a multiple of the unit; 0 if that is less than the
// minimum. (If no multiple of the unit lies between minimum and maximum there is never a round; the command line
// refuses that.)
int round_size(int ready, const FormingRules& rules);

// The fewest nodes of a round: the minimum, rounded up to the unit.
int least_size(const FormingRules& rules);

// The state of the round that is forming.
struct FormingView {
  int ready = 0;              // nodes that could be in it at once
  int awaited = 0;            // nodes of the last round whose workers may still run: no round forms until it is 0
  bool again = false;         // this is not the first round
  int previous_size = 0;      // how many nodes the last round had
  std::int64_t since_ms = 0;  // when forming began: the first node's join, or the end of the last round
  // Since when round_size(ready) has been above 0. Given whenever it is above 0.
  std::optional<std::int64_t> enough_since_ms;
  std::int64_t last_join_ms = 0;  // when a node came that was not in the last round
  // Of a later round: at some moment no node was awaited and round_size(ready) was 0. Then the round depends on
  // newcomers, of which more may be on their way.
  bool was_below_min = false;
  std::int64_t back_by_ms = 0;  // by then a waiting node that has lost its connection has come back, if it does
};

// The reason begins so where too few nodes have come in time.
inline constexpr const char* kGaveUp = "gave up";

struct FormingDecision {
  enum class Kind : std::uint8_t { kWait, kForm, kGiveUp };
  Kind kind = Kind::kWait;
  int size = 0;                               // kForm: how many nodes the round has
  std::optional<std::int64_t> look_again_ms;  // kWait: decide again then, or when the view changes
  std::string reason;                         // always set, as a clause; with kGiveUp it says why the job ends
};

// The first round forms as soon as the maximum of nodes has joined, or when the last call is over, which begins with
// the minimum (further joins do not restart it: that is torchrun's rule, not DLRover's). A later round forms as soon as
// all survivors have stopped, if they are enough. If they were fewer than the minimum, it forms when replacements have
// joined and none has joined for settle_ms. With a grace it waits so long for the size of the last round. Below the
// minimum the wait ends after join_timeout_ms; that of a later round after replacement_wait_ms, but not before
// back_by_ms.
FormingDecision decide_forming(const FormingView& view, const FormingRules& rules, std::int64_t now_ms);

}  // namespace elastic::membership
