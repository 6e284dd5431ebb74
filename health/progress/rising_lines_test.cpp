#include "health/progress/rising_lines.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace elastic::progress;

namespace {

// The steps that are seen in these lines; -1 for a line without one.
std::vector<std::int64_t> steps(RisingLines& rising, const std::vector<std::string>& lines) {
  std::vector<std::int64_t> out;
  for (const std::string& line : lines) out.push_back(rising.note_line(line).value_or(-1));
  return out;
}

std::vector<std::string> repeated(const std::string& before, const std::string& after, std::vector<int> numbers) {
  std::vector<std::string> out;
  for (const int number : numbers) out.push_back(before + std::to_string(number) + after);
  return out;
}

bool sees_any(const std::vector<std::string>& lines) {
  RisingLines rising;
  bool seen = false;
  for (const std::string& line : lines) seen = rising.note_line(line).has_value() || seen;
  return seen;
}

}  // namespace

TEST_CASE("a number that has risen three times in the same line is a step, and each rise after that") {
  RisingLines rising;
  CHECK(steps(rising, repeated("done with batch ", ", loss 0.5", {1, 2, 3, 4, 4, 5})) ==
        std::vector<std::int64_t>{-1, -1, -1, 4, -1, 5});
}

TEST_CASE("a line that repeats its number is no progress") {
  CHECK_FALSE(sees_any(repeated("rank 3 of ", " is here", {8, 8, 8, 8, 8, 8, 8, 8})));
}

TEST_CASE("a number that goes up and down is no progress") {
  CHECK_FALSE(sees_any(repeated("used ", " MiB", {10, 12, 11, 13, 14, 12, 13, 10})));
}

TEST_CASE("times, dates, fractions and identifiers are no steps") {
  std::vector<std::string> lines;
  for (int i = 10; i < 30; ++i) {
    const std::string n = std::to_string(i);
    lines.push_back("2026-03-01 11:22:" + n + ",123 NCCL INFO channel 0 is idle for " + n + " seconds, " + n + " s, " +
                    n + "ms, 0." + n + ", v1." + n + ", gpu" + n + ", at 17000000" + n + " " + n + "%");
  }
  CHECK_FALSE(sees_any(lines));
}

TEST_CASE("a warning, another try, or a wait is no progress, whatever number rises in it") {
  CHECK_FALSE(sees_any(repeated("Warning: queue has ", " entries", {1, 2, 3, 4, 5, 6, 7})));
  CHECK_FALSE(sees_any(repeated("connect: RETRY ", "", {1, 2, 3, 4, 5, 6, 7})));
  CHECK_FALSE(sees_any(repeated("attempt ", " of 20", {1, 2, 3, 4, 5, 6, 7})));
  CHECK_FALSE(sees_any(repeated("still here: ", "", {1, 2, 3, 4, 5, 6, 7})));
}

TEST_CASE("where several numbers rise the one that rises longest is the step, and an epoch begins the next one again") {
  RisingLines rising;
  const auto seen = steps(rising, {"epoch 1 batch 1", "epoch 1 batch 2", "epoch 1 batch 3", "epoch 1 batch 4",
                                   "epoch 2 batch 1", "epoch 2 batch 2"});
  CHECK(seen == std::vector<std::int64_t>{-1, -1, -1, 4, 1, 2});
}

TEST_CASE("other lines between do not matter, and more kinds of lines than are remembered cost no memory") {
  RisingLines rising;
  std::vector<std::int64_t> seen;
  for (int i = 1; i <= 6; ++i) {
    for (char c = 'a'; c < 'k'; ++c) CHECK_FALSE(rising.note_line(std::string(1, c) + " constant 5"));
    seen.push_back(rising.note_line("at item " + std::to_string(i)).value_or(-1));
  }
  CHECK(seen == std::vector<std::int64_t>{-1, -1, -1, 4, 5, 6});
  for (int i = 0; i < 10'000; ++i)
    CHECK_FALSE(rising.note_line(std::string(static_cast<std::size_t>(i % 200), 'x') + " 1"));
}
