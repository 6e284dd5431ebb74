#pragma once

#include <sys/types.h>

#include <cstddef>

#include "src/base/result.h"
#include "src/base/unique_fd.h"

namespace elastic::output {

// A pseudo-terminal that a worker gets instead of our terminal.
struct Terminal {
  UniqueFd ours;     // the side from which the launcher reads, unchanged, what is written to `workers`
  UniqueFd workers;  // the worker's side, not a controlling terminal
};

// Makes a pseudo-terminal, as large as the terminal that is our stderr. Fails where there is no /dev/ptmx.
Result<Terminal> make_terminal();

// Gives it the size of the terminal that is our stderr.
void copy_terminal_size(int ours);

// The width of the terminal that is our stderr; 80 where it does not know, 0 where there is none.
std::size_t terminal_columns();

// Whether the process group of `pid` is that terminal's foreground process group. False where stderr is no terminal, or
// not our controlling one.
bool is_in_foreground(pid_t pid);

}  // namespace elastic::output
