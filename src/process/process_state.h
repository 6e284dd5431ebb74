#pragma once

#include <string>

#include "src/base/result.h"

namespace elastic::process {

// Changes what must differ for our own work: standard streams that were closed are taken, SIGPIPE is
// ignored, the soft limit of open files is raised to the hard one. Workers get back what
// process::InheritedState remembers. Fails where that limit leaves too few for so many `descriptors`
// besides those of every launcher; `input` names what takes them.
Status prepare_process(const std::string& input, int descriptors);

}  // namespace elastic::process
