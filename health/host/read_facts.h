#pragma once

#include <string>

#include "health/host/facts.h"

namespace elastic::health {

// Looks at procfs, sysfs and file systems below `root`, "" but for tests; starts nothing and never fails: what is
// missing or makes no sense is not known. `log_directory`: absolute, and there. To be called before and after whatever
// loads the host, for what must not rise meanwhile. Takes as long as the file system of the logs takes to answer.
HostFacts read_facts(const std::string& root, const WorkerLimits& limits, const std::string& log_directory);

}  // namespace elastic::health
