#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace elastic {

// Something that elastic-run waits for, as the user is told about it. Times are milliseconds of a monotonic clock.
struct Waiting {
  std::string what;  // "waiting for 2 workers to end (ranks 0, 3)"
  std::int64_t since_ms = 0;
  std::optional<std::int64_t> until_ms = {};  // when the wait ends at the latest
  std::string at_end = {};      // what happens then to those it waits for: "killed"; empty: the wait fails
  std::string because = {};     // why it waits, as a clause: "node 1 was lost: its connection was reset"
  std::int64_t because_ms = 0;  // when that happened
  std::string hint = {};        // what the user at the terminal can do about it
  std::string advice = {};      // what has to be said once if it lasts, as a sentence without a full stop
  bool advice_at_once = false;  // before the wait itself would be told
  bool by_user = false;         // the user has asked for it, and watches
  bool unusual = false;         // the log has a warning if it takes long
  bool for_others = false;      // it waits for other nodes: the log says so at every level, since nothing else does
};

}  // namespace elastic
