#pragma once

#include <cstdint>
#include <string>

namespace elastic::run {

// Whom to ask for a status, and how to show it.
struct StatusRequest {
  std::string host;  // a name or a numeric address
  std::uint16_t port = 0;
  std::string key = {};     // made of the job's secret; empty: none is sent
  std::string run_id = {};  // of the job to show; empty: all of them
  bool watch = false;       // again every 2 s, until SIGINT or SIGTERM
  bool json = false;        // the document itself instead of a page
};

// Prints to stdout what an elastic-run tells of itself. Returns the exit status: 0, or 1 where it cannot be had, with
// the reason on stderr. Watching, only the first attempt may fail so: later ones say why and try again.
int print_status(const StatusRequest& request);

}  // namespace elastic::run
