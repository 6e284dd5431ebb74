#pragma once

namespace elastic::health {

// What an Xid says about the GPU for the jobs that come after it.
enum class XidAftermath {
  kNone,       // nothing: it was most often a fault of a program
  kSuspect,    // the GPU works on, and should be reset or inspected at some time
  kUnhealthy,  // the GPU does not work as it should until it is reset, or never again
  kUnknown,    // the number is not known here
};

// By the number of the Xid (src/report/xid.h).
XidAftermath aftermath_of(int number);

}  // namespace elastic::health
