#pragma once

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

// What the fuzzers have in common.
namespace elastic::fuzz {

// ELASTIC_FUZZ_TRACE in the environment: each step is told on stderr.
inline bool tracing() {
  static const bool on = std::getenv("ELASTIC_FUZZ_TRACE") != nullptr;
  return on;
}

// Ends the program: that is a finding.
[[noreturn]] inline void end_with(const char* fuzzer, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", fuzzer, what.c_str());
  std::abort();
}

inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace elastic::fuzz
