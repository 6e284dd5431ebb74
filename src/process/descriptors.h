#pragma once

#include <sys/resource.h>

namespace elastic::process {

// Closes every descriptor from `first` on. Only system calls and the stack: for a child between vfork and
// exec, too. `limit`: all descriptors lie below it, as far as is known; it is needed only where the kernel
// has no close_range (before Linux 5.9) and there is no /proc either.
void close_descriptors_from(int first, rlim_t limit);

}  // namespace elastic::process
