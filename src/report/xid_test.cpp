#include "src/report/xid.h"

#include <doctest/doctest.h>

using namespace elastic::report;

TEST_CASE("a line of the kernel log with an Xid says which, and of which GPU") {
  const auto xid = xid_of("[ 12.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=99, name=python, GPU has fallen off the bus.");
  REQUIRE(xid);
  CHECK(xid->number == 79);
  CHECK(xid->weight == XidWeight::kHardware);
  CHECK(xid->device == "PCI:0000:3b:00");
  CHECK(xid->line.ends_with("off the bus."));
  const auto unknown = xid_of("NVRM: Xid (PCI:0000:3b:00): 999, pid='<unknown>', x");
  REQUIRE(unknown);
  CHECK(unknown->weight == XidWeight::kUnknown);
  for (const char* other : {"", "NVRM: Xid", "NVRM: Xid (", "NVRM: Xid (PCI:0000:3b:00): ", "NVRM: Xid (a): -5",
                            "NVRM: Xid (a): , pid=1", "NVRM: Xid (a): 99999999999", "NVRM: loading NVIDIA UNIX"}) {
    CAPTURE(other);
    CHECK(!xid_of(other));
  }
}
