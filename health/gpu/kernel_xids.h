#pragma once

#include <cstdint>
#include <string>

namespace elastic::health {

// Xids of the kernel log, a line each, for xid_findings().
struct XidLog {
  std::string earlier = {};
  std::string recent = {};  // since the job began on this node
};

// Reads all that the kernel still has, of /dev/kmsg below `root`, "" but for tests. `began_us`: when the job began on
// this node, in microseconds of CLOCK_MONOTONIC_RAW. Empty where the log is not ours to read, as in most containers.
XidLog read_xids(const std::string& root, std::int64_t began_us);

}  // namespace elastic::health
