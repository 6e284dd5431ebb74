#include "src/runtime/endpoint_place.h"

#include <utility>

#include "rendezvous/locate/hosting.h"
#include "src/base/address.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/hosting.h"

namespace elastic::runtime {

EndpointPlace::EndpointPlace(net::Loop& loop, const LaunchSettings& settings, ToStore to_store, OnHosting on_hosting)
    : MeetingPlace(loop, settings, std::move(to_store), std::move(on_hosting)), resolver_(loop) {}

void EndpointPlace::find(bool, OnFound on_found) {
  // Our own coordinator is reached whatever the name means.
  const std::string host = server() != nullptr && is_sure_ ? kLoopback : settings_.meeting.host;
  const std::uint64_t attempt = ++attempt_;
  resolver_.resolve(host, kResolveMs,
                    [this, attempt, on_found = std::move(on_found)](Result<std::vector<std::string>> found) {
                      if (attempt == attempt_) on_found(way(std::move(found)));
                    });
}

MeetingPlace::Way EndpointPlace::way(Result<std::vector<std::string>> resolved) {
  Way out{.port = settings_.meeting.port};
  if (!resolved) out.problem = resolved.error().reason;
  if (resolved) out.addresses = std::move(*resolved);
  if (server() == nullptr) host_if_ours(out);
  out.home = server() != nullptr;
  if (server() != nullptr && is_sure_) out.addresses = {kLoopback};
  // The one that we only offer, once others have found it.
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
  if (const Status opened = open_server(settings_.meeting.port); !opened) {
    // Another elastic-run of this host may have been first: then it answers.
    log::debug("hosting", opened.error().text());
    return;
  }
  is_sure_ = decision.hosting == locate::Hosting::kHosts;
  tell_hosting(is_sure_ ? "hosts" : "offers", format("port {}", server()->port()), decision.reason);
}

}  // namespace elastic::runtime
