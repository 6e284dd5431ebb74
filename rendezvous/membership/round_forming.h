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
  std::int64_t join_timeout_ms = 600'000;                // how long any round waits for the minimum,
  std::optional<std::int64_t> replacement_wait_ms = {};  // and how long a later one does, if that is another time
  std::int64_t grace_ms = 0;      // how long a later round waits to be as large as the one before
  std::int64_t settle_ms = 1000;  // how long newcomers that come together may lie apart
};

// How many of `ready` nodes form a round: no more than the maximum, a multiple of the unit; 0 if that is less than
// the minimum. (A maximum that holds no multiple of the unit from the minimum on never gives a round:
// refused before.)
int round_size(int ready, const FormingRules& rules);

// The fewest nodes of a round: the minimum, rounded up to the unit.
int least_size(const FormingRules& rules);

// How far the next round is.
struct FormingView {
  int ready = 0;          // nodes that could be in it at once
  int awaited = 0;        // of the last round, still stopping, or lost while their lease may run: none forms before 0
  bool again = false;     // there was a round before
  int previous_size = 0;  // of the last round
  std::int64_t since_ms = 0;  // when forming began: the first node's join, or the end of the last round
  // Since when round_size(ready) has been above 0. Given whenever it is above 0.
  std::optional<std::int64_t> enough_since_ms;
  std::int64_t last_join_ms = 0;  // when a node came that was not in the last round
  // A later round: since it began to form there was a moment at which nobody was awaited and round_size(ready)
  // was 0, so that it depends on newcomers, of whom more may be on their way.
  bool was_below_min = false;
  std::int64_t back_by_ms = 0;  // a node that was ready and has lost its connection is back by then, if ever
};

struct FormingDecision {
  enum class Kind : std::uint8_t { kWait, kForm, kGiveUp };
  Kind kind = Kind::kWait;
  int size = 0;                               // kForm: of the round
  std::optional<std::int64_t> look_again_ms;  // kWait: decide again then, or when the view changes
  std::string reason;                         // always; a clause. kGiveUp: why the job ends
};

// The first round forms as soon as the maximum is there, or the last call after the minimum is (further joins do not
// restart it: torchrun's rule, not DLRover's). A later one forms as soon as all survivors have stopped,
// if they are enough; if they were fewer than the minimum, when replacements have come and no other has for
// settle_ms. With a grace it waits for so long to be as large as the one before. Below the minimum
// join_timeout ends the wait, or replacement_wait that of a later round, which ends not before back_by.
FormingDecision decide_forming(const FormingView& view, const FormingRules& rules, std::int64_t now_ms);

}  // namespace elastic::membership
