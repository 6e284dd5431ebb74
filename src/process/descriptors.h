#pragma once

#include <sys/resource.h>

namespace elastic::process {

// Closes every descriptor from `first` on. A child may call it between vfork and exec: it makes only system calls, and
// uses only the stack. All descriptors lie below `limit`, as far as is known; it is needed only where the kernel
// has no close_range (before Linux 5.9) and there is no /proc either.
void close_descriptors_from(int first, rlim_t limit);

}  // namespace elastic::process
