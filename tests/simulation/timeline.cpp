#include "tests/simulation/timeline.h"

#include <algorithm>
#include <utility>

namespace elastic::simulation {

void Timeline::at(Ms when_ms, Action action) {
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(actions_.size());
    actions_.push_back(std::move(action));
  } else {
    slot = free_.back();
    free_.pop_back();
    actions_[slot] = std::move(action);
  }
  heap_.push_back({std::max(when_ms, now_ms_), planned_++, slot});
  std::ranges::push_heap(heap_, Later{});
}

bool Timeline::step() {
  if (heap_.empty()) return false;
  std::ranges::pop_heap(heap_, Later{});
  const Entry next = heap_.back();
  heap_.pop_back();
  now_ms_ = next.at_ms;
  ++steps_;
  Action action = std::move(actions_[next.slot]);
  free_.push_back(next.slot);
  action();
  return true;
}

}  // namespace elastic::simulation
