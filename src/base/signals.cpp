#include "src/base/signals.h"

#include <csignal>
#include <cstring>

#include "src/base/text.h"

namespace elastic {

std::optional<int> signal_number(std::string_view name) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* abbreviation = sigabbrev_np(number);
    if (abbreviation != nullptr && name == abbreviation) return number;
  }
  return {};
}

std::string signal_name(int number) {
  if (number >= SIGRTMIN && number <= SIGRTMAX) {
    return number == SIGRTMIN ? "SIGRTMIN" : format("SIGRTMIN+{}", number - SIGRTMIN);
  }
  const char* abbreviation = sigabbrev_np(number);
  return abbreviation != nullptr ? format("SIG{}", abbreviation) : format("signal {}", number);
}

}  // namespace elastic
