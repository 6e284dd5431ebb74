#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/waiting.h"

namespace elastic::output {

// "29 s", "2 m 10 s", "1 h 5 m"; in whole seconds, rounded down.
std::string duration_text(std::int64_t milliseconds);

// The text for a terminal, fewer than `columns` of ASCII: "elastic-run: waiting for 2 workers to end (ranks 0, 3),
// killed in 29 s; press Ctrl-C again to kill them now". Where it is too long the hint is left out first, then the text
// is cut.
std::string status_text(const Waiting& waiting, std::int64_t now_ms, std::size_t columns);

// The text for a log: "waiting for 2 workers to end (ranks 0, 3), for 10 s, killed in 20 s".
std::string waiting_text(const Waiting& waiting, std::int64_t now_ms);

// The status line at the bottom of a terminal. Says which bytes are to be sent to the terminal
// and knows what is shown there; sends nothing itself.
class StatusLine {
 public:
  // Sets what elastic-run waits for from now on; nothing: the line is to be erased.
  void wait_for(std::optional<Waiting> waiting) { waiting_ = std::move(waiting); }
  const std::optional<Waiting>& waiting() const { return waiting_; }

  // The bytes that draw the line as it is to be now, or erase it; empty where nothing changes. May be called only when
  // nothing else is being written to the terminal, whose cursor is at the beginning of a line, or behind our status
  // line. No line is drawn for a wait of less than a second (a quarter of one where the user has asked for it), and on
  // a terminal of fewer than 20 columns.
  std::string draw(std::int64_t now_ms, std::size_t columns);

  // The bytes that erase the line, which have to be sent before anything else; empty where no line is shown.
  std::string erase();
  bool is_drawn() const { return !drawn_.empty(); }

 private:
  std::optional<Waiting> waiting_;
  std::string drawn_;
};

// Says when a wait gets a line in a log: after 10 s, or 3 s if it is for other nodes, then every 30 s.
class WaitLog {
 public:
  // Whether this wait gets a line now.
  bool due(const Waiting& waiting, std::int64_t now_ms);
  // Whether its advice is to be told now: once, after 3 s, or after 1 s where that is at once.
  bool advice_due(const Waiting& waiting, std::int64_t now_ms);

 private:
  std::string advised_;                   // the advice that was told last
  std::optional<std::int64_t> since_ms_;  // when the current wait began
  std::optional<std::int64_t> next_ms_;   // when its next line is due; not set: it has had none
};

}  // namespace elastic::output
