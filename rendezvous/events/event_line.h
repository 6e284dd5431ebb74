#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/json.h"

namespace elastic::events {

// Makes the lines of --events: each event with the job, the node and the round to which it belongs. A round begins with
// its event round_prepared.
class EventLines {
 public:
  struct Launch {
    std::string job;
    std::string host;
    std::int64_t launcher = 0;  // its process number, in its own PID namespace
  };
  struct Moment {
    std::int64_t unix_us = 0;       // microseconds since 1970
    std::int64_t monotonic_ms = 0;  // milliseconds of a clock of this host that is never set
  };
  explicit EventLines(Launch launch) : launch_(std::move(launch)) {}

  // One line of JSON with its newline, at most limits::kEventLineBytes: where it would be longer its texts are cut and
  // the member `cut` says so. `fields` is an object.
  std::string line(std::string_view level, std::string_view event, std::string_view text, const Json& fields,
                   Moment moment);

 private:
  Launch launch_;
  Json node_rank_;  // null before the first round
  Json round_;
  Json restart_count_;
};

}  // namespace elastic::events
