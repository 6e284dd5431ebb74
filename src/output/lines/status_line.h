#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/waiting.h"

namespace elastic::output {

// "29 s", "2 m 10 s", "1 h 5 m"; whole seconds, what is over is left out.
std::string duration_text(std::int64_t milliseconds);

// For a terminal, fewer than `columns` of ASCII: "elastic-run: waiting for 2 workers to end (ranks 0, 3), killed in
// 29 s; press Ctrl-C again to kill them now". Where it is too long the hint goes first, then the end of what is
// waited for.
std::string status_text(const Waiting& waiting, std::int64_t now_ms, std::size_t columns);

// For a log: "waiting for 2 workers to end (ranks 0, 3), for 10 s, killed in 20 s".
std::string waiting_text(const Waiting& waiting, std::int64_t now_ms);

// The one line at the bottom of a terminal that tells what is waited for. Says what is to be sent to the terminal
// and knows what stands there; sends nothing itself.
class StatusLine {
 public:
  // What is waited for from now on; nothing: the line is to go.
  void wait_for(std::optional<Waiting> waiting) { waiting_ = std::move(waiting); }
  const std::optional<Waiting>& waiting() const { return waiting_; }

  // What draws the line as it is to be now, or erases it; empty where it stands there already. For a moment at
  // which nothing else is on its way to the terminal, whose cursor is at the beginning of a line, or behind ours.
  // A wait shorter than a second is not worth it (a quarter where the user looks on), nor is a terminal of less
  // than 20 columns.
  std::string draw(std::int64_t now_ms, std::size_t columns);

  // What has to go before all else that is sent to the terminal: erases the line; empty where there is none.
  std::string erase();
  bool is_drawn() const { return !drawn_.empty(); }

 private:
  std::optional<Waiting> waiting_;
  std::string drawn_;
};

// When a wait is worth a line in a log: after 10 s, then every 30 s.
class WaitLog {
 public:
  // True if this wait is to be told now.
  bool due(const Waiting& waiting, std::int64_t now_ms);

 private:
  std::optional<std::int64_t> since_ms_;  // of the wait that was looked at last
  std::int64_t next_ms_ = 0;
};

}  // namespace elastic::output
