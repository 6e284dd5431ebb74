#pragma once

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

}  // namespace elastic::output
