#include "health/evidence_reader/gpu_evidence.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "health/gpu/host_library_files.h"
#include "health/gpu/image.h"
#include "health/gpu/libraries.h"
#include "health/gpu/used_gpus.h"
#include "health/probe/gpu_probes.h"
#include "health/probe/probe_process.h"
#include "src/base/text.h"
#include "src/report/xid.h"

namespace elastic::evidence {
namespace {

using hang::Source;

// A driver that works answers at once while GPUs are in use.
constexpr std::int64_t kFactsMs = 6'000;

std::string gpu_text(const health::GpuFacts& gpu) { return format("GPU {} ({})", gpu.index, printable(gpu.bus_id)); }

// Nothing where no GPU can be asked about: there is no probe for this processor, or it cannot be started.
health::Attempt<std::string> ask_nvml(const hang::EvidenceTask& task, const Environment& environment, bool& is_late) {
  if (task.gpu_program.empty() && health::gpu_probe_image().empty()) {
    return std::unexpected("this elastic-run has no GPU probe for its processor");
  }
  auto image = task.gpu_program.empty() ? health::ProbeImage::make(health::gpu_probe_image(), task.temporary)
                                        : Result<health::ProbeImage>(health::ProbeImage::at(task.gpu_program));
  if (!image) return std::unexpected(image.error().text());
  auto probes = health::GpuProbes::start(1, *image, environment);
  if (!probes) return std::unexpected("the GPU probe cannot be started: " + probes.error());
  const auto libraries = health::library_candidates({}, health::HostLibraryFiles());
  const health::Deadline deadline(kFactsMs);
  auto answers = probes->ask({text_of(health::GpuAskFacts{.nvml = libraries.nvml})}, deadline);
  is_late = !answers.at(0) && deadline.has_passed();
  return std::move(answers.at(0));
}

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

hang::EvidenceAnswer gpu_facts_of(const std::vector<health::GpuFacts>& shown, const health::XidLog& xids,
                                  const std::vector<hang::EvidenceTask::Worker>& workers,
                                  const std::optional<std::string>& visible) {
  hang::EvidenceAnswer answer;
  answer.facts.nvml = {Source::kHad, {}};
  const auto used = health::used_gpus(std::vector<std::optional<health::GpuIdentity>>(workers.size()), shown, visible);
  const auto is_used = [&](const health::GpuFacts& gpu) {
    if (!used) return false;  // it is not known which ones are: none is accused
    return used->empty() || std::ranges::any_of(*used, [&](const health::GpuIdentity& identity) {
             return identity.bus_id == gpu.bus_id && identity.uuid == gpu.uuid;
           });
  };
  for (const health::GpuFacts& gpu : shown) {
    if (!gpu.lost.value_or(false)) continue;
    answer.lines.push_back(gpu_text(gpu) + " is lost" + (is_used(gpu) ? "" : ", and is none of the workers'"));
    if (is_used(gpu)) answer.facts.nvml = {Source::kLost, gpu_text(gpu) + " is lost"};
  }
  const auto gpus = gpus_of_workers(workers, shown, visible);
  answer.facts.ranks = power_facts_of(workers, gpus);
  for (std::string& line : power_lines(workers, shown, gpus)) answer.lines.push_back(std::move(line));
  if (const auto xid = report::worst_xid(xids.recent)) {
    answer.lines.push_back(printable(xid->line, hang::bounds::kReasonBytes));
    if (xid->weight == report::XidWeight::kHardware) answer.facts.xid = xid->number;
  }
  return answer;
}

hang::EvidenceAnswer ask_gpus(const hang::EvidenceTask& task, const Environment& environment) {
  const std::string root = lookup(environment, health::kProbeVariables[4]).value_or("");
  if (access((root + "/proc/driver/nvidia").c_str(), F_OK) != 0) return {};
  health::KernelXids log(root, task.round_began_us);
  const health::XidLog xids = log.read_new();
  bool is_late = false;
  const auto said = ask_nvml(task, environment, is_late);
  const auto reply = said ? health::read_gpu_facts(*said) : std::nullopt;
  std::vector<health::GpuFacts> shown;
  hang::SourceFacts why_not;
  if (is_late) {
    why_not = {Source::kLate, said.error()};
  } else if (!said) {
    why_not = {Source::kRefused, said.error()};
  } else if (!reply) {
    why_not = {Source::kRefused, "the answer of the GPU probe cannot be read"};
  } else if (!*reply) {
    why_not = {Source::kRefused, reply->error().why};
  } else {
    shown = **reply;
  }
  auto answer = gpu_facts_of(shown, xids, task.workers, lookup(environment, "CUDA_VISIBLE_DEVICES"));
  if (why_not.state == Source::kNotAsked) return answer;
  answer.facts.nvml = why_not;
  answer.lines.push_back("NVML: " + why_not.why);
  return answer;
}

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
