#include "health/progress/step_pattern.h"

#include <doctest/doctest.h>

#include "health/progress/limits.h"

using namespace elastic;
using namespace elastic::progress;

TEST_CASE("the group of a pattern is the step, wherever in a line it matches") {
  const auto pattern = StepPattern::make(R"(batch (\d+) of)");
  REQUIRE(pattern);
  CHECK(pattern->step_in("11:22:33 batch 42 of 100") == 42);
  CHECK_FALSE(pattern->step_in("batch of 100"));
  CHECK_FALSE(pattern->step_in(std::string("batch \xff of")));
  CHECK(StepPattern::make("n=( *[0-9]+)")->step_in("n=  7") == 7);
  CHECK_FALSE(StepPattern::make("n=(.*)")->step_in("n=7 of 9"));
  CHECK_FALSE(StepPattern::make("(n)?=")->step_in("="));
}

TEST_CASE("a pattern that is wrong is refused with the reason and what to do") {
  const auto why = [](const std::string& text) { return StepPattern::make(text).error().text(); };
  CHECK(why("batch (\\d+").find("missing )") != std::string::npos);
  CHECK(why("batch \\d+").find("it has no group; put parentheses around the step") != std::string::npos);
  CHECK(why("(a) (b)").find("it has 2 groups") != std::string::npos);
  CHECK(why("((((((a{100}){100}){100}){100}){100}){100})").find("--progress-pattern=") == 0);
  CHECK(why("(" + std::string(limits::kProgressPatternBytes, 'a') + ")").find("1024 is the most") != std::string::npos);
}

TEST_CASE("a pattern that backtracking would not finish is matched at once") {
  const auto pattern = StepPattern::make("(?:x+x+)+y(\\d)");
  REQUIRE(pattern);
  CHECK_FALSE(pattern->step_in(std::string(limits::kProgressLineBytes, 'x')));
}
