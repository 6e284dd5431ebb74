#pragma once

#include <span>
#include <string>

#include "src/output/lines/stream_plan.h"

namespace elastic::cli {

// Describes where one stream (kStdoutBit or kStderrBit) of the workers goes: "console", "log file and console", or, if
// local ranks differ, "local ranks 0-2: console; 3: log file". `ranks` has one entry for each local rank, and at least
// one. `has_files` says whether there is a log directory.
std::string where_it_goes(std::span<const output::OutputFlags> ranks, unsigned stream, bool has_files);

}  // namespace elastic::cli
