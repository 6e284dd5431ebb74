#pragma once

#include <span>
#include <string>

#include "rendezvous/protocol/messages.h"
#include "src/report/failure.h"

namespace elastic::run {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUnhealthy = 69;  // sysexits' EX_UNAVAILABLE: the check has evicted this node
inline constexpr int kExitSignal = 128;    // plus the signal's number

// How the job has ended, as far as this node's exit status depends on it.
struct EndedJob {
  const protocol::JobResult& job_result;
  const report::FailedWorker* first = nullptr;  // the first failure, as the report has it; null: there is none
  std::span<const protocol::WorkerFailure> failures = {};  // of this node's workers in its last round
  int local_world_size = 1;
};

// The status that elastic-run exits with (docs/supervision.md). `propagate_exit_code`: that of the workers is asked
// for.
int final_status(const EndedJob& job, bool propagate_exit_code);

// Why the job has ended, as this node says it last. `advice`: what it knows of the place where nodes meet; it is said
// where too few have come to the first round. `has_been_in_round`: this node.
std::string final_reason(const protocol::JobResult& job_result, bool has_been_in_round, const std::string& advice);

}  // namespace elastic::run
