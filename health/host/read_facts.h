#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "health/host/facts.h"

namespace elastic::health {

// Reads procfs, sysfs and the state of file systems below `root`, which is "" except in tests. Starts no process and
// never fails: what is missing or malformed is not known. `log_directory`: an absolute path that exists. A caller reads
// before and after a load, for counters that must not rise meanwhile. May block for as long as the file system of the
// logs does.
HostFacts read_facts(const std::string& root, const WorkerLimits& limits, const std::string& log_directory);

// The memory that is free, in bytes: of the host, or below the limit of a cgroup of ours if that is less. Nothing if it
// is not known.
std::optional<std::uint64_t> free_memory(const std::string& root);

}  // namespace elastic::health
