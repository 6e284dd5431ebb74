#include "src/net/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <memory>

#include "src/base/log.h"
#include "src/base/result.h"
#include "src/base/text.h"

namespace elastic::net {
namespace {

// The address as text; empty if it is neither IPv4 nor IPv6.
std::string numeric_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address->sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  } else {
    return {};
  }
  return inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr ? "" : text.data();
}

}  // namespace

std::vector<Interface> interfaces() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) {
    const int error = errno;
    static bool told = false;
    if (!told) {
      log::warning(
          format("cannot list this host's network interfaces: {}; set is_host=1 in --rdzv-conf if --rdzv-endpoint is "
                 "this host",
                 errno_text(error)));
    }
    told = true;
    return {};
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(all, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    std::string address = numeric_text(entry->ifa_addr);
    if (address.empty()) continue;
    found.push_back({.name = entry->ifa_name,
                     .address = std::move(address),
                     .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0,
                     .up = (entry->ifa_flags & IFF_UP) != 0});
  }
  return found;
}

}  // namespace elastic::net
