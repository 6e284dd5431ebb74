#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "src/report/failure.h"

namespace elastic::report {

// The most of a quoted line, in bytes.
inline constexpr std::size_t kEvidenceBytes = 300;

// What most probably ended a worker, and what says so.
struct Cause {
  std::string_view rule;  // the rule's name in the table, for tools: "cuda-out-of-memory"
  std::string sentence;   // what happened and what to do, without a period at its end
  std::string evidence;   // the line that says so, printable, at most kEvidenceBytes + 3
  std::string source;     // where that line stands: "stderr", "error.json", "kernel log", "cgroup",
                          // "exit status"
  // The worker lost its peers: most often the consequence of a failure elsewhere.
  bool lost_peer = false;
};

// The first rule of the table (cause_rules.h) that fits the worker; nothing if none does. What the
// kernel says comes first, then the exception that the worker died of, then its last output. What a
// worker that ended with a traceback printed before it is not held against it, for it had survived
// that.
std::optional<Cause> likely_cause(const FailedWorker& worker);

// The same of its error.json and stderr alone, and also of a worker that was only stopped.
std::optional<Cause> cause_in_output(const FailedWorker& worker);

}  // namespace elastic::report
