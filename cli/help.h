#pragma once

#include <string>

namespace elastic::cli {

// What --help prints: at most 80 columns, with a line end at its end.
std::string help_text();

// What --version prints: "elastic-run 0.1.0" and a line end; started as torchrun "torchrun (elastic-run 0.1.0)".
std::string version_text();

}  // namespace elastic::cli
