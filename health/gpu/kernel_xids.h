#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/process/evidence.h"

namespace elastic::health {

// Xids of the kernel log, a line each, for xid_findings().
struct XidLog {
  std::string earlier = {};
  std::string recent = {};  // since the job began on this node
};

// Reads the Xids of /dev/kmsg below `root`, "" but for tests. `began_us`: when the job began on this node, in
// microseconds of CLOCK_MONOTONIC_RAW.
class KernelXids {
 public:
  KernelXids(std::string root, std::int64_t began_us) : root_(std::move(root)), began_us_(began_us) {}

  // At first all that the kernel still has, later what has come since. Empty where the log is not ours to read, as in
  // most containers.
  XidLog read_new();

 private:
  std::string root_;
  std::int64_t began_us_;
  bool was_opened_ = false;
  std::optional<process::KernelLog> log_;
};

}  // namespace elastic::health
