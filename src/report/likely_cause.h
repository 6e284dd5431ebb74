#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "src/report/failure.h"

namespace elastic::report {

// The most bytes of a line that is quoted.
inline constexpr std::size_t kEvidenceBytes = 300;

// What most probably ended a worker, and the evidence.
struct Cause {
  std::string_view rule;  // the rule's name in the table, for tools: "cuda-out-of-memory"
  std::string sentence;   // what happened and what to do, without a period at its end
  std::string evidence;   // the line that shows it, printable, at most kEvidenceBytes + 3
  std::string source;     // where that line was found: "stderr", "error.json", "kernel log", "cgroup",
                          // "exit status"
  // The worker lost its peers, which is most often the consequence of a failure elsewhere.
  bool lost_peer = false;
};

// Applies the first rule of the table (cause_rules.h) that matches the worker; none if no rule does. What the kernel
// says comes first, then the exception that ended the worker, then its last output. If a worker ended with a traceback,
// what it printed before is not searched, for it had survived that.
std::optional<Cause> likely_cause(const FailedWorker& worker);

// The same by its error.json and stderr alone, also for a worker that was only stopped.
std::optional<Cause> cause_in_output(const FailedWorker& worker);

}  // namespace elastic::report
