#pragma once

#include <optional>
#include <string>
#include <string_view>

// Xids: errors of a GPU, with a number, that NVIDIA's driver writes to the kernel log.
namespace elastic::report {

// How much an Xid says about why a worker failed. Whether the GPU is fit for the next job is another question:
// health/gpu/judge_gpu.h. The first ones count most.
enum class XidWeight {
  kHardware,     // the GPU or a link of it has failed
  kProgram,      // most often a fault of the program that ran on the GPU
  kUnknown,      // the number is not in the table
  kConsequence,  // the driver cleans up after another error
};

struct Xid {
  int number = 0;
  XidWeight weight = XidWeight::kUnknown;
  std::string_view meaning;  // a clause; a number that is not in the table has one, too
  std::string device;        // "PCI:0000:3b:00"
  std::string line;          // of the kernel log, as it was given
};

// The Xid in a line of the kernel log ("NVRM: Xid (PCI:0000:3b:00): 79, pid=123, ..."); none if the line has none.
std::optional<Xid> xid_of(std::string_view line);

// The Xid in a kernel log that says most about why a worker failed: kHardware before kProgram before kUnknown before
// kConsequence, the first of those that weigh the same. None if the log has no Xid.
std::optional<Xid> worst_xid(std::string_view kernel_log);

}  // namespace elastic::report
