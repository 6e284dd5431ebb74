#include "src/process/lone_signal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace elastic::process {
namespace {

constexpr std::array<std::string_view, 12> kShells = {"ash", "bash",  "busybox", "csh", "dash", "fish",
                                                      "ksh", "ksh93", "mksh",    "sh",  "tcsh", "zsh"};

// Whether a line such as "SigCgt:\t0000000180004002" has the bit of the signal, which is bit 0 for signal 1.
bool has_bit(std::string_view status, std::string_view name, int signal_number) {
  const std::size_t line = status.find(name);
  if (line == std::string_view::npos) return false;
  const std::string_view digits = status.substr(line + name.size());
  std::uint64_t mask = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16);
  return read.ec == std::errc() && ((mask >> (signal_number - 1)) & 1) != 0;
}

bool is_shell(std::string_view executable) {
  constexpr std::string_view kReplaced = " (deleted)";  // as the kernel marks a file that has been removed since
  if (executable.ends_with(kReplaced)) executable.remove_suffix(kReplaced.size());
  const std::string_view name = executable.substr(executable.rfind('/') + 1);
  return std::ranges::find(kShells, name) != kShells.end();
}

}  // namespace

bool may_go_alone(int signal_number) {
  constexpr std::array kNever = {SIGINT, SIGABRT, SIGKILL, SIGSTOP, SIGCONT, SIGTSTP};
  return std::ranges::find(kNever, signal_number) == kNever.end();
}

bool goes_alone(int signal_number, const SignalManners& worker) {
  if (!may_go_alone(signal_number) || worker.executable.empty() || is_shell(worker.executable)) return false;
  const auto has = [&](std::string_view mask) { return has_bit(worker.status, mask, signal_number); };
  const bool awaits_some = worker.waiting.contains("sigtimedwait");
  return has("\nSigCgt:\t") || has("\nSigBlk:\t") || (awaits_some && !has("\nSigIgn:\t"));
}

}  // namespace elastic::process
