#pragma once

#include <string>

#include "src/base/result.h"

namespace elastic::process {

// Prepares this process: opens standard streams that were closed, ignores SIGPIPE, and raises the soft limit of open
// files to the hard one. Workers get back what process::InheritedState remembers. Fails where that limit leaves fewer
// than so many `descriptors` besides those of every launcher; `input` names what takes them.
Status prepare_process(const std::string& input, int descriptors);

}  // namespace elastic::process
