#pragma once

#include <string>

#include "src/runtime/launch_settings.h"

namespace elastic::runtime {

// Serves the coordinator at the endpoint, for any number of jobs, until SIGTERM, SIGINT, SIGHUP or SIGQUIT. Returns the
// exit status: 0, or 1 where the port cannot be had.
int serve_coordinator(const MeetingSettings& meeting);

}  // namespace elastic::runtime
