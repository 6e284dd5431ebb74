#include "health/evidence/tcp_table.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace elastic::evidence {
namespace {

using Sockets = std::vector<std::pair<std::string, std::uint64_t>>;

Sockets sockets_in(std::string_view text) {
  Sockets found;
  read_tcp_table(text, [&](std::string own, std::uint64_t inode) { found.emplace_back(std::move(own), inode); });
  return found;
}

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1145 1 0000 100 0 0 10 "
    "0\n"
    "   1: 0100007F:9D78 0100007F:7345 01 00000000:00000000 00:00000000 00000000  1000        0 162244 1 0000 20 4 30 "
    "10 -1\n"
    "   2: 0100007F:9D79 0100007F:7345 06 00000000:00000000 03:00000D3E 00000000     0        0 0 3 0000\n";

}  // namespace

TEST_CASE("sockets are read with their own addresses, and those that no process has are left out") {
  CHECK(sockets_in(kTable) == Sockets{{"0.0.0.0:2024", 1145}, {"127.0.0.1:40312", 162244}});
}

TEST_CASE("addresses of IPv6 are written as usual, and mapped ones as those of IPv4") {
  const auto own = [](const std::string& address) {
    const Sockets found = sockets_in("0: " + address + ":0050 0:0 01 0:0 0:0 0 0 0 7 1");
    return found.size() == 1 ? found[0].first : "none";
  };
  CHECK(own("00000000000000000000000001000000") == "[::1]:80");
  CHECK(own("00000000000000000000000000000000") == "[::]:80");
  CHECK(own("0000000000000000FFFF00000100007F") == "127.0.0.1:80");
  CHECK(own("000080FE00000000FF565002BD69B1FE") == "[fe80::250:56ff:feb1:69bd]:80");
  CHECK(own("B80D0120000000000100010001000000") == "[2001:db8::1:1:0:1]:80");
  CHECK(own("0100007F01") == "none");
  CHECK(own("zzzzzzzz") == "none");
}

TEST_CASE("a table that is none has no sockets") {
  CHECK(sockets_in("").empty());
  CHECK(sockets_in("\n\n   \n1: 0100007F:9D78").empty());
  CHECK(sockets_in("0: 0100007F:9D78 0:0 01 0:0 0:0 0 0 0 -7 1").empty());
}

TEST_CASE("the target of a link to a socket has its inode") {
  CHECK(socket_inode("socket:[162244]") == 162244);
  for (const char* other : {"", "socket:[]", "socket:[7", "pipe:[7]", "/dev/null", "socket:[-7]"}) {
    CHECK(socket_inode(other) == 0);
  }
}

}  // namespace elastic::evidence
