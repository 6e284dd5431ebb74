// A broken check of the product is a broken invariant of the world it happened in: this takes the place of
// src/base/check.cpp, whose process would end.
#include "src/base/check.h"
#include "src/base/text.h"
#include "tests/simulation/invariants.h"

namespace elastic {

void check_failed(const char* expression, const char* file, int line) {
  throw simulation::Broken{format("no check fails ({}:{})", file, line), format("{} does not hold", expression)};
}

}  // namespace elastic
