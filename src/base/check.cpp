#include "src/base/check.h"

#include <cstdio>
#include <cstdlib>

#include "src/base/program_name.h"

namespace elastic {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%.*s: internal error: %s does not hold (%s:%d); please report this\n",
               static_cast<int>(program_name().size()), program_name().data(), expression, file, line);
  std::abort();
}

}  // namespace elastic
