#include "health/evidence_reader/link_samples.h"

#include <chrono>
#include <thread>
#include <utility>

#include "health/host/read_infiniband.h"
#include "health/host/system_files.h"
#include "health/probe/probe_process.h"
#include "src/base/text.h"
#include "src/process/cgroup.h"

namespace elastic::evidence {
namespace {

constexpr std::chrono::milliseconds kBetween{2'000};

void read_counter(hang::LinkSample& sample, const std::string& folder, const char* name) {
  auto count = health::count_in(format("{}/counters/{}", folder, name));
  if (!count) count = health::count_in(format("{}/hw_counters/{}", folder, name));
  if (count) sample.counters.emplace(name, *count);
}

}  // namespace

std::vector<hang::LinkSample> look_at_links(const std::string& root) {
  std::vector<hang::LinkSample> samples;
  for (health::InfinibandPort& port : health::read_infiniband(root)) {
    const std::string folder =
        process::path_in(root, format("/sys/class/infiniband/{}/ports/{}", port.device, port.port));
    hang::LinkSample& sample = samples.emplace_back();
    sample.device = std::move(port.device);
    sample.port = port.port;
    sample.state = std::move(port.state);
    sample.phys_state = std::move(port.phys_state);
    sample.link_layer = std::move(port.link_layer);
    read_counter(sample, folder, hang::kSentCounter);
    read_counter(sample, folder, hang::kReceivedCounter);
    for (const char* name : hang::kErrorCounters) read_counter(sample, folder, name);
  }
  return samples;
}

hang::EvidenceAnswer ask_links(const Environment& environment) {
  const std::string root = lookup(environment, health::kProbeVariables[4]).value_or("");
  hang::EvidenceAnswer answer;
  const auto began = std::chrono::steady_clock::now();
  const std::vector<hang::LinkSample> first = look_at_links(root);
  if (first.empty()) return answer;
  std::this_thread::sleep_until(began + kBetween);
  const std::vector<hang::LinkSample> second = look_at_links(root);
  const auto between =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count();
  answer.facts.links = {hang::Source::kHad, {}};
  answer.facts.link_faults = hang::link_faults_of(first, second, between);
  answer.lines = hang::link_lines(first, second, between);
  return answer;
}

}  // namespace elastic::evidence
