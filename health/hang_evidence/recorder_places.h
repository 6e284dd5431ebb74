#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/environment.h"

// Where PyTorch's flight recorder is asked, and where it leaves its dumps.
namespace elastic::hang {

struct RecorderPlaces {
  // The stem of the pipes at which a rank is asked for a dump, to which RANK.pipe is appended; nothing: the user has
  // asked for none.
  std::optional<std::string> pipe = {};
  std::vector<std::string> files = {};  // prefixes of the dumps' files, to which the rank is appended
};

// By the workers' environment: TORCH_FR_DEBUG_INFO_PIPE_FILE, else TORCH_NCCL_DEBUG_INFO_PIPE_FILE; the variables
// TORCH_FR_DUMP_TEMP_FILE and TORCH_NCCL_DEBUG_INFO_TEMP_FILE, and without these PyTorch's own places.
RecorderPlaces recorder_places(const Environment& environment);

}  // namespace elastic::hang
