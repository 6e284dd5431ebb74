#include "health/timers/timer_table.h"

#include <algorithm>
#include <iterator>

#include "health/timers/limits.h"
#include "src/base/json.h"

namespace elastic::timers {
namespace {

constexpr std::size_t kMostLevels = 2;
constexpr std::size_t kMostMembers = 16;
// Of Linux, the real-time ones included.
constexpr std::int64_t kLastSignal = 64;
// The year 9999: a timer that expires later never does.
constexpr double kLatestSeconds = 253'402'300'799;
// How PyTorch's client begins each request.
constexpr std::string_view kBegin = "{\"version\"";

std::optional<TimerRequest> read_whole(std::string_view text) {
  if (!json_over_bounds(text, kMostLevels, kMostMembers).empty()) return {};
  const auto json = Json::parse(text, "a timer");
  if (!json) return {};
  const auto number = [&](std::string_view name) -> std::optional<std::int64_t> {
    const Json* member = json->find(name);
    return member == nullptr ? std::nullopt : member->as_integer();
  };
  const auto pid = number("pid");
  const auto signal = number("signal");
  const std::string* scope = json->find_text("scope_id");
  const Json* time = json->find("expiration_time");
  const auto seconds = time == nullptr ? std::nullopt : time->as_number();
  if (!pid || *pid <= 0 || *pid > INT32_MAX || !signal || *signal > kLastSignal || !scope || !seconds) return {};
  TimerRequest request{.pid = *pid, .scope = *scope, .signal = static_cast<int>(std::max<std::int64_t>(*signal, 0))};
  if (*seconds >= 0) request.expires_ms = static_cast<std::int64_t>(std::min(*seconds, kLatestSeconds) * 1000);
  return request;
}

}  // namespace

std::optional<TimerRequest> read_timer_request(std::string_view line) {
  if (line.size() > limits::kFileTimerLineBytes) return {};
  if (auto request = read_whole(line)) return request;
  const std::size_t begin = line.rfind(kBegin);
  if (begin == std::string_view::npos || begin == 0) return {};
  return read_whole(line.substr(begin));
}

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
