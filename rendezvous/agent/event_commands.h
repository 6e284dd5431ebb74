#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rendezvous/agent/log_event.h"
#include "src/base/exit_status.h"

namespace elastic::agent {

// The events for which a command can be run.
inline constexpr std::string_view kEventCommandKinds[] = {"node_lost", "node_unfit", "node_kept_out", "job_ends"};

// Decides for which events the command of --on-event is run, when, and what is told of it: some at once, some wait, and
// what comes beyond is dropped and counted.
class EventCommands {
 public:
  // An event's command is to be run, with its line on stdin. ended() is to be told of its number.
  struct Run {
    std::uint32_t number = 0;
    std::string line;
  };
  using Effect = std::variant<Run, LogEvent>;
  using Effects = std::vector<Effect>;

  // How a command has ended.
  struct End {
    ExitStatus status = {};
    std::optional<std::int64_t> killed_after_s = {};  // it did not end by itself, and `status` says nothing
    std::string why_not_started = {};                 // empty: it was started
    std::string output = {};                          // the end of it
  };

  explicit EventCommands(std::set<std::string> kinds) : kinds_(kinds.begin(), kinds.end()) {}

  Effects heard(std::string_view event, const std::string& line);
  Effects ended(std::uint32_t number, const End& end);
  // None can be run any more, says the clause.
  Effects broken(const std::string& why);
  // The launcher ends, and waits no longer: what is left is killed.
  Effects given_up();

  bool is_idle() const { return running_.empty() && waiting_.empty(); }

 private:
  struct Waiting {
    std::string event;
    std::string line;
  };
  void run_next(Effects& out);
  void tell_of_dropped(Effects& out);

  std::set<std::string, std::less<>> kinds_;
  std::map<std::uint32_t, std::string> running_;  // the event of each, by number
  std::deque<Waiting> waiting_;
  std::uint32_t last_ = 0;
  std::size_t dropped_ = 0;  // and not told yet
  bool has_told_of_dropped_ = false;
  std::set<std::string> warned_of_;  // events whose command has failed before
  bool is_broken_ = false;
};

}  // namespace elastic::agent
