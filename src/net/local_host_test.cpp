#include "src/net/local_host.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "src/base/unique_fd.h"

using namespace elastic::net;
using Names = std::vector<std::string>;

TEST_CASE("the interfaces that a node uses are those that have the address by which others reach it") {
  const std::vector<elastic::net::Interface> interfaces = {{"lo", "127.0.0.1", true, true},
                                                           {"eth0", "10.0.0.4", false, true},
                                                           {"eth1", "10.0.1.4", false, true},
                                                           {"eth1", "fd77::4", false, true},
                                                           {"eth1", "fd77::4", false, true}};
  CHECK(interfaces_with("10.0.0.4", interfaces) == Names{"eth0"});
  CHECK(interfaces_with("FD77::4", interfaces) == Names{"eth1"});
  CHECK(interfaces_with("10.0.0.40", interfaces).empty());
  CHECK(interfaces_with("", interfaces).empty());
  CHECK(interfaces_with("host0", interfaces).empty());
}

TEST_CASE("connections to this host's own addresses stay here") {
  CHECK(is_ours("127.0.0.1"));
  CHECK(is_ours("127.8.9.1"));
  CHECK(is_ours("::1"));
  CHECK(is_ours("0.0.0.0"));
  for (const std::string& own : own_addresses()) CHECK(is_ours(own));
  CHECK_FALSE(is_ours("203.0.113.7"));  // of nobody's (RFC 5737)
}

TEST_CASE("a port that a socket of any address has is not free, listening or not") {
  const elastic::UniqueFd holder(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(bind(holder.get(), any, size) == 0);
  REQUIRE(getsockname(holder.get(), any, &size) == 0);
  CHECK_FALSE(is_port_free(ntohs(address.sin_port)));
  REQUIRE(listen(holder.get(), 1) == 0);
  CHECK_FALSE(is_port_free(ntohs(address.sin_port)));
  const std::uint16_t other = free_port();
  CHECK(is_port_free(other));
  CHECK(is_port_free(other));  // the look itself leaves nothing
}
