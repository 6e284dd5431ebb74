#pragma once

#include <cstdint>

#include "rendezvous/events/node_event_log.h"
#include "src/report/failure.h"

namespace elastic::run {

// Writes an event to the launcher's log, and so to the file of --events.
void write_log(const events::LogEvent& event);
void write_log(const events::LogEvents& events);

// The event of a job that has not succeeded: its first failure, and the most probable cause.
void log_failure(const report::JobReport& report);
// The event of a launcher that ends with this exit status, so many milliseconds after it began.
void log_end(int status, std::int64_t milliseconds);

}  // namespace elastic::run
