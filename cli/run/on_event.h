#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "rendezvous/events/event_commands.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"
#include "src/process/spawn.h"

namespace elastic::run {

// --on-event: has the process of event_command_process run the user's command for events, as events::EventCommands
// decides, and logs how commands end. An error costs commands, never the job.
class OnEvent {
 public:
  struct Settings {
    std::string command = {};          // the user's, for a shell; empty: none
    std::set<std::string> kinds = {};  // the events for which it is run
    Environment environment = {};      // the launcher's own, which the command gets
  };

  // Starts that process, as start_event_process() says. Does nothing without a command.
  OnEvent(const Settings& settings, const process::InheritedState& inherited);
  OnEvent(const OnEvent&) = delete;
  OnEvent& operator=(const OnEvent&) = delete;

  bool is_wanted() const { return is_wanted_; }
  // An event of the launcher's log, with its line of JSON.
  void on_event(std::string_view event, const std::string& line);

  // Reads the process's answers from now on, until end(), which is to be called before the loop is destroyed.
  void begin(net::Loop& loop);
  // No command runs or waits.
  bool is_idle() const { return commands_.is_idle(); }
  // `call` is called when it has become idle.
  void on_idle(std::function<void()> call) { on_idle_ = std::move(call); }
  // Kills the commands that still run.
  void end();

 private:
  void read();
  void broken(const std::string& why);
  void perform(const events::EventCommands::Effects& effects);

  bool is_wanted_;
  events::EventCommands commands_;
  UniqueFd channel_;
  std::optional<net::ReadWatch> watch_;
  std::function<void()> on_idle_;
};

}  // namespace elastic::run
