// A failed ELASTIC_CHECK of the product is a broken invariant of its simulation. This replaces src/base/check.cpp,
// which would end the process.
#include "src/base/check.h"
#include "src/base/text.h"
#include "tests/simulation/invariants.h"

namespace elastic {

void check_failed(const char* expression, const char* file, int line) {
  throw simulation::Broken{format("no check fails ({}:{})", file, line), format("{} does not hold", expression)};
}

}  // namespace elastic
