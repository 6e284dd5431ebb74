#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace elastic {

// What an Xid (an error that NVIDIA's driver writes to the kernel log) says about the cause of a failure.
enum class XidWeight {
  kHardware,     // the GPU or its link has failed
  kProgram,      // most often the program's own fault
  kConsequence,  // the driver cleans up after something else
  kUnknown,      // the number is not in the table
};

// What an Xid says about the GPU's fitness for further jobs.
enum class XidAftermath {
  kNone,     // nothing
  kSuspect,  // the GPU works, and should be reset or examined some time
  kUnfit,    // the GPU does not work properly until it is reset or replaced
  kUnknown,  // the number is not in the table
};

struct Xid {
  int number = 0;
  XidWeight weight = XidWeight::kUnknown;
  XidAftermath aftermath = XidAftermath::kUnknown;
  std::string_view meaning;  // a clause; for an unknown number too
  std::string device;        // "PCI:0000:3b:00"
  int pid = 0;               // 0: the line names none
  std::string line;          // the line of the kernel log, unchanged
};

// Reads the Xid in a line of the kernel log ("NVRM: Xid (PCI:0000:3b:00): 79, pid=123, ..."). Nothing for another
// line.
std::optional<Xid> xid_of(std::string_view line);

// Finds the Xid in a kernel log that says most about a cause: hardware before program before unknown before
// consequence, and the first of those. Nothing if there is none.
std::optional<Xid> worst_xid(std::string_view kernel_log);

}  // namespace elastic
