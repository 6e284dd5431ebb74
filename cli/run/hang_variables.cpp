#include "cli/run/hang_variables.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/text.h"

namespace elastic::run {

std::vector<Variable> hang_variables(const Environment& users, const HangPlaces& places) {
  std::vector<Variable> all{
      {"PYTHONFAULTHANDLER", "1"}, {"TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"}, {"TORCH_NCCL_DUMP_ON_TIMEOUT", "1"}};
  // PyTorch puts the rank behind the name. Versions from 2.8 on know both variables, and the second one wins: beside
  // the user's own first one it would take its place.
  constexpr std::array kDumps = {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE"};
  const bool are_users = std::ranges::any_of(kDumps, [&](const char* name) { return lookup(users, name).has_value(); });
  for (const char* name : kDumps) {
    if (!places.dumps.empty() && !are_users) all.emplace_back(name, format("{}/fr_rank_", places.dumps));
  }
  if (!places.pipes.empty()) all.emplace_back("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", format("{}/fr_", places.pipes));
  if (places.ras_port != 0) all.emplace_back("NCCL_RAS_ADDR", format("localhost:{}", places.ras_port));
  std::vector<Variable> out;
  for (Variable& variable : all) {
    if (!lookup(users, variable.first)) out.push_back(std::move(variable));
  }
  return out;
}

}  // namespace elastic::run
