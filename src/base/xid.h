#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace elastic {

// How much an Xid (an error that NVIDIA's driver writes to the kernel log) says about the cause of a failure.
enum class XidWeight {
  kHardware,     // the GPU or its link has failed
  kProgram,      // most often the program's own fault
  kConsequence,  // the driver cleans up after something else
  kUnknown,      // no number of the table
};

// What it says about the GPU for whoever comes next.
enum class XidAftermath {
  kNone,     // nothing
  kSuspect,  // it works on, and is to be reset or looked at some time
  kUnfit,    // it does not work as it should until it is reset, or never again
  kUnknown,  // no number of the table
};

struct Xid {
  int number = 0;
  XidWeight weight = XidWeight::kUnknown;
  XidAftermath aftermath = XidAftermath::kUnknown;
  std::string_view meaning;  // a clause; for an unknown number too
  std::string device;        // "PCI:0000:3b:00"
  int pid = 0;               // 0: the line names none
  std::string line;          // of the kernel log, as it was given
};

// The Xid that a line of the kernel log tells ("NVRM: Xid (PCI:0000:3b:00): 79, pid=123, ..."). Nothing in another
// line.
std::optional<Xid> xid_of(std::string_view line);

// The Xid in a kernel log that says most about a cause: hardware before program before unknown before consequence, the
// first of equals. Nothing if there is none.
std::optional<Xid> worst_xid(std::string_view kernel_log);

}  // namespace elastic
