#pragma once

#include <string>

#include "cli/run/http_place.h"

namespace elastic::run {

// Which elastic-run to ask for its status, and how to show it.
struct StatusRequest {
  HttpPlace place;
  std::string key = {};     // made of the job's secret; empty: none is sent
  std::string run_id = {};  // the job to show; empty: all
  bool watch = false;       // ask again every 2 s, until SIGINT or SIGTERM
  bool json = false;        // print the JSON document instead of a page
};

// Prints the status of an elastic-run to stdout. Returns the exit status: 0, or 1 if there is no answer, with
// the reason on stderr. With `watch` only the first attempt may end so: later ones report the error and try again.
int print_status(const StatusRequest& request);

}  // namespace elastic::run
