#pragma once

#include <cstdint>
#include <optional>

namespace elastic::coordinator {

// The time of a coordinator: when the present event came, whether this process was stopped or the machine suspended
// before it, and when the coordinator is to look again if nothing happens. Times are milliseconds of its clock.
class EventClock {
 public:
  explicit EventClock(std::int64_t now_ms) : before_ms_(now_ms), now_ms_(now_ms) {}

  // An event comes. Time never goes back.
  void event_comes(std::int64_t now_ms);
  // Called after event_comes(). `due_ms` is given for the coordinator's timer: when it was due.
  void notice_sleep(std::optional<std::int64_t> due_ms);
  // When the present event came.
  std::int64_t now_ms() const { return now_ms_; }
  // When everything that arrived during the last sleep has been read: before that no node is to be declared lost. 0 or
  // in the past: there was no sleep lately.
  std::int64_t caught_up_ms() const { return caught_up_ms_; }

  // What was waited for is decided anew.
  void wait_for_nothing() { look_again_ms_.reset(); }
  // The coordinator decides again at that time, if it is not empty and no earlier one was given.
  void look_again(std::optional<std::int64_t> when_ms);
  // Empty: nothing is waited for.
  std::optional<std::int64_t> look_again_ms() const { return look_again_ms_; }

 private:
  std::int64_t before_ms_;  // when the previous event came
  std::int64_t now_ms_;
  std::int64_t caught_up_ms_ = 0;
  std::optional<std::int64_t> look_again_ms_;
};

}  // namespace elastic::coordinator
