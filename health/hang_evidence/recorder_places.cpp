#include "health/hang_evidence/recorder_places.h"

#include <initializer_list>

#include "src/base/text.h"

namespace elastic::hang {
namespace {

// The value of the first of these that is set and not empty.
std::optional<std::string> first_of(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto value = lookup(environment, name);
    if (value && !value->empty()) return value;
  }
  return {};
}

}  // namespace

RecorderPlaces recorder_places(const Environment& environment) {
  RecorderPlaces places;
  places.pipe = first_of(environment, {"TORCH_FR_DEBUG_INFO_PIPE_FILE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"});
  places.control = first_of(environment, {"TORCH_WORKER_SERVER_SOCKET"});
  for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    if (const auto prefix = first_of(environment, {name})) places.files.push_back(*prefix);
  }
  if (!places.files.empty()) return places;
  const auto cache = first_of(environment, {"XDG_CACHE_HOME"});
  const auto home = first_of(environment, {"HOME"});
  if (cache || home) places.files.push_back((cache ? *cache : *home + "/.cache") + "/torch/comm_lib_trace_rank_");
  places.files.push_back("/tmp/nccl_trace_rank_");
  return places;
}

Environment environment_in(std::string_view text) {
  Environment environment = split(text, '\0');
  std::erase(environment, "");
  return environment;
}

}  // namespace elastic::hang
