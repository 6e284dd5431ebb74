#pragma once

#include <cstdint>

#include "src/base/result.h"

namespace elastic::process {

// What a process may have and do that reads untrusted data.
struct Confinement {
  std::uint64_t memory_bytes = std::uint64_t{512} << 20;  // of its address space
  std::uint64_t cpu_s = 10;
  std::uint64_t descriptors = 32;
  bool may_connect = false;  // over IPv4 and IPv6
};

// Confines this process for good: to little memory and time, and to the system calls that reading takes, of files and
// of what is open already. It may open files for reading only, and neither start nor signal or trace anything, nor
// connect unless it may; what it must not do kills it. Fails where the kernel cannot do that. Without effect in a build
// with sanitizers.
Status confine(const Confinement& confinement);

}  // namespace elastic::process
