#pragma once

namespace elastic {

// Prints the broken invariant to stderr and aborts. Never returns.
[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace elastic

// Aborts unless the expression holds, in release builds, too: a launcher with a broken invariant must not go on.
#define ELASTIC_CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::elastic::check_failed(#expression, __FILE__, __LINE__))
