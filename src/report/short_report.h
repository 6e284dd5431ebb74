#pragma once

#include <cstddef>
#include <string>

#include "src/report/failure.h"

namespace elastic::report {

// The most of a short report, in bytes: what `kubectl logs --tail` and a container's termination message
// (terminationMessagePolicy FallbackToLogsOnError: 2,048 bytes or 80 lines) still show.
inline constexpr std::size_t kShortReportBytes = 2048;

// What a job ended by, in a few lines, fit for a terminal: the reason, the first failure and how it ended, the
// exception or the last line that it wrote, the likely cause, where the logs are. One line of a job that was stopped,
// and on a node on which the first failure was not (JobReport::first_failed_elsewhere); but there the cause follows
// that a worker of this node has told, where the first failure had only lost its peers. Empty for success.
std::string short_report(const JobReport& report);

// "exited with code 1", "was killed by SIGKILL, for memory".
std::string how_it_ended(const FailedWorker& worker);

}  // namespace elastic::report
