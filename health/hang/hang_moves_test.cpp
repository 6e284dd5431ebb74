#include "health/hang/hang_judge.h"

#include <doctest/doctest.h>

#include "health/hang/hang_test_support.h"

namespace elastic::hang {
namespace {

// Before, the rank stood here.
void was_in(HungJob& job, int rank, const Stack& stack) {
  const auto now = job.rank(rank).stack;
  job.rank(rank).stack_then = job.put(rank, stack).stack;
  job.rank(rank).stack = now;
}

bool moves(const HungJob& job) { return is_moving(HangPicture(job.facts)); }

TEST_CASE("ranks that wait at the same place twice do not move, whatever the one does that they wait for") {
  HungJob job(2, 2);
  CHECK_FALSE(moves(job));
  job.put(1, stack_in("load_batch", "data.py", 88)).cpu_percent = 100;
  was_in(job, 1, stack_in("load_batch", "data.py", 89));
  CHECK_FALSE(moves(job));
}

TEST_CASE("a job moves if most ranks that wait have waited elsewhere before") {
  HungJob job(2, 2);
  for (int rank = 0; rank < 3; ++rank) was_in(job, rank, in_torch("barrier"));
  CHECK(moves(job));
}

TEST_CASE("a job none of whose ranks waits moves if most stand elsewhere or compute") {
  HungJob job(2, 2, stack_in("evaluate", "eval.py", 7));
  CHECK_FALSE(moves(job));
  was_in(job, 0, stack_in("evaluate", "eval.py", 6));
  was_in(job, 1, stack_in("evaluate", "eval.py", 6));
  CHECK_FALSE(moves(job));
  job.rank(2).cpu_percent = 97;
  CHECK(moves(job));
  job.rank(2).state = ThreadState::kStopped;
  CHECK_FALSE(moves(job));
}

TEST_CASE("ranks without two stacks say nothing") {
  HungJob job(2, 2, stack_in("evaluate", "eval.py", 7));
  for (int rank = 0; rank < 4; ++rank) was_in(job, rank, stack_in("evaluate", "eval.py", 6));
  for (int rank = 1; rank < 4; ++rank) job.rank(rank).stack_then.reset();
  CHECK(moves(job));
  job.rank(0).stack_then.reset();
  CHECK_FALSE(moves(job));
}

TEST_CASE("ranks that wait by the numbers of their collectives wait, though their stacks are lost") {
  HungJob job(2, 2);
  for (int rank = 0; rank < 3; ++rank) job.rank(rank).stack.reset();
  job.put(3, stack_in("load_batch", "data.py", 88)).cpu_percent = 100;
  CHECK(moves(job));
  job.record(7);
  job.let_lag(3);
  CHECK_FALSE(moves(job));
}

}  // namespace
}  // namespace elastic::hang
