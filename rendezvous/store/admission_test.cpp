#include "rendezvous/store/admission.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using elastic::store::Admission;

TEST_CASE("who is not named is not admitted, in whatever form an address comes; this host itself always is") {
  const Admission admission({"10.0.0.1", "::ffff:10.0.0.2", "FE80::1%eth0", "2001:db8::7"});
  for (const char* address : {"10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2", "fe80::1%ens3", "fe80::1", "2001:DB8::7"}) {
    CAPTURE(address);
    CHECK(admission.admits(address));
  }
  for (const char* address : {"127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1", ""})
    CHECK(admission.admits(address));
  for (const char* address : {"10.0.0.3", "10.0.0.11", "::ffff:10.0.0.3", "fe80::2", "2001:db8::8"}) {
    CAPTURE(address);
    CHECK(!admission.admits(address));
  }
}

TEST_CASE("without a list everybody is admitted, and with an empty one only this host") {
  CHECK(Admission().admits("192.0.2.1"));
  CHECK(!Admission(std::vector<std::string>{}).admits("192.0.2.1"));
  CHECK(Admission(std::vector<std::string>{}).admits("127.0.0.1"));
}

TEST_CASE("why somebody is not admitted says whose addresses are, and what to do") {
  const std::vector<std::string> addresses{"10.0.0.1"};
  const std::string remedy =
      " has this address; if it belongs to the job all the same (behind address translation, say), give "
      "--rdzv-conf=store_admits=all";
  CHECK(Admission(addresses).why_not() == "no node of this round" + remedy);
  CHECK(Admission(addresses, Admission::Whose::kHost).why_not() == "no interface of this host" + remedy);
}
