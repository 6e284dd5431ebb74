#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "health/probe/attempt.h"
#include "src/base/exit_status.h"
#include "src/process/spawn.h"

// Runs the user's own programs of a check, each in a shell, up to a deadline. None of their processes is left behind.
namespace elastic::health {

struct ShellCommand {
  std::string text;                         // /bin/sh -c TEXT
  std::vector<std::string> variables = {};  // NAME=value; they replace the environment's variables of the same names
};

struct CommandRules {
  std::span<const std::string> environment = {};
  std::size_t output_bytes =
      0;                      // how much of the end of their stdout is kept; 0: stdout goes to our stderr, like stderr
  bool keeps_stderr = false;  // their stderr is kept together with stdout
  std::optional<process::InheritedState> inherited = {};  // the state that they get; none: that of this process
  // Asked when a command has ended: whether the others go on. Without it they do.
  std::function<bool(std::size_t command)> goes_on = {};
  // A descriptor that is watched, -1: none. When it is readable, `goes_on_after_news` is asked once whether the
  // commands go on.
  int news = -1;
  std::function<bool()> goes_on_after_news = {};
};

struct CommandEnd {
  enum class How { kByItself, kAtDeadline, kStopped, kNotStarted };
  How how = How::kNotStarted;
  ExitStatus status = {};  // only with kByItself
  std::string why_not_started = {};
};

struct CommandsEnd {
  std::vector<CommandEnd> commands;  // in the order in which they were given
  std::string output = {};
};

// Starts all commands at once, each in its own session, and waits until their shells have ended. At the deadline, or
// when they should not go on, the others are killed by SIGKILL. Before this returns, everything that the commands have
// started is killed as well, daemons included; a process that does not die is waited for up to 2 s. The calling process
// must have one thread and no other children: it becomes a subreaper and reaps every child.
CommandsEnd run_commands(const std::vector<ShellCommand>& commands, const CommandRules& rules,
                         const Deadline& deadline);

}  // namespace elastic::health
