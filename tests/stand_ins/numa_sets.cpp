// The CPUs of each worker by each mode of --numa-binding, in a tree of files in the place of "/":
//
//   numa_sets ROOT ALLOWED WORKERS [CUDA_VISIBLE_DEVICES [CUDA_DEVICE_ORDER]]
//
// ALLOWED: the CPUs that elastic-run may use, "0-3,8". Prints {"node": [{"cpus": [0, 1], "why": ""}, ...], ...}, with
// one entry for each local rank.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/json.h"
#include "src/base/text.h"
#include "src/numa/number_list.h"
#include "src/numa/read_topology.h"
#include "src/process/devices.h"

namespace {

using namespace elastic;

std::vector<numa::Gpu> gpus_in(const std::string& root, const std::optional<std::string>& visible,
                               const std::optional<std::string>& order) {
  std::vector<numa::Gpu> gpus;
  for (auto& gpu : process::find_visible_gpus(process::find_gpus(root), visible, order)) {
    gpus.push_back({.address = std::move(gpu.address), .why_unknown = std::move(gpu.why)});
  }
  return gpus;
}

Json json_of(const std::vector<numa::Placement>& placements) {
  Json workers = Json::array();
  for (const numa::Placement& placement : placements) {
    Json cpus = Json::array();
    for (const int cpu : placement.cpus) cpus.push(cpu);
    workers.push(Json::object().set("cpus", std::move(cpus)).set("why", placement.why_other));
  }
  return workers;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 3) return 2;
  const auto allowed = numa::parse_number_list(arguments[1]);
  const auto workers = parse_int(arguments[2]);
  if (!allowed || !workers || *workers < 1) return 2;
  const auto given = [&](std::size_t index) {
    return index < arguments.size() ? std::optional(arguments[index]) : std::nullopt;
  };
  const std::vector<numa::Gpu> gpus = gpus_in(arguments[0], given(3), given(4));
  Json all = Json::object();
  using enum numa::Mode;
  for (const auto& [word, mode] : {std::pair{"node", kNode}, std::pair{"socket", kSocket},
                                   std::pair{"exclusive", kExclusive}, std::pair{"core-complex", kCoreComplex}}) {
    const numa::Topology topology = numa::read_topology(arguments[0], mode, *allowed, gpus);
    all.set(word, json_of(numa::place_workers(topology, {.mode = mode}, static_cast<int>(*workers))));
  }
  std::puts(all.dump().c_str());
}
