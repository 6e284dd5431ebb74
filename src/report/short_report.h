#pragma once

#include <cstddef>
#include <string>

#include "src/report/failure.h"

namespace elastic::report {

// The longest short report, in bytes: as much as a container's termination message still shows
// (terminationMessagePolicy FallbackToLogsOnError: 2,048 bytes or 80 lines).
inline constexpr std::size_t kShortReportBytes = 2048;

// Says in a few lines, fit for a terminal, what ended the job: the reason, the first failure and how it ended, the
// exception or the last line that it wrote, the likely cause, and where the logs are. It is one line for a job that was
// stopped, and on a node that did not have the first failure (JobReport::first_failed_elsewhere); there the cause
// follows if a worker of this node shows it, and the first failure had only lost its peers. Empty for success.
std::string short_report(const JobReport& report);

// "exited with code 1", "was killed by SIGKILL, for memory".
std::string how_it_ended(const FailedWorker& worker);

}  // namespace elastic::report
