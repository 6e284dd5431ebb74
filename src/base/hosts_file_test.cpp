#include "src/base/hosts_file.h"

#include <doctest/doctest.h>

using elastic::full_name_in_hosts;

TEST_CASE("a host's full name is the first one with a dot on its line of the hosts file") {
  const std::string hosts =
      "127.0.0.1\tlocalhost.localdomain localhost\n"
      "# 10.0.0.7 wrong.example node7\n"
      "10.0.0.6 node6.example node6\n"
      "  10.0.0.7 \tn7 node7.cluster.example\tnode7 other.example # node8.example node8\r\n"
      "10.0.0.8 node8\n";
  CHECK(full_name_in_hosts(hosts, "node7") == "node7.cluster.example");
  CHECK(full_name_in_hosts(hosts, "node6") == "node6.example");
  CHECK(full_name_in_hosts(hosts, "node8").empty());
  CHECK(full_name_in_hosts(hosts, "node").empty());
  CHECK(full_name_in_hosts(hosts, "10.0.0.6").empty());
  CHECK(full_name_in_hosts("", "node7").empty());
}

TEST_CASE("a host that shares a line with localhost is not called localhost") {
  CHECK(full_name_in_hosts("127.0.0.1 localhost.localdomain localhost node7\n", "node7").empty());
  CHECK(full_name_in_hosts("127.0.0.1 localhost.localdomain node7\n127.0.1.1 node7.example node7", "node7") ==
        "node7.example");
}
