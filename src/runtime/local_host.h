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
// The same with its domain, where the name itself or /etc/hosts has it; reports name hosts by it. Nothing is
// asked over the network.
std::string full_host_name();

}  // namespace elastic::runtime
