#pragma once

#include <optional>
#include <string>

#include "cli/run/http_place.h"

namespace elastic::run {

// What --stacks is to look at.
struct StacksRequest {
  int pid = 0;                          // of this host: an elastic-run, whose workers are meant, or any other process
  std::optional<HttpPlace> place = {};  // instead: of a job, all workers of which are meant
  std::string secret = {};              // the job's; empty: the job has none
  std::string run_id = {};              // the job; empty: the only one there
  std::string input = {};               // the flag as it was typed, for errors
  bool json = false;                    // print the JSON document instead of a page
};

}  // namespace elastic::run
