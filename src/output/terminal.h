#pragma once

#include <sys/types.h>

#include <cstddef>

#include "src/base/result.h"
#include "src/base/unique_fd.h"

namespace elastic::output {

// A pseudo-terminal in the place of ours.
struct Terminal {
  UniqueFd ours;     // what is written to `workers` is read here, unchanged
  UniqueFd workers;  // a terminal; nobody's controlling one
};

// Makes one, as large as the terminal that is our stderr. Fails where there is no /dev/ptmx.
Result<Terminal> make_terminal();

// Makes it as large as the terminal that is our stderr.
void copy_terminal_size(int ours);

// The width of the terminal that is our stderr; 80 where it does not know, 0 where there is none.
std::size_t terminal_columns();

// Whether that terminal belongs to the process group of `pid` now: as the shell sees it, it is not in the
// background. False where it is no terminal, or not the one that controls us.
bool is_in_foreground(pid_t pid);

}  // namespace elastic::output
