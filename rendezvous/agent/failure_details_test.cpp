#include "rendezvous/agent/failure_details.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

// Details that are being gathered.
FailureDetails being_gathered() {
  FailureDetails details;
  Effects out;
  details.want();
  details.gather(out);
  return details;
}

std::string heard(const Effect& effect) {
  return std::get<JobResultHeard>(std::get<ToCoordinator>(effect).message).details;
}

}  // namespace

TEST_CASE("details that are wanted are gathered once, for two seconds at most") {
  FailureDetails details;
  Effects out;
  details.gather(out);
  CHECK(out.empty());
  CHECK(!details.are_missing());
  details.want();
  CHECK(details.are_missing());
  CHECK(!details.are_being_gathered());
  details.gather(out);
  REQUIRE(out.size() == 2);
  CHECK(std::holds_alternative<GatherDetails>(out[0]));
  CHECK(std::get<StartTimer>(out[1]).delay_ms == 2000);
  CHECK(details.are_missing());
  CHECK(details.are_being_gathered());
  details.gather(out);
  CHECK(out.size() == 2);
}

TEST_CASE("details that are there are told to the coordinator, and a further answer is too late") {
  FailureDetails details = being_gathered();
  Effects out;
  details.gathered("Traceback", out);
  REQUIRE(out.size() == 2);
  CHECK(std::holds_alternative<StopTimer>(out[0]));
  CHECK(heard(out[1]) == "Traceback");
  CHECK(!details.are_missing());
  CHECK(details.own() == "Traceback");
  details.gathered("again", out);
  CHECK(out.size() == 2);
  CHECK(details.own() == "Traceback");
}

TEST_CASE("details that do not come in time are told as none, and those that come later are not taken") {
  FailureDetails details = being_gathered();
  Effects out;
  details.timed_out(out);
  REQUIRE(out.size() == 1);  // the timer has fired already
  CHECK(heard(out[0]).empty());
  CHECK(!details.are_missing());
  details.gathered("late", out);
  CHECK(out.size() == 1);
  CHECK(details.own().empty());
}

TEST_CASE("the report has what the coordinator told all nodes, or else what this node has gathered") {
  FailureDetails details = being_gathered();
  Effects out;
  CHECK(details.for_report().empty());
  details.gathered("own", out);
  CHECK(details.for_report() == "own");
  details.heard_text("another's");
  CHECK(details.for_report() == "another's");
}

TEST_CASE("a node that ends without details has none to wait for") {
  FailureDetails details = being_gathered();
  details.drop();
  CHECK(!details.are_missing());
  CHECK(!details.are_being_gathered());
}
