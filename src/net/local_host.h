#pragma once

#include <string>
#include <vector>

#include "src/net/interfaces.h"

// Facts of this host that reports and messages are made of.
namespace elastic::net {

// As gethostname(2) has it; "unknown" where that fails.
std::string host_name();
// The same with its domain, where the name itself or /etc/hosts has it; reports name hosts by it. Nothing is
// asked over the network.
std::string full_host_name();
// Numeric, of interfaces that are up, all but loopback.
std::vector<std::string> own_addresses();
// The names of those that have this numeric address, each once. A name is not looked up: none has it.
std::vector<std::string> interfaces_with(const std::string& address, const std::vector<net::Interface>& interfaces);

}  // namespace elastic::net
