#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.h"

// Where PyTorch's flight recorder is asked, and where it leaves its dumps.
namespace elastic::hang {

struct RecorderPlaces {
  // The stem of the pipes at which a rank is asked for a dump, to which RANK.pipe is appended; nothing: the user has
  // asked for none.
  std::optional<std::string> pipe = {};
  // The path of a control server (health/evidence/control_answer.h); nothing: none is named.
  std::optional<std::string> control = {};
  std::vector<std::string> files = {};  // prefixes of the dumps' files, to which the rank is appended
};

// By the workers' environment: TORCH_FR_DEBUG_INFO_PIPE_FILE, else TORCH_NCCL_DEBUG_INFO_PIPE_FILE;
// TORCH_WORKER_SERVER_SOCKET; the variables TORCH_FR_DUMP_TEMP_FILE and TORCH_NCCL_DEBUG_INFO_TEMP_FILE, and without
// these PyTorch's own places.
RecorderPlaces recorder_places(const Environment& environment);

// The environment that a process has begun with, in the form of /proc/PID/environ.
Environment environment_in(std::string_view text);

}  // namespace elastic::hang
