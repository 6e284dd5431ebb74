#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/protocol/codec.h"
#include "src/net/interfaces.h"

// Facts of this host that reports and messages are made of.
namespace elastic::runtime {

// Nobody can guess them.
std::uint64_t random_number();
protocol::Nonce random_nonce();
// Unix time in milliseconds.
std::int64_t wall_clock_ms();
// Of local time, east positive, now.
int utc_offset_s();
// As gethostname(2) has it; "unknown" where that fails.
std::string host_name();
// The same with its domain, where the name itself or /etc/hosts has it; reports name hosts by it. Nothing is
// asked over the network.
std::string full_host_name();
// Numeric, of interfaces that are up, all but loopback.
std::vector<std::string> own_addresses();
// The names of those that have this numeric address, each once. A name is not looked up: none has it.
std::vector<std::string> interfaces_with(const std::string& address, const std::vector<net::Interface>& interfaces);

}  // namespace elastic::runtime
