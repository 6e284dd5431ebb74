#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/discovery/hosting.h"
#include "rendezvous/transport/rendezvous_settings.h"

namespace elastic::transport {

// Collects what discovery::decide_hosting needs: the endpoint, the addresses that its name resolves to (or why it
// resolves to none), and the names and addresses of this host.
discovery::HostingView hosting_view(const RendezvousSettings& settings, const std::vector<std::string>& addresses,
                                    const std::string& problem);

// The line for the user if no endpoint was given and this node hosts the coordinator: where it listens, and what to
// type on the other nodes, which reach this one by `host_name`.
std::string how_to_join(const RendezvousSettings& settings, std::uint16_t port, const std::string& host_name);

// Which node would host the coordinator, and why, for --dry-run: "this node: node0 is 10.0.0.5, an address of this
// node". Resolves the endpoint's name, which may take some seconds.
std::string who_hosts(const RendezvousSettings& settings);

}  // namespace elastic::transport
