#include "rendezvous/coordinator/sleep_watch.h"

#include <utility>

namespace elastic::coordinator {
namespace {

// Without an event for kAsleepMs, and with its own timer later than kLateMs, this process has slept. What has arrived
// meanwhile is read within kCatchUpMs.
constexpr std::int64_t kAsleepMs = 500;
constexpr std::int64_t kLateMs = 50;
constexpr std::int64_t kCatchUpMs = 250;

}  // namespace

void SleepWatch::event_comes(std::int64_t now_ms, std::optional<std::int64_t> due_ms) {
  const std::int64_t gap_ms = now_ms - std::exchange(event_ms_, now_ms);
  if (gap_ms <= kAsleepMs) return;
  const bool is_in_time = due_ms && now_ms <= *due_ms + kLateMs;
  if (!is_in_time) caught_up_ms_ = now_ms + kCatchUpMs;
}

}  // namespace elastic::coordinator
