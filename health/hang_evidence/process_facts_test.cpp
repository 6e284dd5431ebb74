#include "health/hang_evidence/process_facts.h"

#include <doctest/doctest.h>

namespace elastic::hang {
namespace {

// Seen twice within 2 s, at 100 ticks a second.
ProcessPair pair_of(char first, char second, std::uint64_t used, const char* wchan = "futex_do_wait") {
  return {.first = {.state = first, .started_ticks = 7, .cpu_ticks = 1000, .wchan = wchan},
          .second = {.state = second, .started_ticks = 7, .cpu_ticks = 1000 + used, .wchan = wchan},
          .ticks_between = 200,
          .ms_between = 2'000};
}

RankFacts only_one(const ProcessPair& pair) {
  const WorkerSamples worker{.rank = 3, .pid = 4711, .main_thread = pair};
  return rank_facts_of({&worker, 1}).at(0);
}

}  // namespace

TEST_CASE("a worker's facts are its state, for how long it was seen in it, where it waits and what it costs") {
  const RankFacts facts = only_one(pair_of('S', 'S', 1));
  CHECK(facts.rank == 3);
  CHECK(facts.pid == 4711);
  CHECK(facts.state == ThreadState::kSleeps);
  CHECK(facts.state_ms == 2'000);
  CHECK(facts.wchan == "futex_do_wait");
  CHECK(facts.cpu_percent == 0);
  CHECK(only_one(pair_of('R', 'R', 201, "")).state == ThreadState::kRuns);
  CHECK(only_one(pair_of('R', 'R', 201, "")).cpu_percent == 100);
  CHECK(only_one(pair_of('T', 'T', 0)).state == ThreadState::kStopped);
  CHECK(only_one(pair_of('D', 'D', 0)).state == ThreadState::kDisk);
}

TEST_CASE("a state that was seen once only is one of no time, and D alone is no state D") {
  const RankFacts facts = only_one(pair_of('S', 'D', 0));
  CHECK(facts.state == ThreadState::kSleeps);
  CHECK(facts.state_ms == 0);
}

TEST_CASE("what is gone between the samples is gone, and its processor time is not known") {
  ProcessPair pair = pair_of('S', 'S', 0);
  pair.second = {};
  const RankFacts facts = only_one(pair);
  CHECK(facts.state == ThreadState::kGone);
  CHECK(facts.cpu_percent == -1);
}

TEST_CASE("storage hangs for a node where a worker, or a child of one, is in D in a network file system") {
  WorkerSamples worker{.main_thread = pair_of('S', 'S', 0), .children = {pair_of('S', 'S', 0)}};
  CHECK(!storage_hangs_for({&worker, 1}));
  worker.children.push_back(pair_of('D', 'D', 0, "kernel_clone"));
  CHECK(!storage_hangs_for({&worker, 1}));
  worker.children.push_back(pair_of('D', 'D', 0, "nfs_wait_bit_killable"));
  CHECK(storage_hangs_for({&worker, 1}));
  worker = {.main_thread = pair_of('D', 'D', 0, "nfs_wait_bit_killable")};
  CHECK(storage_hangs_for({&worker, 1}));
  worker.main_thread.first.state = 'S';
  CHECK(!storage_hangs_for({&worker, 1}));
}

TEST_CASE("a worker is one line for people") {
  const WorkerSamples worker{.rank = 3, .pid = 4711, .main_thread = pair_of('S', 'S', 2)};
  CHECK(process_lines({&worker, 1}) ==
        std::vector<std::string>{"rank 3 (process 4711): sleeping in futex_do_wait, 1 % CPU"});
}

}  // namespace elastic::hang
