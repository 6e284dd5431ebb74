#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/output/lines/stream_plan.h"

namespace elastic::run {

// Where the workers' output goes.
struct OutputSettings {
  std::vector<output::OutputFlags> ranks = {};  // by local rank: redirects, tee and shown
  std::string prefix_template = {};             // empty: no prefix
  std::string role = {};                        // the workers', for the prefix
  std::vector<std::string> stdout_filters = {};
  std::vector<std::string> stderr_filters = {};
  std::uint64_t log_max_bytes = 0;   // of each log file, before it is rotated; 0: no bound
  bool status_line = false;          // our terminal can draw one, and it is wanted
  bool stderr_tail = true;           // keep the end of each worker's stderr for the failure report
  std::string no_tail_because = {};  // the flag that forbids it; empty where stderr_tail is true
};

}  // namespace elastic::run
