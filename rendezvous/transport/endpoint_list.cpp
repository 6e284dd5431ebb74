#include "rendezvous/transport/endpoint_list.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/transport/discovery.h"
#include "src/base/address.h"
#include "src/base/result.h"
#include "src/net/interfaces.h"

namespace elastic::transport {
namespace {

constexpr std::int64_t kPatienceMs = 500;

bool has_one_of(const std::vector<std::string>& addresses) {
  const std::vector<net::Interface> own = net::interfaces();
  return std::ranges::any_of(addresses, [&](const std::string& address) {
    return is_loopback(address) || std::ranges::any_of(own, [&](const net::Interface& each) {
             return each.up && same_address(each.address, address);
           });
  });
}

}  // namespace

void EndpointList::find_own(std::function<void()> done) {
  if (std::exchange(has_looked_, true)) return done();
  looks_ = settings_.more_hosts.size();
  if (looks_ == 0) return done();
  done_ = std::move(done);
  patience_.start(kPatienceMs, [this] { warn_of_problem(); });
  for (const RendezvousSettings::Host& host : settings_.more_hosts) {
    resolver_.resolve(host.name, kResolveMs, [this, port = host.port](Result<std::vector<std::string>> found) {
      if (found && !own_port_ && has_one_of(*found)) own_port_ = port;
      if (--looks_ == 0 || own_port_) warn_of_problem();
    });
  }
}

void EndpointList::warn_of_problem() {
  patience_.stop();
  if (done_) std::exchange(done_, {})();
}

std::optional<RendezvousSettings::Host> EndpointList::next() {
  const std::size_t attempt = attempts_++;
  if (settings_.more_hosts.empty() || attempt % 2 == 0) return {};
  return settings_.more_hosts[attempt / 2 % settings_.more_hosts.size()];
}

}  // namespace elastic::transport
