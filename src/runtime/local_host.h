#pragma once

#include <cstdint>
#include <string>

// Facts of this host that reports and messages are made of.
namespace elastic::runtime {

// Unix time in milliseconds.
std::int64_t wall_clock_ms();
// Of local time, east positive, now.
int utc_offset_s();
// As gethostname(2) has it; "unknown" where that fails.
std::string host_name();

}  // namespace elastic::runtime
