#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/process/evidence.h"

namespace elastic::health {

// The lines of the kernel log with Xids, for xid_findings().
struct XidLog {
  std::string earlier = {};
  std::string recent = {};  // since the job began on this node
};

// Reads the Xids from /dev/kmsg below `root`, which is "" except in tests. `began_us`: when the job began on this node,
// in microseconds of CLOCK_MONOTONIC_RAW.
class KernelXids {
 public:
  KernelXids(std::string root, std::int64_t began_us) : root_(std::move(root)), began_us_(began_us) {}

  // The first call returns all Xids that the kernel still has, a later one those since the call before. Empty where the
  // log must not be read, as in most containers.
  XidLog read_new();

 private:
  std::string root_;
  std::int64_t began_us_;
  bool was_opened_ = false;
  std::optional<process::KernelLog> log_;
};

}  // namespace elastic::health
