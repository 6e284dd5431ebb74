#pragma once

#include <optional>
#include <string>

namespace elastic::process {

// CPUs' worth of time that our cgroup and those above it may use, of version 2 (cpu.max) or 1 (cpu.cfs_quota_us): the
// smallest counts. Nothing where none is limited. Files are looked for below `root`, "/" but for tests.
std::optional<double> cpu_quota(const std::string& root = "/");

}  // namespace elastic::process
