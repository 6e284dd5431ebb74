#include "health/evidence_reader/gpu_evidence.h"

#include <doctest/doctest.h>

namespace elastic::evidence {
namespace {

using Worker = hang::EvidenceTask::Worker;
using health::GpuFacts;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Four GPUs, of which 30 GiB each are in use.
std::vector<GpuFacts> four() {
  std::vector<GpuFacts> shown;
  for (int i = 0; i < 4; ++i) {
    GpuFacts& gpu = shown.emplace_back();
    gpu.index = i;
    gpu.bus_id = "0000:0" + std::to_string(i) + ":00.0";
    gpu.name = "NVIDIA H100";
    gpu.memory_used_bytes = 30 * kGiB;
    gpu.power_mw = 118'000 + static_cast<std::uint64_t>(i);
    gpu.busy_percent = 100;
    gpu.memory_busy_percent = 0;
  }
  return shown;
}

std::vector<Worker> two() {
  return {{.rank = 8, .local_rank = 0, .pid = 40, .children = {}},
          {.rank = 9, .local_rank = 1, .pid = 41, .children = {51}}};
}

// The GPUs' numbers; -1: it is not known.
std::vector<int> found(const std::vector<GpuFacts>& shown, const std::optional<std::string>& visible = {}) {
  std::vector<int> numbers;
  for (const GpuFacts* gpu : gpus_of_workers(two(), shown, visible))
    numbers.push_back(gpu == nullptr ? -1 : gpu->index);
  return numbers;
}

using Numbers = std::vector<int>;

}  // namespace

TEST_CASE("a worker's GPU is the one that it, or what it has started, has memory of") {
  std::vector<GpuFacts> shown = four();
  shown[3].holders = {{.pid = 7}, {.pid = 40}};
  shown[1].holders = {{.pid = 51}};
  CHECK(found(shown) == Numbers{3, 1});
  shown[2].holders = {{.pid = 40}};  // it has two
  CHECK(found(shown) == Numbers{-1, 1});
  shown[2].holders = shown[3].holders = {};  // it has none, and the other has
  CHECK(found(shown) == Numbers{-1, 1});
  shown[1].holders = {{.pid = 40}, {.pid = 41}};  // they share one
  CHECK(found(shown) == Numbers{-1, -1});
}

TEST_CASE("where no worker is seen to have memory its local rank names its GPU, if somebody uses that") {
  std::vector<GpuFacts> shown = four();
  CHECK(found(shown) == Numbers{0, 1});
  CHECK(found(shown, "3,2") == Numbers{3, 2});
  CHECK(found(shown, "3") == Numbers{3, -1});
  shown[0].memory_used_bytes = 5;
  shown[1].memory_used_bytes.reset();
  CHECK(found(shown) == Numbers{-1, -1});
}

TEST_CASE("the power of a worker's GPU is a fact about its rank, unless the GPU serves others, too") {
  std::vector<GpuFacts> shown = four();
  auto facts = power_facts_of(two(), gpus_of_workers(two(), shown, {}));
  REQUIRE(facts.size() == 2);
  CHECK(facts[1].rank == 9);
  CHECK(facts[1].gpu_watts == 118.001);
  CHECK(facts[1].gpu_model != 0);
  CHECK(facts[1].gpu_model == facts[0].gpu_model);
  shown[0].mig = true;
  shown[1].power_mw.reset();
  CHECK(power_facts_of(two(), gpus_of_workers(two(), shown, {})).empty());
}

TEST_CASE("the power of all GPUs is told, with the ranks that use them") {
  const std::vector<GpuFacts> shown = four();
  const auto lines = power_lines(two(), shown, gpus_of_workers(two(), shown, "1,0"));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "GPU 0 (0000:00:00.0), rank 9: 118 W, busy 100 % of the time, its memory 0 %");
  CHECK(lines[3] == "GPU 3 (0000:03:00.0): 118 W, busy 100 % of the time, its memory 0 %");
}

}  // namespace elastic::evidence
