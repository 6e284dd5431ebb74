#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "src/base/check.h"
#include "src/base/check_test_support.h"

// This replaces src/base/check.cpp, which would end the program: a test can see that a check fails.
namespace elastic {

void check_failed(const char* expression, const char*, int) { throw CheckFailed(expression); }

}  // namespace elastic
