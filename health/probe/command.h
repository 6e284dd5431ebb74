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

// The user's own programs of a check, each in a shell, under a deadline; nothing of them is left behind.
namespace elastic::health {

struct ShellCommand {
  std::string text;                         // /bin/sh -c TEXT
  std::vector<std::string> variables = {};  // NAME=value, in the place of the environment's of the same names
};

struct CommandRules {
  std::span<const std::string> environment = {};
  std::size_t output_bytes =
      0;                      // how much of the end of their stdout is kept; 0: it goes to our stderr, as theirs does
  bool keeps_stderr = false;  // of their stderr as well, in one with it
  std::optional<process::InheritedState> inherited = {};  // what they are given back; none: what this process has now
  // Whether the others are to go on when one has ended. None: they are.
  std::function<bool(std::size_t command)> goes_on = {};
  // A descriptor, and whether they are to go on, which is asked once, when it has something to be read. -1: none.
  int news = -1;
  std::function<bool()> goes_on_after_news = {};
};

struct CommandEnd {
  enum class How { kByItself, kAtDeadline, kStopped, kNotStarted };
  How how = How::kNotStarted;
  ExitStatus status = {};  // of one that has ended by itself
  std::string why_not_started = {};
};

struct CommandsEnd {
  std::vector<CommandEnd> commands;  // in the order in which they were given
  std::string output = {};
};

// Starts all at once, each in a session of its own, and waits until their shells have ended. At the deadline, or when
// they are not to go on, those left are ended by SIGKILL; whatever they have started is in any case, daemons too,
// before this returns (what cannot be killed is waited for 2 s). For a process of one thread without other children: it
// becomes a subreaper and reaps every child.
CommandsEnd run_commands(const std::vector<ShellCommand>& commands, const CommandRules& rules,
                         const Deadline& deadline);

}  // namespace elastic::health
