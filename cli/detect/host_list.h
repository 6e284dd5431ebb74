#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace elastic::cli::detect {

// The hosts of a list as Slurm compresses it, in its order: "a[1-3,5],b[01-03]-x[1,2],c" stands for a1 a2 a3 a5
// b01-x1 b01-x2 b02-x1 ... c. A number has at least as many digits as its range begins with. A host that stands there
// twice is there twice. Fails on what is no such list, and above limits::kHostListHosts hosts or
// limits::kHostListBytes; `input` names the list in the error.
Result<std::vector<std::string>> expand_host_list(std::string_view text, std::string_view input);

}  // namespace elastic::cli::detect
