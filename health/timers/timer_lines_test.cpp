#include "health/timers/timer_table.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "health/timers/limits.h"

using elastic::timers::TimerLines;

namespace {

std::vector<std::string> pushed(TimerLines& lines, std::string_view bytes) {
  std::vector<std::string> out;
  lines.push(bytes, [&](std::string_view line) { out.emplace_back(line); });
  return out;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("requests are cut at their line ends, whatever pieces they come in") {
  TimerLines lines;
  CHECK(pushed(lines, "one\ntwo\nth") == Lines{"one", "two"});
  CHECK(pushed(lines, "ree").empty());
  CHECK(pushed(lines, "\n\n") == Lines{"three", ""});
}

TEST_CASE("a line that is longer than any request is passed over, and the next one counts") {
  TimerLines lines;
  const std::string longest(elastic::limits::kFileTimerLineBytes, 'x');
  CHECK(pushed(lines, longest + "\n") == Lines{longest});
  CHECK(pushed(lines, longest).empty());
  CHECK(pushed(lines, "x").empty());
  CHECK(pushed(lines, "more").empty());
  CHECK(pushed(lines, "of it\nnext\n") == Lines{"next"});
  CHECK(pushed(lines, longest + "xyz\nnext\n") == Lines{"next"});
}

TEST_CASE("what has no line end yet can be forgotten") {
  TimerLines lines;
  CHECK(pushed(lines, "of the last round").empty());
  lines.clear();
  CHECK(pushed(lines, "of this one\n") == Lines{"of this one"});
  CHECK(pushed(lines, std::string(2 * elastic::limits::kFileTimerLineBytes, 'x')).empty());
  lines.clear();
  CHECK(pushed(lines, "short\n") == Lines{"short"});
}
