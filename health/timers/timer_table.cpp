#include "health/timers/timer_table.h"

#include <algorithm>
#include <iterator>

#include "health/timers/limits.h"

namespace elastic::timers {

bool TimerTable::note_request(const TimerRequest& request, std::int64_t wall_ms, std::int64_t now_ms) {
  const std::pair<std::int64_t, std::string> key{request.pid, request.scope};
  if (!request.expires_ms) {
    timers_.erase(key);
    return true;
  }
  if (timers_.size() >= limits::kFileTimers && !timers_.contains(key)) return false;
  timers_[key] = {.due_ms = now_ms + (*request.expires_ms - wall_ms), .signal = request.signal};
  return true;
}

std::vector<Expired> TimerTable::take_expired(std::int64_t now_ms) {
  std::vector<Expired> out;
  for (auto begin = timers_.begin(); begin != timers_.end();) {
    const std::int64_t pid = begin->first.first;
    const auto end = std::find_if(begin, timers_.end(), [pid](const auto& each) { return each.first.first != pid; });
    std::optional<Expired> first;
    for (auto at = begin; at != end; ++at) {
      const Timer& timer = at->second;
      if (timer.due_ms > now_ms) continue;
      const bool is_stronger = first && (timer.signal > 0) != (first->signal > 0);
      const bool is_first = !first || (is_stronger ? timer.signal > 0 : timer.due_ms < first->due_ms);
      if (is_first) first = {.pid = pid, .scope = at->first.second, .due_ms = timer.due_ms, .signal = timer.signal};
    }
    if (first) {
      out.push_back(std::move(*first));
      begin = timers_.erase(begin, end);
    } else {
      begin = end;
    }
  }
  return out;
}

std::optional<std::int64_t> TimerTable::next_ms() const {
  if (timers_.empty()) return {};
  return std::ranges::min_element(timers_, {}, [](const auto& each) { return each.second.due_ms; })->second.due_ms;
}

bool TimerTable::has(std::int64_t pid) const {
  const auto found = timers_.lower_bound({pid, std::string()});
  return found != timers_.end() && found->first.first == pid;
}

}  // namespace elastic::timers
