#include "src/process/lone_signal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <optional>
#include <system_error>

namespace elastic::process {
namespace {

constexpr std::array<std::string_view, 12> kShells = {"ash", "bash",  "busybox", "csh", "dash", "fish",
                                                      "ksh", "ksh93", "mksh",    "sh",  "tcsh", "zsh"};

// Whether a line such as "SigCgt:\t0000000180004002" has the bit of the signal, which is bit 0 for signal 1. None where
// there is no such line.
std::optional<bool> bit(std::string_view status, std::string_view name, int signal_number) {
  const std::size_t line = status.find(name);
  if (line == std::string_view::npos) return std::nullopt;
  const std::string_view digits = status.substr(line + name.size());
  std::uint64_t mask = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16);
  if (read.ec != std::errc()) return std::nullopt;
  return ((mask >> (signal_number - 1)) & 1) != 0;
}

// Whether the process does not die of a signal now: it is stopped, or in a sleep that no signal ends.
bool lives_on(std::string_view status) {
  constexpr std::string_view kName = "\nState:\t";
  const std::size_t line = status.find(kName);
  return line != std::string_view::npos && std::string_view("DTt").contains(status[line + kName.size()]);
}

// Whether a process dies of the signal that neither handles nor ignores it (signal(7)).
bool ends_by_default(int signal_number) {
  constexpr std::array kHarmless = {SIGCHLD, SIGURG, SIGWINCH, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
  return std::ranges::find(kHarmless, signal_number) == kHarmless.end();
}

}  // namespace

bool may_go_alone(int signal_number) {
  constexpr std::array kNever = {SIGINT, SIGABRT, SIGKILL, SIGSTOP, SIGCONT, SIGTSTP};
  return std::ranges::find(kNever, signal_number) == kNever.end();
}

Handles handles(int signal_number, std::string_view status) {
  const std::optional<bool> catches = bit(status, "\nSigCgt:\t", signal_number);
  const std::optional<bool> blocks = bit(status, "\nSigBlk:\t", signal_number);
  const std::optional<bool> ignores = bit(status, "\nSigIgn:\t", signal_number);
  if (!may_go_alone(signal_number) || !catches || !blocks || !ignores) return Handles::kNo;
  if (*catches || *blocks) return Handles::kYes;
  return *ignores || lives_on(status) || !ends_by_default(signal_number) ? Handles::kNo : Handles::kUnknown;
}

bool is_shell(std::string_view executable) {
  constexpr std::string_view kReplaced = " (deleted)";  // as the kernel marks a file that has been removed since
  if (executable.ends_with(kReplaced)) executable.remove_suffix(kReplaced.size());
  const std::string_view name = executable.substr(executable.rfind('/') + 1);
  return std::ranges::find(kShells, name) != kShells.end();
}

}  // namespace elastic::process
