#include "health/timers/timer_request.h"

#include <algorithm>
#include <cstddef>

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

}  // namespace elastic::timers
