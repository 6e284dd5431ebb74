#include "health/evidence_reader/gpu_power.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "health/gpu/used_gpus.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

using Worker = hang::EvidenceTask::Worker;
using health::GpuFacts;

// What a program has of a GPU at least that trains on it.
constexpr std::uint64_t kMemoryInUse = std::uint64_t{128} << 20;

bool holds(const Worker& worker, const GpuFacts& gpu) {
  return std::ranges::any_of(gpu.holders, [&](const health::GpuHolder& holder) {
    return holder.pid > 0 &&
           (holder.pid == worker.pid || std::ranges::find(worker.children, holder.pid) != worker.children.end());
  });
}

// The only GPU that a worker has memory of.
const GpuFacts* held_by(const Worker& worker, const std::vector<GpuFacts>& shown) {
  const GpuFacts* found = nullptr;
  for (const GpuFacts& gpu : shown) {
    if (!holds(worker, gpu)) continue;
    if (found != nullptr) return nullptr;
    found = &gpu;
  }
  return found;
}

const GpuFacts* numbered(const Worker& worker, const std::vector<GpuFacts>& shown,
                         const std::optional<std::string>& visible) {
  if (worker.local_rank < 0) return nullptr;
  const GpuFacts* gpu = health::visible_gpu(static_cast<std::size_t>(worker.local_rank), shown, visible);
  return gpu != nullptr && gpu->memory_used_bytes.value_or(0) >= kMemoryInUse ? gpu : nullptr;
}

bool has_power_of_its_own(const GpuFacts& gpu) {
  return gpu.power_mw && !gpu.lost.value_or(false) && !gpu.mig.value_or(false);
}

}  // namespace

std::vector<const GpuFacts*> gpus_of_workers(const std::vector<Worker>& workers, const std::vector<GpuFacts>& shown,
                                             const std::optional<std::string>& visible) {
  // In a container the list is empty, or has the numbers that the host knows processes by.
  const bool are_named = std::ranges::any_of(workers, [&](const Worker& worker) {
    return std::ranges::any_of(shown, [&](const GpuFacts& gpu) { return holds(worker, gpu); });
  });
  std::vector<const GpuFacts*> gpus;
  for (const Worker& worker : workers) {
    gpus.push_back(are_named ? held_by(worker, shown) : numbered(worker, shown, visible));
  }
  std::vector<const GpuFacts*> alone = gpus;
  for (const GpuFacts*& gpu : alone) {
    if (gpu != nullptr && std::ranges::count(gpus, gpu) > 1) gpu = nullptr;
  }
  return alone;
}

std::vector<hang::RankFacts> power_facts_of(const std::vector<Worker>& workers,
                                            const std::vector<const GpuFacts*>& gpus) {
  std::vector<hang::RankFacts> ranks;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (gpus[i] == nullptr || !has_power_of_its_own(*gpus[i])) continue;
    hang::RankFacts& rank = ranks.emplace_back();
    rank.rank = workers[i].rank;
    rank.gpu_watts = static_cast<double>(*gpus[i]->power_mw) / 1000;
    rank.gpu_model = gpus[i]->name.empty() ? 0 : hang::digest_of(gpus[i]->name);
  }
  return ranks;
}

std::vector<std::string> power_lines(const std::vector<Worker>& workers, const std::vector<GpuFacts>& shown,
                                     const std::vector<const GpuFacts*>& gpus) {
  std::vector<std::string> lines;
  for (const GpuFacts& gpu : shown) {
    if (!gpu.power_mw) continue;
    std::string line = format("GPU {} ({})", gpu.index, printable(gpu.bus_id));
    const auto worker = std::ranges::find(gpus, &gpu);
    if (worker != gpus.end())
      line += format(", rank {}", workers[static_cast<std::size_t>(worker - gpus.begin())].rank);
    line += format(": {:.0f} W", static_cast<double>(*gpu.power_mw) / 1000);
    if (gpu.busy_percent) line += format(", busy {} % of the time", *gpu.busy_percent);
    if (gpu.busy_percent && gpu.memory_busy_percent) line += format(", its memory {} %", *gpu.memory_busy_percent);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace elastic::evidence
