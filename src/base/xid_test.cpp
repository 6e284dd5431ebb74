#include "src/base/xid.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE("a line of the kernel log with an Xid says which, of which GPU and of which process") {
  const auto xid = xid_of("[ 12.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=99, name=python, GPU has fallen off the bus.");
  REQUIRE(xid);
  CHECK(xid->number == 79);
  CHECK(xid->device == "PCI:0000:3b:00");
  CHECK(xid->pid == 99);
  CHECK(xid->line.ends_with("off the bus."));
  CHECK(xid->aftermath == XidAftermath::kUnfit);
  const auto unknown = xid_of("NVRM: Xid (PCI:0000:3b:00): 999, pid='<unknown>', x");
  REQUIRE(unknown);
  CHECK(unknown->pid == 0);
  CHECK(unknown->weight == XidWeight::kUnknown);
  CHECK(unknown->aftermath == XidAftermath::kUnknown);
  for (const char* other : {"", "NVRM: Xid", "NVRM: Xid (", "NVRM: Xid (PCI:0000:3b:00): ", "NVRM: Xid (a): -5",
                            "NVRM: Xid (a): , pid=1", "NVRM: Xid (a): 99999999999", "NVRM: loading NVIDIA UNIX"}) {
    CAPTURE(other);
    CHECK(!xid_of(other));
  }
}

TEST_CASE("what is the program's own fault says nothing of the GPU, what is hardware's does") {
  for (const int number : {13, 31, 43, 45, 48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120}) {
    CAPTURE(number);
    const auto xid = xid_of("NVRM: Xid (PCI:0000:3b:00): " + std::to_string(number) + ", x");
    REQUIRE(xid);
    CHECK((xid->aftermath == XidAftermath::kNone) == (xid->weight != XidWeight::kHardware));
  }
}
