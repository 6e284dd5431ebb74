#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rendezvous/events/log_event.h"
#include "src/base/exit_status.h"

namespace elastic::events {

// The events for which a command can be run.
inline constexpr std::string_view kEventCommandKinds[] = {"node_lost", "node_unfit", "node_kept_out", "job_ends"};

// Decides for which events the command of --on-event is run, and when: some run at once, some wait, and those beyond
// are dropped and counted. Makes the log events about them.
class EventCommands {
 public:
  // The command is to be run with this line on stdin. Answered by ended() with the number.
  struct Run {
    std::uint32_t number = 0;
    std::string line;
  };
  using Effect = std::variant<Run, LogEvent>;
  using Effects = std::vector<Effect>;

  // How a command ended.
  struct End {
    ExitStatus status = {};
    std::optional<std::int64_t> killed_after_s = {};  // after so long it was killed; `status` means nothing then
    std::string why_not_started = {};                 // empty: it was started
    std::string output = {};                          // the last bytes of stdout and stderr
  };

  explicit EventCommands(std::set<std::string> kinds) : kinds_(kinds.begin(), kinds.end()) {}

  // An event of the launcher's log, with its line of JSON.
  Effects on_event(std::string_view event, const std::string& line);
  Effects ended(std::uint32_t number, const End& end);
  // No command can be run any more; `why` is a clause.
  Effects broken(const std::string& why);
  // The launcher ends and does not wait any longer: commands that run are killed by their owner.
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
  std::map<std::uint32_t, std::string> running_;  // the event of each command, by number
  std::deque<Waiting> waiting_;
  std::uint32_t last_ = 0;
  std::size_t dropped_ = 0;  // events since the last log event about dropped ones
  bool has_told_of_dropped_ = false;
  std::set<std::string> warned_of_;  // the events of commands that have failed
  bool is_broken_ = false;
};

}  // namespace elastic::events
