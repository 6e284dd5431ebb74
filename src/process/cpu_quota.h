#pragma once

#include <optional>
#include <string>

namespace elastic::process {

// The number of CPUs whose time our cgroup may use, by version 2 (cpu.max) or 1 (cpu.cfs_quota_us): the smallest limit
// among our cgroup and those above it. None where no level is limited. Files are looked for below `root`, "/" but for
// tests.
std::optional<double> cpu_quota(const std::string& root = "/");

}  // namespace elastic::process
