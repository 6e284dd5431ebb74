#include "rendezvous/locate/claim.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "src/base/limits.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::locate;

namespace {

const Claim kThere{"10.0.0.5", 4711, "a1", 7, 5'000};
constexpr std::int64_t kTakenMs = 3'130;

ClaimView there(Tried tried = Tried::kNot, std::int64_t unchanged_ms = 0) {
  return {.there = kThere, .tried = tried, .unchanged_ms = unchanged_ms};
}
ClaimView nobody() { return {}; }
ClaimView never_host(ClaimView view) {
  view.may_host = false;
  return view;
}
ClaimView belonging(ClaimView view) {
  view.belongs = true;
  return view;
}
ClaimView hosting(ClaimView view) {
  view.hosts = true;
  return view;
}
ClaimView own(ClaimView view) {
  view.is_own = true;
  return view;
}

}  // namespace

TEST_CASE("what a node does follows from what is in the place and how the last attempts at it ended") {
  struct Row {
    ClaimView view;
    ClaimStep step;
    std::string reason;
  };
  const std::vector<Row> rows{
      {nobody(), ClaimStep::kClaim, "no node had claimed it"},
      {never_host(nobody()), ClaimStep::kWait, "no node hosts the coordinator yet, and this one may not (is_host=0)"},
      {belonging(nobody()), ClaimStep::kWait, "the job's coordinator has ended, and no node hosts another one"},
      {hosting(belonging(nobody())), ClaimStep::kClaim, "its own claim was removed"},
      {hosting(belonging(there())), ClaimStep::kConnect, "it is there"},
      {there(), ClaimStep::kConnect, "it is there"},
      {there(Tried::kAnswered), ClaimStep::kConnect, "it is there"},
      {there(Tried::kRefused), ClaimStep::kWait,
       "10.0.0.5:4711 holds the claim, but no process listens there; another node takes over once the claim has not "
       "been renewed for 3130 ms"},
      {there(Tried::kStranger), ClaimStep::kWait,
       "10.0.0.5:4711 holds the claim, but the server there is not a coordinator; another node takes over once the "
       "claim "
       "has not been renewed for 3130 ms"},
      {there(Tried::kSilent, kTakenMs - 1), ClaimStep::kWait,
       "10.0.0.5:4711 holds the claim, but it does not answer; another node takes over once the claim has not been "
       "renewed for 3130 ms"},
      {there(Tried::kNot, kTakenMs - 1), ClaimStep::kConnect, "it is there"},
      {there(Tried::kNot, kTakenMs), ClaimStep::kClaim, "10.0.0.5:4711 has not renewed its claim for 3130 ms"},
      {there(Tried::kAnswered, kTakenMs), ClaimStep::kClaim, "10.0.0.5:4711 has not renewed its claim for 3130 ms"},
      {belonging(there(Tried::kRefused, kTakenMs)), ClaimStep::kClaim,
       "10.0.0.5:4711 has not renewed its claim for 3130 ms, and no process listens there"},
      {never_host(there(Tried::kRefused)), ClaimStep::kWait,
       "10.0.0.5:4711 holds the claim, but no process listens there"},
      {never_host(there(Tried::kNot, 3 * kTakenMs)), ClaimStep::kConnect, "it is there"},
      {own(there()), ClaimStep::kConnect, "it is this node's own"},
      {own(there(Tried::kRefused, 3 * kTakenMs)), ClaimStep::kConnect, "it is this node's own"},
  };
  for (const Row& row : rows) {
    const ClaimDecision decision = decide_claim(row.view);
    CAPTURE(row.reason);
    CHECK(decision.step == row.step);
    CHECK(decision.reason == row.reason);
  }
}

TEST_CASE("a claim counts from when it was first seen exactly as it is") {
  Claim renewed = kThere;
  renewed.renewals = 8;
  ClaimSight sight;
  CHECK(sight.seen(kThere, 100) == 0);
  CHECK(sight.seen(kThere, 3'100) == 3'000);
  CHECK(sight.seen(renewed, 3'200) == 0);
  CHECK(sight.seen(renewed, 3'300) == 100);
  // An earlier text never comes back after a renewal. If it did it would count as a new one.
  CHECK(sight.seen(kThere, 3'400) == 0);
}

TEST_CASE("what an attempt has shown holds until the claim is renewed") {
  Claim renewed = kThere;
  renewed.renewals = 8;
  ClaimTrials trials;
  CHECK(trials.last(kThere) == Tried::kNot);
  trials.tried(kThere, Tried::kSilent);
  CHECK(trials.last(kThere) == Tried::kSilent);
  CHECK(trials.last(renewed) == Tried::kNot);
  trials.tried(renewed, Tried::kAnswered);
  CHECK(trials.last(kThere) == Tried::kNot);
}

TEST_CASE("a claim is read as it was written") {
  CHECK(claim_text(kThere) ==
        R"({"version":3,"address":"10.0.0.5","port":4711,"agent":"a1","renewals":7,"loss_timeout_ms":5000,"term":1})");
  CHECK(read_claim(claim_text(kThere)).value() == kThere);
  CHECK(same_holder(kThere, {"10.0.0.5", 4711, "a1", 8, 5'000}));
  CHECK_FALSE(same_holder(kThere, {"10.0.0.5", 4711, "a2", 7}));
  CHECK(claim_endpoint({"fd00::5", 1, "a"}) == "[fd00::5]:1");
  for (const char* text :
       {"", "x", "[]", "{}", "7", "{\"version\":3}",
        R"({"version":3,"address":"a","port":5,"agent":"b","renewals":-1,"loss_timeout_ms":5000,"term":1})",
        R"({"version":3,"address":"a","port":5,"agent":"b","renewals":1,"term":1})",
        R"({"version":3,"address":"a","port":5,"agent":"b","renewals":1,"loss_timeout_ms":0,"term":1})",
        R"({"version":3,"address":"a","port":0,"agent":"b","renewals":1,"loss_timeout_ms":5000,"term":1})",
        R"({"version":3,"address":"a","port":65536,"agent":"b","renewals":1,"loss_timeout_ms":5,"term":1})",
        R"({"version":3,"address":"a","port":5,"agent":"b","renewals":1,"loss_timeout_ms":5000})",
        R"({"version":3,"address":"a","port":5,"agent":"b","renewals":1,"loss_timeout_ms":5000,"term":0})",
        R"({"version":3,"address":"","port":5,"agent":"b","renewals":1,"loss_timeout_ms":5000,"term":1})",
        "import os\n"}) {
    CAPTURE(text);
    CHECK(!read_claim(text));
  }
  for (const char* version : {"2", "4"}) {
    const auto other = read_claim(format(R"({{"version":{},"address":"a","port":5,"agent":"b"}})", version));
    CHECK(other.error().reason == "it was written by another version of elastic-run");
  }
}

TEST_CASE("a file has the claims of several jobs") {
  const std::string odd = "j\xff\"\n";
  const std::string other = claim_text({"::1", 5, "a2", 0, 5'000});
  const std::string one = file_with_claim("", "job", claim_text(kThere)).value();
  CHECK(one ==
        "{\"version\":3,\"jobs\":{\"job\":{\"address\":\"10.0.0.5\",\"port\":4711,\"agent\":\"a1\",\"renewals\":7,"
        "\"loss_timeout_ms\":5000,\"term\":1}}}\n");
  const std::string two = file_with_claim(one, odd, other).value();
  CHECK(claim_in_file(two, "job").value() == claim_text(kThere));
  CHECK(claim_in_file(two, odd).value() == other);
  CHECK(claim_in_file(two, "third").value().empty());
  CHECK(claim_in_file("", "job").value().empty());
  CHECK(file_with_claim(two, odd, "").value() == one);
  CHECK(file_with_claim(one, "job", "").value().empty());
  CHECK(claim_in_file("print('train')\n", "job").error().reason ==
        "it holds something that elastic-run has not written");
  CHECK(!file_with_claim("print('train')\n", "job", claim_text(kThere)));
  CHECK(!claim_in_file(claim_text(kThere), "job"));  // the value of a key is not the contents of a file
}

TEST_CASE("a file takes no more jobs than it can hold") {
  std::string file;
  for (std::size_t i = 0; i < limits::kClaimsPerFile; ++i) {
    file = file_with_claim(file, format("job{}", i), claim_text(kThere)).value();
  }
  CHECK(!file_with_claim(file, "more", claim_text(kThere)));
  CHECK(file_with_claim(file, "job0", claim_text({"10.0.0.6", 1, "b", 0, 5'000})));
  CHECK(claim_in_file(file, "job0"));
}

TEST_CASE("a claim names the address by which others reach this node") {
  const std::vector<std::string> all{"127.0.0.1", "169.254.1.1", "fe80::5", "fd00::5", "10.0.0.5", "192.168.7.5"};
  CHECK(claim_address("node3", all) == "node3");
  CHECK(claim_address("", all) == "10.0.0.5");
  CHECK(claim_address("", {"::1", "fe80::5", "fd00::5"}) == "fd00::5");
  CHECK(claim_address("", {"127.0.0.1", "FE80::1"}) == "127.0.0.1");
}
