#include "health/gpu/judge_gpu.h"

#include <doctest/doctest.h>

#include <string>

#include "src/report/xid.h"

using namespace elastic::health;
using elastic::report::xid_of;
using elastic::report::XidWeight;

TEST_CASE(
    "an Xid of the hardware says something about its GPU, one of a program nothing, and both tables know the same") {
  for (int number = 0; number < 200; ++number) {
    CAPTURE(number);
    const auto xid = xid_of("NVRM: Xid (PCI:0000:3b:00): " + std::to_string(number) + ", x");
    REQUIRE(xid);
    const bool is_program = xid->weight == XidWeight::kProgram || xid->weight == XidWeight::kConsequence;
    CHECK((aftermath_of(number) == XidAftermath::kNone) == is_program);
    CHECK((aftermath_of(number) == XidAftermath::kUnknown) == (xid->weight == XidWeight::kUnknown));
  }
}
