#include "cli/run/hang_signs.h"

#include <doctest/doctest.h>

namespace elastic::run {
namespace {

HangSigns::Seen process(std::int64_t pid, char state, std::uint64_t cpu, std::uint64_t bytes,
                        std::optional<int> local_rank = {}) {
  return {pid, local_rank, {.state = state, .started_ticks = 7, .cpu_ticks = cpu, .bytes = bytes}};
}

struct Looks {
  HangSigns::Signs at(std::int64_t now_ms, std::vector<HangSigns::Seen> processes) {
    return signs.signs_in(processes, now_ms);
  }
  HangSigns signs;
};

TEST_CASE("a worker that waits for a disk shows it at the second look, and only if it used no processor time between") {
  Looks node;
  CHECK_FALSE(node.at(0, {process(10, 'D', 5, 0, 0)}).waits_for_disk);
  CHECK(node.at(2'500, {process(10, 'D', 5, 0, 0)}).waits_for_disk);
  CHECK(node.signs.since_ms(0) == 0);
  CHECK_FALSE(node.at(5'000, {process(10, 'D', 9, 0, 0)}).waits_for_disk);
  CHECK(node.signs.since_ms(0) == 5'000);
  CHECK_FALSE(node.at(7'500, {process(10, 'S', 9, 0, 0)}).waits_for_disk);
}

TEST_CASE("a worker that is stopped, or traced, shows it at the second look; a child that is stopped is no sign") {
  Looks node;
  CHECK_FALSE(node.at(0, {process(10, 'T', 5, 0, 0), process(11, 'T', 5, 0)}).is_stopped);
  CHECK(node.at(2'500, {process(10, 't', 5, 0, 0), process(11, 'T', 5, 0)}).is_stopped);
  CHECK_FALSE(node.at(5'000, {process(10, 'S', 5, 0, 0), process(11, 'T', 5, 0)}).is_stopped);
}

TEST_CASE("disks move when all processes together read or write 1 MB a second between two looks") {
  Looks node;
  CHECK_FALSE(node.at(0, {process(10, 'S', 5, 9'000'000, 0), process(11, 'S', 5, 0)}).disks_move);
  CHECK(node.at(2'000, {process(10, 'S', 5, 10'000'000, 0), process(11, 'S', 5, 1'000'000)}).disks_move);
  CHECK_FALSE(node.at(4'000, {process(10, 'S', 5, 10'900'000, 0), process(11, 'S', 5, 2'000'000)}).disks_move);
}

TEST_CASE("a process that has got the number of another one has moved nothing") {
  Looks node;
  node.at(0, {process(10, 'S', 5, 1'000'000, 0)});
  HangSigns::Seen other = process(10, 'S', 5, 9'000'000, 0);
  other.is.started_ticks = 8;
  CHECK_FALSE(node.at(1'000, {other}).disks_move);
  node.at(2'000, {});
  CHECK(node.signs.since_ms(0) == std::nullopt);
}

}  // namespace
}  // namespace elastic::run
