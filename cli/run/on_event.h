#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "rendezvous/agent/event_commands.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"
#include "src/process/spawn.h"

namespace elastic::run {

// --on-event: has the process for it run the user's command for events as agent::EventCommands decides, and tells what
// comes of it. Whatever goes wrong costs commands, never the job.
class OnEvent {
 public:
  struct Settings {
    std::string command = {};          // the user's, for a shell; empty: none
    std::set<std::string> kinds = {};  // the events for which it is run
    Environment environment = {};      // the launcher's own, which the command gets
  };

  // Starts that process; see start_event_process(). Does nothing where there is no command.
  OnEvent(const Settings& settings, const process::InheritedState& inherited);
  OnEvent(const OnEvent&) = delete;
  OnEvent& operator=(const OnEvent&) = delete;

  bool is_wanted() const { return is_wanted_; }
  void heard(std::string_view event, const std::string& line);

  // From now on answers are taken, until end(), which comes before the loop's.
  void begin(net::Loop& loop);
  bool is_idle() const { return commands_.is_idle(); }
  // Called when that has become so.
  void on_idle(std::function<void()> call) { on_idle_ = std::move(call); }
  // What still runs is killed.
  void end();

 private:
  void read();
  void broken(const std::string& why);
  void carry_out(const agent::EventCommands::Effects& effects);

  bool is_wanted_;
  agent::EventCommands commands_;
  UniqueFd channel_;
  std::optional<net::ReadWatch> watch_;
  std::function<void()> on_idle_;
};

}  // namespace elastic::run
