#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace elastic {

// The number of a signal by its name, with or without SIG, in capitals ("SIGTERM", "USR1").
std::optional<int> signal_number(std::string_view name);

// "SIGTERM" for 15; "SIGRTMIN+3" for a real-time signal; "signal 99" for none.
std::string signal_name(int number);

}  // namespace elastic
