#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "health/hang/hang_picture.h"
#include "health/hang/hang_verdict.h"
#include "health/hang/hang_watch.h"
#include "src/base/json.h"

// What is told of a hang. All texts are printable.
namespace elastic::hang {

// Ranks that stand at the same place in the same state.
struct RankGroup {
  RankRuns ranks = {};
  ThreadState state = ThreadState::kUnknown;
  std::string wchan = {};        // of the first rank
  std::string operation = {};    // the collective that they are in; empty: none, or unknown
  std::int64_t number = 0;       // of that in its group, by the flight recorder; 0: unknown
  const Stack* stack = nullptr;  // null: unknown. The picture owns it
  const Stack* child_stack = nullptr;
  bool is_odd = false;  // the verdict says to look at it first
};

// The odd ones first, and then the smallest. Ranks without facts are one group.
std::vector<RankGroup> rank_groups(const HangPicture& picture, const HangVerdict& verdict);

// What the report says beside the verdict.
struct HangStory {
  std::int64_t silent_ms = 0;
  Limit limit = {};
  std::string section = {};        // whose limit it is; empty: it is that of no section
  std::int32_t section_rank = -1;  // who is in it, and has been silent the longest; -1: not known
  Phase phase = Phase::kUnknown;
  std::int64_t longest_gap_ms = 0;  // before; 0: none was seen
  std::string last_line = {};       // the last line that was progress; empty: none was
  std::int32_t last_rank = -1;      // whose it was
  std::string evidence = {};        // where the files are
  std::string action = {};          // what is done now, as a clause; empty: nothing
};

// For the screen: the cause first, then the groups, then where the files are. Each line ends with a line end.
std::string hang_screen(const HangPicture& picture, const HangVerdict& verdict, const HangStory& story);

// The object "hang" of failure.json, with so many groups at most.
Json hang_json(const HangPicture& picture, const HangVerdict& verdict, const HangStory& story,
               std::size_t most_groups = bounds::kGroupsShown);

}  // namespace elastic::hang
