#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/environment.h"

namespace elastic::run {

// The places where workers leave more facts about a round that hangs.
struct HangPlaces {
  std::string pipes = {};      // a directory for the pipes of PyTorch's flight recorder; empty: none
  std::string dumps = {};      // one for its dumps; empty: none
  std::uint16_t ras_port = 0;  // for NCCL's RAS; 0: its own
};

// The variables that workers get with --hang=restart, so that more is known of a hang before it ends. None of them
// changes how a job trains, and what the user has set is kept.
std::vector<Variable> hang_variables(const Environment& users, const HangPlaces& places);

}  // namespace elastic::run
