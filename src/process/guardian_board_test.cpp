#include "src/process/guardian_board.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace elastic::process {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes word_of(const GuardianBoard& board) {
  const auto word = board.death_notice();
  return word ? Bytes(word->bytes.begin(), word->bytes.end()) : Bytes{};
}

}  // namespace

TEST_CASE("what one process has put on the board is what the other reads, also when the first is gone") {
  auto board = GuardianBoard::make();
  REQUIRE(board);
  CHECK_FALSE(board->lease());
  CHECK_FALSE(board->death_notice());
  const pid_t child = fork();
  if (child == 0) {
    board->set_lease(1234567890123);
    board->set_death_notice(std::array{*socket_address("127.0.0.1", 29400)}, Bytes{1, 2, 3});
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  CHECK(board->lease() == 1234567890123);
  CHECK(word_of(*board) == Bytes{1, 2, 3});
  board->set_lease({});
  CHECK_FALSE(board->lease());
}

TEST_CASE("of the death notices that are left on the board the last one counts, and an empty one takes it back") {
  auto board = GuardianBoard::make();
  REQUIRE(board);
  const std::array to = {*socket_address("127.0.0.1", 29400), *socket_address("::1", 29401)};
  const Bytes longest(kDeathNoticeBytes, 7);
  for (const Bytes& said : {Bytes{1}, Bytes{2, 2}, longest, Bytes{4}}) {
    board->set_death_notice(to, said);
    CHECK(word_of(*board) == said);
    CHECK(board->death_notice()->to.size() == 2);
  }
  board->set_death_notice(to, {});
  CHECK_FALSE(board->death_notice());
}

}  // namespace elastic::process
