#include "src/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace elastic {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "elastic-run: internal error: %s does not hold (%s:%d); please report this\n",
               expression, file, line);
  std::abort();
}

}  // namespace elastic
