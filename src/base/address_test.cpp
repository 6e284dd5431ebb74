#include "src/base/address.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE("an IPv4 address in IPv6's clothes is the IPv4 address") {
  CHECK(without_mapping("::ffff:10.0.0.1") == "10.0.0.1");
  CHECK(without_mapping("::FFFF:10.0.0.1") == "10.0.0.1");
  CHECK(without_mapping("10.0.0.1") == "10.0.0.1");
  CHECK(without_mapping("::1") == "::1");
  CHECK(without_mapping("::ffff:a00:1") == "::ffff:a00:1");  // inet_ntop never writes it so
  CHECK(without_mapping("fd00::ffff:10") == "fd00::ffff:10");
  CHECK(without_mapping("").empty());
}

TEST_CASE("loopback is all of 127/8 and ::1, and nothing else") {
  for (const char* address : {"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1"}) {
    CAPTURE(address);
    CHECK(is_loopback(address));
  }
  for (const char* address : {"10.0.0.1", "128.0.0.1", "::", "0.0.0.0", "::2", "fe80::1", "1127.0.0.1", ""}) {
    CAPTURE(address);
    CHECK_FALSE(is_loopback(address));
  }
}

TEST_CASE("0.0.0.0 and :: stand for the host itself") {
  CHECK(is_unspecified("0.0.0.0"));
  CHECK(is_unspecified("::"));
  CHECK(is_unspecified("::ffff:0.0.0.0"));
  CHECK_FALSE(is_unspecified("127.0.0.1"));
  CHECK_FALSE(is_unspecified("::1"));
}

TEST_CASE("one address is one address, mapped or not, with a scope or without") {
  CHECK(same_address("10.0.0.1", "::ffff:10.0.0.1"));
  CHECK(same_address("fe80::1%eth0", "fe80::1"));
  CHECK(same_address("FD00::A", "fd00::a"));
  CHECK_FALSE(same_address("10.0.0.1", "10.0.0.11"));
  CHECK_FALSE(same_address("::1", "127.0.0.1"));
}
