#include "rendezvous/discovery/hosting.h"

#include <algorithm>
#include <string_view>

#include "src/base/address.h"
#include "src/base/text.h"

namespace elastic::discovery {
namespace {

// Names compare without regard to case and to the root's dot at their end.
std::string plain_name(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  return lower(name);
}

std::string_view first_label(std::string_view name) { return name.substr(0, name.find('.')); }

bool is_localhost(std::string_view name) { return name == "localhost" || name.ends_with(".localhost"); }

// Whether a text is no host name: it is empty, or has the form of an address.
bool is_no_name(std::string_view text) {
  return text.contains(':') || text.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_ours(const HostingView& view, const std::string& address) {
  return is_loopback(address) ||
         std::ranges::any_of(view.own_addresses, [&](const auto& own) { return same_address(own, address); });
}

// "node0 is 10.0.0.5", or the address alone if the endpoint is an address.
std::string stands_for(const HostingView& view, const std::string& address) {
  const std::string typed = printable(view.endpoint_host);
  return same_address(view.endpoint_host, address) ? typed : format("{} is {}", typed, address);
}

// A warning for a name that resolves to this node and to others: each of these nodes may decide to host.
std::string also_elsewhere(const HostingView& view) {
  const auto other = std::ranges::find_if(view.resolved, [&](const auto& one) { return !is_ours(view, one); });
  if (other == view.resolved.end()) return {};
  if (view.gives_way) return format(", and also {}: the job's coordinator is on the one that begins it first", *other);
  return format(
      ", and also {}, which this node does not have: if that is another node, give one of them is_host=1 and "
      "the others is_host=0",
      *other);
}

// "node0 is 10.0.0.5, which no interface of this node has", for decisions other than kHosts.
std::string elsewhere(const HostingView& view) {
  const std::string typed = printable(view.endpoint_host);
  if (!view.resolved.empty()) {
    return format("{}, which no interface of this node has", stands_for(view, view.resolved.front()));
  }
  if (view.resolve_error.empty()) return format("{} does not resolve yet", typed);
  return format("{} does not resolve yet ({})", typed, view.resolve_error);
}

bool is_own_name(const HostingView& view) {
  const std::string name = plain_name(view.endpoint_host);
  return !name.empty() && (name == plain_name(view.host_name) || name == plain_name(view.full_host_name));
}

HostingDecision hosts(std::string reason) { return {Hosting::kHosts, std::move(reason)}; }
HostingDecision offers(std::string reason) { return {Hosting::kOffers, std::move(reason)}; }
HostingDecision asks(std::string reason) { return {Hosting::kAsks, std::move(reason)}; }

}  // namespace

HostingDecision decide_hosting(const HostingView& view) {
  if (view.is_host) {
    const std::string by_key = format("is_host={} says so", *view.is_host ? 1 : 0);
    const std::string reason = view.is_host_source.empty() ? by_key : view.is_host_source;
    return *view.is_host ? hosts(reason) : asks(reason);
  }

  const std::string typed = printable(view.endpoint_host);
  const std::string name = plain_name(view.endpoint_host);
  const bool no_name = is_no_name(name);
  if (is_localhost(name) || (no_name && is_loopback(name))) {
    return hosts(format("{} means each node itself", typed));
  }
  if (no_name && is_unspecified(name)) {
    return hosts(format("{} means all addresses of each node", typed));
  }
  const std::string own_name = plain_name(view.host_name);
  if (is_own_name(view)) {
    return hosts(format("{} is this host's name", typed));
  }
  const auto ours = std::ranges::find_if(view.resolved, [&](const auto& one) { return is_ours(view, one); });
  if (ours != view.resolved.end()) {
    return hosts(format("{}, an address of this node{}", stands_for(view, *ours), also_elsewhere(view)));
  }
  if (!no_name && first_label(name) == first_label(own_name)) {
    if (view.resolved.empty()) {
      return hosts(format("{}, and its first part is this host's name", elsewhere(view)));
    }
    return offers(format("{}, but its first part is this host's name", elsewhere(view)));
  }
  if (view.node_rank == 0) return offers(format("{}, but this node claims node rank 0", elsewhere(view)));
  return asks(elsewhere(view));
}

std::string why_elsewhere(const HostingView& view) {
  if (view.resolved.empty()) return {};
  HostingView without_word = view;
  without_word.is_host.reset();
  const HostingDecision decision = decide_hosting(without_word);
  if (decision.hosting != Hosting::kHosts) return elsewhere(view);
  return view.is_host == false ? format("{}, and another node is to host", decision.reason) : "";
}

EndpointAdvice advice_of_host(const HostingView& view, std::uint16_t port, const EndpointOption& option) {
  const std::string typed = printable(view.endpoint_host);
  const std::string name = plain_name(view.endpoint_host);
  const auto is_reached = [&](const std::string& address) {
    return is_ours(view, address) && !is_loopback(address) && !is_unspecified(address);
  };
  const std::string there = why_elsewhere(view);
  if (!there.empty()) {
    const std::string by = option.name.empty() ? typed : format("{}={}", option.name, typed);
    return {format("this node hosts at port {}, though {}: the others must come here by {}", port, there, by)};
  }
  if (option.name.empty()) return {};
  const bool is_each = is_localhost(name) || (is_no_name(name) && (is_loopback(name) || is_unspecified(name)));
  const bool is_mapped = !view.resolved.empty() && std::ranges::all_of(view.resolved, is_loopback);
  if (is_each || (is_mapped && !is_own_name(view))) {
    const std::string own = printable(view.full_host_name.empty() ? view.host_name : view.full_host_name);
    return {.text = format("{} leads each node to itself: those on other hosts that were given it, too, never come "
                           "here. Give all nodes {}={}, or another name of this host",
                           is_each ? typed : format("{} is {}, which", typed, view.resolved.front()), option.name,
                           option.takes_port ? with_port(own, port) : own),
            .is_mistake = true};
  }
  const auto reached = std::ranges::find_if(view.resolved, is_reached);
  const bool is_named = reached != view.resolved.end() && !same_address(view.endpoint_host, *reached);
  return {format("this node hosts at {}; the others must be given the same {}",
                 is_named ? format("{} ({})", typed, with_port(*reached, port)) : with_port(typed, port), option.name)};
}

}  // namespace elastic::discovery
