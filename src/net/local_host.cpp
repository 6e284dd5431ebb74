#include "src/net/local_host.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "src/base/address.h"
#include "src/base/hosts_file.h"
#include "src/base/read_file.h"
#include "src/base/unique_fd.h"

namespace elastic::net {
namespace {

constexpr std::size_t kHostsBytes = 1 << 20;  // of a longer /etc/hosts the rest is not read

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string full_host_name() {
  std::string name = host_name();
  if (name.contains('.')) return name;
  std::string full = full_name_in_hosts(read_file("/etc/hosts", kHostsBytes).value_or(""), name);
  return full.empty() ? name : full;
}

bool has_address(std::string_view address) {
  return std::ranges::any_of(interfaces(),
                             [&](const Interface& each) { return each.up && same_address(each.address, address); });
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> out;
  for (const net::Interface& interface : net::interfaces()) {
    if (interface.up && !interface.loopback) out.push_back(interface.address);
  }
  return out;
}

bool is_ours(const std::string& address) {
  return is_loopback(address) || is_unspecified(address) ||
         std::ranges::any_of(interfaces(), [&](const Interface& own) { return same_address(own.address, address); });
}

std::vector<std::string> addresses_elsewhere(const std::vector<std::string>& addresses) {
  const std::vector<net::Interface> own = net::interfaces();
  std::vector<std::string> out;
  std::ranges::copy_if(addresses, std::back_inserter(out), [&](const std::string& address) {
    return std::ranges::none_of(own, [&](const net::Interface& each) { return same_address(each.address, address); });
  });
  return out.empty() ? addresses : out;
}

std::vector<std::string> interfaces_with(const std::string& address, const std::vector<net::Interface>& interfaces) {
  std::vector<std::string> names;
  for (const net::Interface& interface : interfaces) {
    if (same_address(interface.address, address) && std::ranges::count(names, interface.name) == 0) {
      names.push_back(interface.name);
    }
  }
  return names;
}

std::uint16_t free_port() {
  const UniqueFd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool is_known =
      socket_fd && bind(socket_fd.get(), any, length) == 0 && getsockname(socket_fd.get(), any, &length) == 0;
  return is_known ? ntohs(address.sin_port) : 0;
}

bool is_port_free(std::uint16_t port) {
  const UniqueFd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  return socket_fd && bind(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace elastic::net
