#include "rendezvous/transport/endpoint_discovery.h"

#include <algorithm>
#include <utility>

#include "rendezvous/discovery/hosting.h"
#include "rendezvous/transport/coordinator_server.h"
#include "rendezvous/transport/hosting.h"
#include "src/base/address.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/local_host.h"

namespace elastic::transport {

EndpointDiscovery::EndpointDiscovery(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own,
                                     ToStore to_store, OnHosting on_hosting)
    : Discovery(loop, settings, own, std::move(to_store), std::move(on_hosting)),
      resolver_(loop),
      list_(loop, settings) {}

void EndpointDiscovery::find(const Known& known, OnFound on_found) {
  const bool belongs = known.belongs;
  if (belongs) elsewhere_.clear();
  const std::uint64_t attempt = ++attempt_;
  // A node of a round has a peer port, at which it may be elected. A second coordinator beside it would split the
  // votes.
  may_begin_ = !(belongs && settings_.has_peer_server);
  if (belongs && reached_) first_port_ = *reached_;
  if (!belongs && reached_) first_port_ = port_after(*reached_);
  reached_.reset();
  list_.find_own([this, attempt, on_found = std::move(on_found)]() mutable {
    if (attempt == attempt_) resolve_endpoint(std::move(on_found));
  });
}

void EndpointDiscovery::resolve_endpoint(OnFound on_found) {
  const auto other = lacks_secret() ? std::nullopt : list_.next();
  if (other) elsewhere_.clear();
  // This node's own coordinator is reached by loopback, whatever the name resolves to; unless the name may lead to
  // other nodes, too, which have perhaps begun the job.
  const bool is_at_home = server() != nullptr && is_sure_ && !settings_.has_peer_server;
  resolver_.resolve(
      other        ? other->name
      : is_at_home ? kLoopback
                   : settings_.host,
      kResolveMs,
      [this, other, attempt = attempt_, on_found = std::move(on_found)](Result<std::vector<std::string>> found) {
        if (attempt == attempt_) on_found(other ? way_to(*other, std::move(found)) : way(std::move(found)));
      });
}

Discovery::Way EndpointDiscovery::way_to(const RendezvousSettings::Host& host,
                                         Result<std::vector<std::string>> resolved) const {
  Way out{.ports = host.port == settings_.port ? ports_from(first_port_) : std::vector{host.port},
          .may_begin = false,
          .is_further = true};
  if (resolved) out.addresses = std::move(*resolved);
  if (out.addresses.empty()) out.problem = resolved ? "it has no address" : resolved.error().reason;
  return out;
}

// Where the name leads to this host and to others, all nodes ask these in one order, so that they meet at the first
// that is up.
std::vector<std::string> EndpointDiscovery::ways_home(std::vector<std::string> resolved) const {
  const std::vector<net::Interface> interfaces = net::interfaces();
  const auto is_own = [&](const std::string& address) {
    return is_loopback(address) || !net::interfaces_with(address, interfaces).empty();
  };
  const bool is_shared = settings_.has_peer_server && !settings_.is_host && std::ranges::any_of(resolved, is_own);
  if (!is_shared) return {kLoopback};
  std::ranges::sort(resolved);
  std::vector<std::string> out;
  for (const std::string& address : resolved) {
    const std::string way = is_own(address) ? kLoopback : address;
    if (std::ranges::count(out, way) == 0) out.push_back(way);
  }
  return out;
}

// Other nodes find the peer port at the endpoint's port if the endpoint names this host.
std::vector<std::uint16_t> EndpointDiscovery::peer_ports() const {
  if (const auto port = list_.own_port()) return *port == settings_.port ? ports_from(*port) : std::vector{*port};
  return {};
}

Discovery::Way EndpointDiscovery::way(Result<std::vector<std::string>> resolved) {
  Way out{.ports = ports_from(first_port_)};
  if (!resolved) out.problem = resolved.error().reason;
  if (resolved) out.addresses = std::move(*resolved);
  if (server() == nullptr && may_begin_) out.may_begin = host_if_ours(out);
  out.home = server() != nullptr;
  if (server() != nullptr) out.ports = {server()->port()};
  if (server() != nullptr && is_sure_) out.addresses = ways_home(std::move(out.addresses));
  // A coordinator that is only offered is used once another node has connected to it.
  if (server() != nullptr && !is_sure_ && server()->has_visitors()) out.addresses.emplace_back(kLoopback);
  if (out.addresses.empty() && out.problem.empty()) out.problem = "it has no address";
  return out;
}

std::string EndpointDiscovery::explain(const std::string& problem) const {
  return elsewhere_.empty() ? problem : format("{}; {}", problem, elsewhere_);
}

// Whether the job may be begun at the endpoint, if it is not there.
bool EndpointDiscovery::host_if_ours(const Way& way) {
  discovery::HostingView view = hosting_view(settings_, way.addresses, way.problem);
  const discovery::HostingDecision decision = discovery::decide_hosting(view);
  elsewhere_ = discovery::why_elsewhere(view);
  // Another node that was given node rank 0 as well may host there.
  const bool hosts_if_none = settings_.asks_first && decision.hosting == discovery::Hosting::kHosts;
  const bool is_foreign = hosts_if_none && !elsewhere_.empty();
  if (is_foreign && !std::exchange(has_asked_, true)) return false;
  if (decision.hosting == discovery::Hosting::kAsks) {
    if (!std::exchange(told_why_not_, true)) log::debug("hosting", decision.reason);
    return true;
  }
  if (!open_one()) return !is_foreign;
  is_sure_ = decision.hosting == discovery::Hosting::kHosts;
  tell_hosting(*server(), is_sure_ ? "hosts" : "offers", format("port {}", server()->port()), decision.reason);
  if (is_sure_ && settings_.max_nodes > 1 && !settings_.is_default) {
    advice_ = discovery::advice_of_host(view, server()->port(), settings_.option);
  }
  if (settings_.is_default) {
    log::answer("endpoint", how_to_join(settings_, server()->port(), net::host_name()), {{"port", server()->port()}});
  }
  return true;
}

// Opens the coordinator at the first of the endpoint's ports that is free.
bool EndpointDiscovery::open_one() {
  std::string problem;
  for (const std::uint16_t port : ports_from(settings_.port)) {
    const Status opened = open_server(port);
    if (opened) return true;
    problem = opened.error().text();
    // Another elastic-run on this host may have the port: then that answers.
    log::debug("hosting", problem);
  }
  // If coordinators serve their own job only, no other elastic-run on this host answers for this job.
  if (settings_.serves_own_job_only && !std::exchange(told_no_port_, true)) {
    log::warning("no_port",
                 format("this node is to host the coordinator, and none of its {} ports is free; trying again: {}",
                        settings_.more_ports.size() + 1, problem));
  }
  return false;
}

// All ports of the endpoint, rotated so that the given one is the first.
std::vector<std::uint16_t> EndpointDiscovery::ports_from(std::uint16_t first) const {
  std::vector<std::uint16_t> ports{settings_.port};
  ports.insert(ports.end(), settings_.more_ports.begin(), settings_.more_ports.end());
  const auto found = std::ranges::find(ports, first);
  if (found != ports.end()) std::ranges::rotate(ports, found);
  return ports;
}

std::uint16_t EndpointDiscovery::port_after(std::uint16_t port) const {
  const std::vector<std::uint16_t> ports = ports_from(port);
  return ports.size() > 1 ? ports[1] : ports[0];
}

}  // namespace elastic::transport
