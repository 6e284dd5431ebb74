#include "rendezvous/locate/tenure.h"

#include <doctest/doctest.h>

#include <optional>

using namespace elastic::locate;

namespace {

const Claim kOurs{"10.0.0.5", 4711, "a1", 0, 5'000};
const Claim kOthers{"10.0.0.6", 4711, "a2", 0, 5'000};
constexpr ClaimTimes kTimes{{.loss_timeout_ms = 5'000}};

Claim renewed(std::int64_t renewals) {
  Claim claim = kOurs;
  claim.renewals = renewals;
  return claim;
}

Tenure begun(std::int64_t began_ms) {
  Tenure tenure(kTimes);
  tenure.begin(kOurs, began_ms, began_ms + 50);
  return tenure;
}

}  // namespace

TEST_CASE("a holder's time is over before anybody may take its claim over, though the clocks run apart by 1 %") {
  for (const std::int64_t timeout_ms : {1'000, 2'000, 5'000, 30'000, 600'000}) {
    CAPTURE(timeout_ms);
    const ClaimTimes times{{.loss_timeout_ms = timeout_ms}};
    CHECK(times.held_ms() * 101 / 100 <= times.lease.lease_ms());
    CHECK(times.taken_after_ms() * 99 / 100 >= times.lease.lease_ms());
    CHECK(times.renewal_ms() * 2 < times.held_ms());
  }
}

TEST_CASE("a claim gives the right to act from when its writing began, for as long as a lease lasts") {
  Tenure tenure = begun(1'000);
  CHECK(tenure.authority().ends_ms() == 1'000 + 2'970);
  CHECK(tenure.due_ms() == 2'000);
  CHECK(tenure.next() == renewed(1));
  CHECK(tenure.answered(renewed(1), 2'000, 2'400) == Tenure::Fate::kHeld);
  CHECK(tenure.authority().ends_ms() == 2'000 + 2'970);
  CHECK(tenure.next() == renewed(2));
}

TEST_CASE("a renewal that is not answered gives nothing, and one that is answered later gives it back") {
  Tenure tenure = begun(1'000);
  tenure.unanswered(2'000);
  tenure.unanswered(3'000);
  CHECK(tenure.due_ms() == 4'000);
  CHECK(tenure.authority().ends_ms() == 3'970);
  // The text was there all the time: no other node has had the claim.
  CHECK(tenure.standing() == kOurs);
  CHECK(tenure.answered(renewed(3), 9'000, 9'100) == Tenure::Fate::kHeld);
  CHECK(tenure.authority().ends_ms() == 9'000 + 2'970);
}

TEST_CASE("another's claim ends it at once") {
  Tenure tenure = begun(1'000);
  CHECK(tenure.answered(kOthers, 2'000, 2'100) == Tenure::Fate::kTaken);
  CHECK_FALSE(tenure.authority().holds(2'100));
}

TEST_CASE("a renewal of which only the answer was lost is found, and the next one goes on from it") {
  Tenure tenure = begun(1'000);
  tenure.unanswered(2'000);
  CHECK(tenure.next() == renewed(2));
  // The text was written at 2'000 at the earliest: other nodes count from then on.
  CHECK(tenure.answered(renewed(1), 3'000, 3'100) == Tenure::Fate::kAgain);
  CHECK(tenure.standing() == renewed(1));
  CHECK(tenure.next() == renewed(3));
  CHECK(tenure.authority().ends_ms() == 1'000 + 2'970);
  CHECK(tenure.answered(renewed(3), 3'100, 3'200) == Tenure::Fate::kHeld);
  CHECK(tenure.authority().ends_ms() == 3'100 + 2'970);
}

TEST_CASE("who finds its own claim without having been told acts when another that was overwritten cannot any more") {
  Tenure tenure(kTimes);
  tenure.find(kOurs, 1'000);
  CHECK_FALSE(tenure.authority().holds(1'000));
  CHECK(tenure.due_ms() == 1'000);
  CHECK(tenure.answered(renewed(1), 1'000, 1'050) == Tenure::Fate::kHeld);
  CHECK_FALSE(tenure.authority().holds(1'050));
  CHECK(tenure.answered(renewed(2), 2'000, 2'050) == Tenure::Fate::kHeld);
  CHECK_FALSE(tenure.authority().holds(2'050));
  CHECK(tenure.answered(renewed(3), 4'130, 4'131) == Tenure::Fate::kHeld);
  CHECK(tenure.authority().ends_ms() == 4'130 + 2'970);
}

TEST_CASE(
    "a renewal that took long, as of a process that was stopped while it wrote, is as good as one that was only "
    "found") {
  Tenure tenure = begun(1'000);
  CHECK(tenure.answered(renewed(1), 2'000, 9'000) == Tenure::Fate::kHeld);
  CHECK_FALSE(tenure.authority().holds(9'000));
  CHECK(tenure.answered(renewed(2), 9'020, 9'050) == Tenure::Fate::kHeld);
  CHECK_FALSE(tenure.authority().holds(9'050));
  CHECK(tenure.answered(renewed(3), 12'130, 12'150) == Tenure::Fate::kHeld);
  CHECK(tenure.authority().ends_ms() == 12'130 + 2'970);
  SUBCASE("the first one, too") {
    Tenure late(kTimes);
    late.begin(kOurs, 1'000, 3'600);
    CHECK_FALSE(late.authority().holds(3'600));
    CHECK(late.standing() == kOurs);
  }
}

TEST_CASE("a claim that was taken away is written anew, and given up for another's") {
  Tenure tenure = begun(1'000);
  CHECK(tenure.answered(std::nullopt, 2'000, 2'100) == Tenure::Fate::kAgain);
  CHECK_FALSE(tenure.standing());
  CHECK(tenure.authority().holds(2'100));  // its authority still holds
  SUBCASE("nobody else has been there") {
    CHECK(tenure.answered(renewed(2), 2'100, 2'200) == Tenure::Fate::kHeld);
    CHECK(tenure.authority().ends_ms() == 2'100 + 2'970);
  }
  SUBCASE("somebody was quicker") { CHECK(tenure.answered(kOthers, 2'100, 2'200) == Tenure::Fate::kTaken); }
  SUBCASE("its time was over: another may have had it, and ended the job in order") {
    CHECK(tenure.answered(std::nullopt, 7'000, 7'100) == Tenure::Fate::kGone);
    CHECK_FALSE(tenure.authority().holds(7'100));
  }
}
