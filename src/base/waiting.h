#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace elastic {

// Something that is waited for, as the user is told of it. Times are milliseconds of a monotonic clock.
struct Waiting {
  std::string what;  // "waiting for 2 workers to end (ranks 0, 3)"
  std::int64_t since_ms = 0;
  std::optional<std::int64_t> until_ms = {};  // the end of patience
  std::string at_end = {};      // what happens then to what is waited for: "killed"; empty: the wait fails
  std::string because = {};     // why it is waited for, as a clause: "node 1 was lost: its connection was reset"
  std::int64_t because_ms = 0;  // when that was
  std::string hint = {};        // what the user at the terminal can do about it
  bool by_user = false;         // the user has asked for it, and looks on
  bool unusual = false;         // in a log, where it takes long, worth a warning
  bool for_others = false;      // other nodes are waited for: in a log told at every level, since nothing else says it
};

}  // namespace elastic
