#pragma once

#include <cstdint>
#include <optional>

namespace elastic::coordinator {

// Notices that this process was stopped or the machine suspended. What has arrived meanwhile is to be read before any
// node is declared lost. Times are milliseconds of the coordinator's clock.
class SleepWatch {
 public:
  explicit SleepWatch(std::int64_t now_ms) : event_ms_(now_ms) {}

  // An event comes. `due_ms` is given for the coordinator's timer: when it was due.
  void event_comes(std::int64_t now_ms, std::optional<std::int64_t> due_ms);
  // When everything that arrived during the last sleep has been read. 0 or in the past: there was no sleep lately.
  std::int64_t caught_up_ms() const { return caught_up_ms_; }

 private:
  std::int64_t event_ms_;  // when the previous event came
  std::int64_t caught_up_ms_ = 0;
};

}  // namespace elastic::coordinator
