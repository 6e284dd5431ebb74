#pragma once

#include "src/base/result.h"

namespace elastic::runtime {

// Changes what must differ for our own work: standard streams that were closed are taken, SIGPIPE is
// ignored, the soft limit of open files is raised to the hard one. Workers get back what
// process::InheritedState remembers. Fails where that limit leaves too few for this many workers (0 for a
// store alone).
Status prepare_process(int workers);

}  // namespace elastic::runtime
