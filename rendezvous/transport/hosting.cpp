#include "rendezvous/transport/hosting.h"

#include <utility>

#include "rendezvous/transport/discovery.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"
#include "src/net/local_host.h"
#include "src/net/loop.h"
#include "src/net/names.h"

namespace elastic::transport {

discovery::HostingView hosting_view(const RendezvousSettings& settings, const std::vector<std::string>& addresses,
                                    const std::string& problem) {
  discovery::HostingView view{.endpoint_host = settings.host,
                              .resolved = addresses,
                              .resolve_error = problem,
                              .own_addresses = {},
                              .host_name = net::host_name(),
                              .full_host_name = net::full_host_name(),
                              .is_host = settings.is_host,
                              .is_host_source = settings.is_host_source,
                              .gives_way = settings.has_peer_server,
                              .node_rank = settings.node_rank};
  for (const net::Interface& interface : net::interfaces()) {
    if (interface.up) view.own_addresses.push_back(interface.address);
  }
  return view;
}

std::string how_to_join(const RendezvousSettings& settings, std::uint16_t port, const std::string& host_name) {
  const std::string name = printable(host_name);
  if (!settings.store_at_endpoint) {
    return format(
        "no --rdzv-endpoint was given: this node listens on port {}. On the other nodes type the same command with "
        "--rdzv-endpoint={}:{}",
        port, name, port);
  }
  const int last = settings.max_nodes - 1;
  const std::string others =
      last == 1 ? "--node-rank=1 on the other one" : format("--node-rank=1 to {} on the others", last);
  return format(
      "no --master-addr was given: this node listens on port {}, and all workers look for it at {}, each on its own "
      "host. For several hosts type the same command with --master-addr={} on every node, and {}",
      port, printable(settings.host), name, others);
}

std::string who_hosts(const RendezvousSettings& settings) {
  if (settings.place != RendezvousSettings::Place::kEndpoint) {
    const std::string place = endpoint_text(settings);
    if (settings.is_host == false) return format("the node that {} names: is_host=0 says so", place);
    return format("the node that {} names, or else the first node to begin the job", place);
  }
  net::Loop loop;
  std::vector<std::string> addresses;
  std::string problem;
  {
    net::Resolver resolver(loop);
    resolver.resolve(settings.host, kResolveMs, [&](Result<std::vector<std::string>> found) {
      if (found) {
        addresses = std::move(*found);
      } else {
        problem = found.error().reason;
      }
      loop.stop();
    });
    loop.run();
  }
  const discovery::HostingDecision decision = discovery::decide_hosting(hosting_view(settings, addresses, problem));
  switch (decision.hosting) {
    case discovery::Hosting::kHosts: return format("this node: {}", decision.reason);
    case discovery::Hosting::kOffers: return format("offered by this node: {}", decision.reason);
    case discovery::Hosting::kAsks: return format("another node: {}", decision.reason);
  }
  return {};
}

}  // namespace elastic::transport
