#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/net/interfaces.h"

// Facts about this host for reports and messages.
namespace elastic::net {

// The name by gethostname(2); "unknown" where that fails.
std::string host_name();
// The same with its domain, where the name itself or /etc/hosts has it; reports name hosts by it. No server is
// asked.
std::string full_host_name();
// The numeric addresses of all interfaces that are up, without loopback.
std::vector<std::string> own_addresses();
// Whether an interface that is up has this numeric address; loopback counts.
bool has_address(std::string_view address);
// Connections to this numeric address stay on this host.
bool is_ours(const std::string& address);
// Of another host's addresses those that this host has not, since each host may have a bridge of the same address; all
// of them if this host has all, as for another process on it.
std::vector<std::string> addresses_elsewhere(const std::vector<std::string>& addresses);
// The names of the interfaces that have this numeric address, each once. Host names are not looked up, so they match
// none.
std::vector<std::string> interfaces_with(const std::string& address, const std::vector<net::Interface>& interfaces);

// A port of the loopback address at which nobody listens now; 0: there is none.
std::uint16_t free_port();

// Whether a server could listen at this port of all IPv4 addresses now. A connection that has the port keeps it for a
// while after its end.
bool is_port_free(std::uint16_t port);

}  // namespace elastic::net
