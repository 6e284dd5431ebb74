#pragma once

#include <span>
#include <string>

#include "src/output/lines/stream_plan.h"

namespace elastic::cli {

// Where one stream (kStdoutBit or kStderrBit) of the workers goes, for a person: "console", "log file and console";
// where local ranks differ "local ranks 0-2: console; 3: log file". `ranks` by local rank, at least one; `has_files`
// as flags.log_dir of all.
std::string where_it_goes(std::span<const output::OutputFlags> ranks, unsigned stream, bool has_files);

}  // namespace elastic::cli
