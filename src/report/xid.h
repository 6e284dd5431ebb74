#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace elastic::report {

// How much an Xid (an error that NVIDIA's driver writes to the kernel log) says about the cause.
enum class XidWeight {
  kHardware,     // the GPU or its link has failed
  kProgram,      // most often the program's own fault
  kConsequence,  // the driver cleans up after something else
  kUnknown,      // no number of the table
};

struct Xid {
  int number = 0;
  XidWeight weight = XidWeight::kUnknown;
  std::string_view meaning;  // a clause; for an unknown number too
  std::string line;          // of the kernel log, as it was given
};

// The Xid in a kernel log that says most: hardware before program before unknown before
// consequence, the first of equals. Nothing if there is none ("NVRM: Xid (PCI:0000:3b:00): 79,
// pid=123, ...").
std::optional<Xid> worst_xid(std::string_view kernel_log);

}  // namespace elastic::report
