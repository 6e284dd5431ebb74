#include "health/gpu/used_gpus.h"

#include <algorithm>
#include <set>

#include "src/base/text.h"

namespace elastic::health {
namespace {

// CUDA numbers GPUs of one model like NVML, in the order of the PCI bus, and GPUs of several models fastest first.
bool are_of_one_model(const std::vector<GpuFacts>& shown) {
  std::set<std::string> models;
  for (const GpuFacts& gpu : shown) {
    if (!gpu.name.empty()) models.insert(gpu.name);  // a lost GPU has no name
  }
  return models.size() <= 1;
}

// The GPU that an entry of CUDA_VISIBLE_DEVICES names: by its number, or by the beginning of its UUID.
const GpuFacts* gpu_of(std::string_view entry, const std::vector<GpuFacts>& shown) {
  const auto number = parse_int(entry);
  const auto found = std::ranges::find_if(shown, [&](const GpuFacts& gpu) {
    return number ? are_of_one_model(shown) && gpu.index == *number
                  : entry.starts_with("GPU-") && gpu.uuid.starts_with(entry);
  });
  return found == shown.end() ? nullptr : &*found;
}

}  // namespace

std::optional<std::vector<GpuIdentity>> used_gpus(const std::vector<std::optional<GpuIdentity>>& opened,
                                                  const std::vector<GpuFacts>& shown,
                                                  const std::optional<std::string>& visible) {
  std::vector<GpuIdentity> used;
  for (const auto& identity : opened) {
    if (identity) used.push_back(*identity);
  }
  if (used.size() == opened.size()) return used;
  if (opened.size() >= shown.size()) return std::vector<GpuIdentity>{};
  for (std::size_t i = 0; i < opened.size(); ++i) {
    if (opened[i]) continue;
    if (const GpuFacts* gpu = visible_gpu(i, shown, visible)) used.push_back({gpu->uuid, gpu->bus_id});
  }
  if (used.empty()) return {};
  return used;
}

const GpuFacts* visible_gpu(std::size_t index, const std::vector<GpuFacts>& shown,
                            const std::optional<std::string>& visible) {
  if (!visible) return gpu_of(format("{}", index), shown);
  const std::vector<std::string> entries = split(*visible, ',');
  return index < entries.size() ? gpu_of(trim(entries[index]), shown) : nullptr;
}

}  // namespace elastic::health
