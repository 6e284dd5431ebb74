#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "health/evidence/process_state.h"
#include "health/hang/hang_facts.h"

// What /proc says of the workers, as facts about a hang.
namespace elastic::hang {

// A process, seen twice.
struct ProcessPair {
  evidence::ProcessSample first = {};
  evidence::ProcessSample second = {};
  std::uint64_t ticks_between = 0;  // of the clock by which processor time is counted
  std::int64_t ms_between = 0;      // 0: the processor time is not known
};

// A worker: its main thread, the process as a whole, and what it has started.
struct WorkerSamples {
  std::int32_t rank = 0;
  std::int64_t pid = 0;
  ProcessPair main_thread = {};
  std::vector<ProcessPair> children = {};
  bool reads_dump_key = false;  // RankFacts::reads_dump_key
};

// The workers of a node; `state_ms` is the time between the samples where both have the same state, else 0.
std::vector<RankFacts> rank_facts_of(std::span<const WorkerSamples> workers);
// Whether a worker, or what one has started, waits uninterruptibly in a network file system.
bool storage_hangs_for(std::span<const WorkerSamples> workers);
// For people: "rank 3 (process 4711): sleeping in futex_do_wait, syscall 202".
std::vector<std::string> process_lines(std::span<const WorkerSamples> workers);

}  // namespace elastic::hang
