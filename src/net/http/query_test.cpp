#include "src/net/http/query.h"

#include <doctest/doctest.h>

using namespace elastic::net::http;

TEST_CASE("any text comes back from a query as it was put in") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& text : {std::string(), std::string("host-0.rack_1~a"), std::string("a b&c=d%41+e"), all}) {
    CHECK(query_value("x=1&node=" + percent_encoded(text) + "&job=j", "node") == text);
  }
  CHECK(percent_encoded("a b") == "a%20b");
}

TEST_CASE("a parameter that is missing or badly encoded has no value") {
  CHECK(!query_value("", "node"));
  CHECK(!query_value("nodes=1&anode=2&node", "node"));
  CHECK(query_value("node=&node=2", "node") == "");
  CHECK(query_value("node=a+b", "node") == "a b");
  for (const char* bad : {"node=%", "node=%4", "node=%zz", "node=% 1", "node=%-1", "node=%+1"}) {
    CHECK(!query_value(bad, "node"));
  }
}
