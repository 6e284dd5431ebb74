#pragma once

#include <string>
#include <vector>

#include "src/warm/warm_rules.h"

namespace elastic::warm {

// How this launch's workers can be warm, and how they are started (docs/warm-workers.md).
struct WarmLaunch {
  WarmSettings rules;
  std::vector<std::string> options = {};  // the workers' command line up to the script: the Python and its options
  bool is_module = false;                 // python -m
  std::string target = {};                // script or module
};

}  // namespace elastic::warm
