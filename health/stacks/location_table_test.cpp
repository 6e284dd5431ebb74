#include "health/stacks/python_stacks.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace elastic;

namespace {

// The lines of the first `count` code units.
std::vector<int> lines(std::vector<std::uint8_t> table, std::uint64_t count) {
  std::vector<int> found;
  for (std::uint64_t unit = 0; unit < count; ++unit) found.push_back(stacks::line_at(table, 10, unit));
  return found;
}

}  // namespace

TEST_CASE("each kind of entry moves the line as CPython's format says") {
  // Short; one line with a change of 0, 1, 2; no columns, by -3; long, by +100; no line.
  CHECK(lines({0x80, 0x00}, 2) == std::vector<int>{10, 0});
  CHECK(lines({0x81, 0x12}, 3) == std::vector<int>{10, 10, 0});
  CHECK(lines({0xd0, 1, 2, 0xd8, 1, 2, 0xe0, 1, 2}, 3) == std::vector<int>{10, 11, 13});
  CHECK(lines({0xe8, 0x07, 0xd8, 1, 2}, 2) == std::vector<int>{7, 8});
  CHECK(lines({0xf0, 0x48, 0x03, 0x00, 0x01, 0x01}, 1) == std::vector<int>{110});
  CHECK(lines({0xf8, 0xd8, 1, 2}, 2) == std::vector<int>{0, 11});
}

TEST_CASE("a damaged table gives no line") {
  CHECK(lines({}, 1) == std::vector<int>{0});
  CHECK(lines({0x00}, 1) == std::vector<int>{0});
  CHECK(lines({0xe8}, 1) == std::vector<int>{0});
  CHECK(lines({0xe8, 0x40}, 1) == std::vector<int>{0});
  CHECK(lines({0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f}, 1) == std::vector<int>{0});
  CHECK(lines({0xe8, 0x29}, 1) == std::vector<int>{0});  // line -10
}
