#pragma once

#include <cstdint>

#include "rendezvous/agent/narrator.h"
#include "src/report/failure.h"

namespace elastic::run {

// Writes what happens on this node to the launcher's log, from which --events has it, too.
void tell(const agent::LogEvent& happening);
void tell(const agent::Happenings& happenings);

// Of a job that has not succeeded: what has failed first, and what most probably was the cause.
void tell_failure(const report::JobReport& report);
// The launcher ends with this status, so many milliseconds after it began.
void tell_end(int status, std::int64_t milliseconds);

}  // namespace elastic::run
