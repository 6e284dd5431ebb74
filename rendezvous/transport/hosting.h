#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/locate/hosting.h"
#include "rendezvous/transport/meeting_settings.h"

namespace elastic::transport {

// What it depends on whether this node hosts the coordinator: the endpoint, the addresses that its name resolves to
// (or why there are none), and this host as it is now.
locate::HostingView hosting_view(const MeetingSettings& settings, const std::vector<std::string>& addresses,
                                 const std::string& problem);

// Where nobody has named an endpoint, and this node hosts the coordinator: where it listens, and what is to be typed on
// the other nodes. `host_name`: by which they reach this one.
std::string how_to_join(const MeetingSettings& settings, std::uint16_t port, const std::string& host_name);

// Whether this node would host the coordinator, and why, for --dry-run: "this node: node0 is 10.0.0.5, an address of
// this node". Looks up the endpoint's name, which may take some seconds.
std::string who_hosts(const MeetingSettings& settings);

}  // namespace elastic::transport
