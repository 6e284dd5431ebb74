#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/environment.h"

// What is asked of an EvidenceCollector.
namespace elastic::run {

struct EvidenceWorker {
  int rank = 0;  // the global one
  int local_rank = 0;
  pid_t pid = 0;
};

// The evidence of one node about a round that makes no progress.
struct EvidenceOrder {
  std::int64_t round = 0;
  std::int64_t collection = 0;  // with the round it names the files
  std::string node = {};        // its name in the facts and the files
  std::int32_t world_size = 0;
  std::vector<EvidenceWorker> workers = {};  // those that live
  bool asks_ras = false;                     // NCCL RAS, which one node asks for the whole job: that of rank 0
  std::int64_t round_began_us = 0;           // CLOCK_MONOTONIC_RAW: Xids before it are of another round
  std::vector<std::string> variables = {};   // of the workers, beside those of EvidenceSettings
  bool ras_is_ours = false;                  // EvidenceTask::ras_is_ours
  std::string directory = {};                // for the files; it is made if it is not there. Empty: no files
  // The collection waits only for dumps, for which the worker store has asked these workers: for so long at least, and
  // for no longer than a stop may wait. Not set: it is a collection like any other.
  std::optional<std::int64_t> dumps_least_ms = {};
};

// How long a collection takes, in milliseconds.
struct EvidenceTimes {
  std::int64_t between_looks_ms = 2'000;        // at stacks, from the end of one to the beginning of the next
  std::int64_t reading_ms = 14'500;             // then what has not come is late
  std::int64_t writing_ms = 1'000;              // then the files are written without being waited for
  std::optional<std::int64_t> of_part_ms = {};  // the limit of each part; not set: its own (evidence::limit_ms)
};
// With these times a collection is over within so many milliseconds.
// | evidence of a node: all of it; its files | {kEvidenceMs}; 1 s | what has not come is late; the files are written
// without being waited for |
inline constexpr std::int64_t kEvidenceMs = 16'000;

// What all collections of a node have in common.
struct EvidenceSettings {
  Environment environment = {};    // the workers': it names the recorder's pipes and files, and RAS's address
  bool asks_gpus = true;           // whether the driver of GPUs is asked, where there is one
  std::string gpu_program = {};    // --probe-path; empty: elastic-run's own probe of GPUs
  std::string temporary = "/tmp";  // a directory for files
  EvidenceTimes times = {};
};

}  // namespace elastic::run
