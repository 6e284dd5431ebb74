#include "src/base/state_table.h"

#include <doctest/doctest.h>

#include <string>

#include "src/base/check_test_support.h"

using namespace elastic;

namespace {

struct Knock {
  int times = 0;
};

// A door of three states.
struct Door {
  void open(const Knock& knock, std::string& out) { out += "opens after " + std::to_string(knock.times); }
  void answer(const Knock&, std::string& out) { out += "answers"; }
};
using DoorCell = Cell<Door, Knock, std::string&>;

constexpr std::array<DoorCell, 3> kRow =
    row_of(std::array<DoorCell, 3>{&Door::open, ignored, DoorCell()}, DoorCell(impossible));

std::string knock(std::size_t state) {
  Door door;
  std::string out;
  run_cell(kRow, state, door, Knock{3}, out);
  return out;
}

}  // namespace

TEST_CASE("a cell calls its handler with the event, or does nothing") {
  CHECK(knock(0) == "opens after 3");
  CHECK(knock(1).empty());
}

TEST_CASE(
    "an event that nobody sends in a state is a broken invariant there, and a cell that is not given is the others'") {
  const std::string failed = failed_check([] { knock(2); });
  CHECK(failed.ends_with("Knock in state 2"));
  const auto all = row_of(std::array<DoorCell, 2>{}, DoorCell(&Door::answer));
  Door door;
  std::string out;
  run_cell(all, 1, door, Knock{}, out);
  CHECK(out == "answers");
}
