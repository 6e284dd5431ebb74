#pragma once

#include <string>

#include "cli/run/launch_settings.h"

namespace elastic::run {

// Serves the coordinator at the endpoint, for any number of jobs, until SIGTERM, SIGINT, SIGHUP or SIGQUIT. Returns the
// exit status: 0, or 1 where the port cannot be opened.
int serve_coordinator(const transport::RendezvousSettings& rendezvous);

}  // namespace elastic::run
