#include "health/hang_evidence/process_facts.h"

#include <algorithm>

#include "health/hang/stack_words.h"
#include "src/base/text.h"

namespace elastic::hang {
namespace {

evidence::ProcessClass class_of(const ProcessPair& pair) {
  return evidence::class_of(pair.first, pair.second, pair.ticks_between);
}

ThreadState state_of(const ProcessPair& pair) {
  switch (class_of(pair)) {
    case evidence::ProcessClass::kRun: return ThreadState::kRuns;
    case evidence::ProcessClass::kSleep: return ThreadState::kSleeps;
    case evidence::ProcessClass::kDisk: return ThreadState::kDisk;
    case evidence::ProcessClass::kStopped: return ThreadState::kStopped;
    case evidence::ProcessClass::kGone: return ThreadState::kGone;
  }
  return ThreadState::kUnknown;
}

// Of one core; -1 where it is not known. A tick more than there was time for is a matter of rounding.
std::int32_t percent_of(const ProcessPair& pair) {
  const auto used = evidence::ticks_used(pair.first, pair.second);
  if (!used || pair.ticks_between == 0) return -1;
  return static_cast<std::int32_t>(std::min<std::uint64_t>(*used * 100 / pair.ticks_between, 100));
}

bool waits_for_storage(const ProcessPair& pair) {
  return class_of(pair) == evidence::ProcessClass::kDisk && is_network_storage(pair.second.wchan);
}

}  // namespace

std::vector<RankFacts> rank_facts_of(std::span<const WorkerSamples> workers) {
  std::vector<RankFacts> all;
  for (const WorkerSamples& worker : workers) {
    const ProcessPair& pair = worker.main_thread;
    RankFacts& facts = all.emplace_back();
    facts.rank = worker.rank;
    facts.pid = worker.pid;
    facts.state = state_of(pair);
    facts.state_ms = pair.first.state == pair.second.state ? pair.ms_between : 0;
    facts.wchan = pair.second.wchan;
    facts.cpu_percent = percent_of(pair);
    facts.reads_dump_key = worker.reads_dump_key;
  }
  return all;
}

bool storage_hangs_for(std::span<const WorkerSamples> workers) {
  return std::ranges::any_of(workers, [](const WorkerSamples& worker) {
    return waits_for_storage(worker.main_thread) || std::ranges::any_of(worker.children, waits_for_storage);
  });
}

std::vector<std::string> process_lines(std::span<const WorkerSamples> workers) {
  std::vector<std::string> lines;
  for (const WorkerSamples& worker : workers) {
    const ProcessPair& pair = worker.main_thread;
    std::string line =
        format("rank {} (process {}): {}", worker.rank, worker.pid, describe(class_of(pair), pair.second));
    if (const auto percent = percent_of(pair); percent >= 0) line += format(", {} % CPU", percent);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace elastic::hang
