#include "rendezvous/coordinator/event_clock.h"

#include <algorithm>

namespace elastic::coordinator {
namespace {

// Without an event for kAsleepMs, and with its own timer later than kLateMs, this process has slept. What has arrived
// meanwhile is read within kCatchUpMs.
constexpr std::int64_t kAsleepMs = 500;
constexpr std::int64_t kLateMs = 50;
constexpr std::int64_t kCatchUpMs = 250;

}  // namespace

void EventClock::event_comes(std::int64_t now_ms) {
  before_ms_ = now_ms_;
  now_ms_ = std::max(now_ms_, now_ms);
}

void EventClock::notice_sleep(std::optional<std::int64_t> due_ms) {
  if (now_ms_ - before_ms_ <= kAsleepMs) return;
  const bool is_in_time = due_ms && now_ms_ <= *due_ms + kLateMs;
  if (!is_in_time) caught_up_ms_ = now_ms_ + kCatchUpMs;
}

void EventClock::look_again(std::optional<std::int64_t> when_ms) {
  if (when_ms && (!look_again_ms_ || *when_ms < *look_again_ms_)) look_again_ms_ = when_ms;
}

}  // namespace elastic::coordinator
