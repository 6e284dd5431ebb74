#include "src/status/lead.h"

#include <doctest/doctest.h>

using namespace elastic::status;
using Kind = Whereabouts::Kind;

namespace {

Whereabouts elsewhere(const char* address, bool is_on_this_host = false) {
  return {
      .kind = Kind::kElsewhere, .job = "night", .address = address, .port = 40123, .is_on_this_host = is_on_this_host};
}

}  // namespace

TEST_CASE(
    "a request about a job whose coordinator is elsewhere is redirected there, and one about another job is served") {
  const Whereabouts is = elsewhere("10.0.0.2");
  CHECK(lead_of(is, "", false) == Lead::kRedirect);
  CHECK(lead_of(is, "night", false) == Lead::kRedirect);
  CHECK(lead_of(is, "night", true) == Lead::kRedirect);
  CHECK(lead_of(is, "", true) == Lead::kServe);
  CHECK(lead_of(is, "day", true) == Lead::kServe);
  CHECK(lead_of(is, "day", false) == Lead::kServe);
}

TEST_CASE("while the coordinator is in this process all is served, and while nobody knows it nothing of its job is") {
  const Whereabouts here{.job = "night"};
  const Whereabouts lost{.kind = Kind::kUnknown, .job = "night"};
  for (const char* job : {"", "night", "day"}) {
    for (const bool has_others : {false, true}) CHECK(lead_of(here, job, has_others) == Lead::kServe);
  }
  CHECK(lead_of(lost, "", false) == Lead::kNotYet);
  CHECK(lead_of(lost, "night", true) == Lead::kNotYet);
  CHECK(lead_of(lost, "", true) == Lead::kServe);
  CHECK(lead_of(lost, "day", true) == Lead::kServe);
}

TEST_CASE("the place is one that the caller reaches") {
  const Caller far{"10.0.0.9", "10.0.0.1"};
  const Caller near{"127.0.0.1", "127.0.0.1"};
  CHECK(place_for(elsewhere("10.0.0.2"), far) == "10.0.0.2:40123");
  CHECK(place_for(elsewhere("10.0.0.2"), near) == "10.0.0.2:40123");
  CHECK(place_for(elsewhere("::ffff:10.0.0.2"), far) == "10.0.0.2:40123");
  CHECK(place_for(elsewhere("fd00::2"), far) == "[fd00::2]:40123");
  // Another node of this host has it.
  CHECK(place_for(elsewhere("127.0.0.1", true), far) == "10.0.0.1:40123");
  CHECK(place_for(elsewhere("127.0.0.1", true), {"fd00::9", "fd00::1"}) == "[fd00::1]:40123");
  CHECK(place_for(elsewhere("127.0.0.1", true), near) == "127.0.0.1:40123");
  CHECK(place_for(elsewhere("10.0.0.1", true), near) == "127.0.0.1:40123");
  CHECK(place_for(elsewhere("10.0.0.1", true), far) == "10.0.0.1:40123");
}

TEST_CASE("the target of a request goes with it") {
  CHECK(url_of("10.0.0.2:40123", "/status?job=a%20b") == "http://10.0.0.2:40123/status?job=a%20b");
}
