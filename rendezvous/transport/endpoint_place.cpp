#include "rendezvous/transport/endpoint_place.h"

#include <algorithm>
#include <utility>

#include "rendezvous/locate/hosting.h"
#include "rendezvous/transport/hosting.h"
#include "src/base/address.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/local_host.h"

namespace elastic::transport {

EndpointPlace::EndpointPlace(net::Loop& loop, const MeetingSettings& settings, ToStore to_store, OnHosting on_hosting)
    : MeetingPlace(loop, settings, std::move(to_store), std::move(on_hosting)), resolver_(loop) {}

void EndpointPlace::find(bool belongs, OnFound on_found) {
  // This node's own coordinator is reached by loopback, whatever the name resolves to.
  const std::string host = server() != nullptr && is_sure_ ? kLoopback : settings_.host;
  const std::uint64_t attempt = ++attempt_;
  if (belongs && reached_) first_port_ = *reached_;
  if (!belongs && reached_) first_port_ = port_after(*reached_);
  reached_.reset();
  resolver_.resolve(host, kResolveMs,
                    [this, attempt, on_found = std::move(on_found)](Result<std::vector<std::string>> found) {
                      if (attempt == attempt_) on_found(way(std::move(found)));
                    });
}

MeetingPlace::Way EndpointPlace::way(Result<std::vector<std::string>> resolved) {
  Way out{.ports = ports_from(first_port_)};
  if (!resolved) out.problem = resolved.error().reason;
  if (resolved) out.addresses = std::move(*resolved);
  if (server() == nullptr) host_if_ours(out);
  out.home = server() != nullptr;
  if (server() != nullptr) out.ports = {server()->port()};
  if (server() != nullptr && is_sure_) out.addresses = {kLoopback};
  // A coordinator that is only offered is used once another node has connected to it.
  if (server() != nullptr && !is_sure_ && server()->has_visitors()) out.addresses.emplace_back(kLoopback);
  if (out.addresses.empty() && out.problem.empty()) out.problem = "it has no address";
  return out;
}

void EndpointPlace::host_if_ours(const Way& way) {
  const locate::HostingDecision decision = locate::decide_hosting(hosting_view(settings_, way.addresses, way.problem));
  if (decision.hosting == locate::Hosting::kAsks) {
    if (!std::exchange(told_why_not_, true)) log::debug("hosting", decision.reason);
    return;
  }
  if (!open_one()) return;
  is_sure_ = decision.hosting == locate::Hosting::kHosts;
  tell_hosting(is_sure_ ? "hosts" : "offers", format("port {}", server()->port()), decision.reason);
  if (!settings_.is_default) return;
  log::answer("endpoint", how_to_join(settings_, server()->port(), net::host_name()), {{"port", server()->port()}});
}

// Opens the coordinator at the first of the endpoint's ports that is free.
bool EndpointPlace::open_one() {
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
std::vector<std::uint16_t> EndpointPlace::ports_from(std::uint16_t first) const {
  std::vector<std::uint16_t> ports{settings_.port};
  ports.insert(ports.end(), settings_.more_ports.begin(), settings_.more_ports.end());
  const auto found = std::ranges::find(ports, first);
  if (found != ports.end()) std::ranges::rotate(ports, found);
  return ports;
}

std::uint16_t EndpointPlace::port_after(std::uint16_t port) const {
  const std::vector<std::uint16_t> ports = ports_from(port);
  return ports.size() > 1 ? ports[1] : ports[0];
}

}  // namespace elastic::transport
