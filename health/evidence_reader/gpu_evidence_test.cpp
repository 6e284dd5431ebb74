#include "health/evidence_reader/gpu_evidence.h"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace elastic::evidence {
namespace {

using hang::Source;

std::vector<health::GpuFacts> eight(int lost = -1) {
  std::vector<health::GpuFacts> shown;
  for (int i = 0; i < 8; ++i) {
    health::GpuFacts& gpu = shown.emplace_back();
    gpu.index = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.bus_id = "0000:0" + std::to_string(i) + ":00.0";
    gpu.lost = i == lost;
  }
  return shown;
}

std::vector<hang::EvidenceTask::Worker> workers(std::size_t count) {
  return std::vector<hang::EvidenceTask::Worker>(count);
}

// A host whose driver is there, and a probe of GPUs that is this shell script.
class Host {
 public:
  explicit Host(const std::string& script) {
    char name[] = "/tmp/gpu_evidence_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    place_ = name;
    std::filesystem::create_directories(place_ + "/proc/driver/nvidia");
    std::ofstream(place_ + "/probe") << "#!/bin/sh\n" << script << "\n";
    chmod((place_ + "/probe").c_str(), 0700);
  }
  ~Host() { std::filesystem::remove_all(place_); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  hang::EvidenceAnswer asked() const {
    hang::EvidenceTask task{.part = hang::Part::kGpus, .gpu_program = place_ + "/probe", .temporary = place_};
    task.workers.resize(8);
    return ask_gpus(task, {"ELASTIC_RUN_PROBE_ROOT=" + place_, "PATH=/usr/bin:/bin"});
  }

 private:
  std::string place_;
};

}  // namespace

TEST_CASE("a GPU that is lost is told, and accuses its node if the workers use it") {
  CHECK(gpu_facts_of(eight(), {}, workers(8), {}).facts.nvml == hang::SourceFacts{Source::kHad});
  const hang::EvidenceAnswer lost = gpu_facts_of(eight(3), {}, workers(8), {});
  CHECK(lost.facts.nvml == hang::SourceFacts{Source::kLost, "GPU 3 (0000:03:00.0) is lost"});
  const hang::EvidenceAnswer other = gpu_facts_of(eight(3), {}, workers(2), "4,5");
  CHECK(other.facts.nvml.state == Source::kHad);
  CHECK(other.lines == std::vector<std::string>{"GPU 3 (0000:03:00.0) is lost, and is none of the workers'"});
  CHECK(gpu_facts_of(eight(4), {}, workers(2), "4,5").facts.nvml.state == Source::kLost);
}

TEST_CASE("the power of a GPU is a fact about the rank that uses it") {
  std::vector<health::GpuFacts> shown = eight();
  shown[5].holders = {{.pid = 17}};
  shown[5].power_mw = 400'000;
  const hang::EvidenceAnswer answer = gpu_facts_of(shown, {}, {{.rank = 3, .pid = 17, .children = {}}}, {});
  REQUIRE(answer.facts.ranks.size() == 1);
  CHECK(answer.facts.ranks[0].rank == 3);
  CHECK(answer.facts.ranks[0].gpu_watts == 400.0);
  CHECK(answer.lines == std::vector<std::string>{"GPU 5 (0000:05:00.0), rank 3: 400 W"});
}

TEST_CASE("an Xid since the round began counts where the hardware is the cause") {
  const std::string fell_off = "NVRM: Xid (PCI:0000:3b:00): 79, pid=123, GPU has fallen off the bus.";
  CHECK(gpu_facts_of(eight(), {.recent = fell_off}, workers(8), {}).facts.xid == 79);
  CHECK(!gpu_facts_of(eight(), {.earlier = fell_off}, workers(8), {}).facts.xid);
  const hang::EvidenceAnswer program =
      gpu_facts_of(eight(), {.recent = "NVRM: Xid (PCI:0000:3b:00): 13, pid=123, Graphics Exception"}, workers(8), {});
  CHECK(!program.facts.xid);
  CHECK(program.lines.size() == 1);
}

TEST_CASE("NVML is asked by the probe, and what keeps it from answering is told") {
  const std::string gpu = R"({"index":0,"uuid":"GPU-0","bus_id":"0000:00:00.0","lost":true})";
  const hang::EvidenceAnswer lost = Host(R"(read -r line <&1; echo '{"ok":true,"devices":[)" + gpu + R"(]}')").asked();
  CHECK(lost.facts.nvml.state == Source::kLost);
  const hang::EvidenceAnswer failed = Host(R"(read -r line <&1; echo '{"failed":"no handle"}')").asked();
  CHECK(failed.facts.nvml == hang::SourceFacts{Source::kRefused, "no handle"});
  CHECK(Host("read -r line <&1; echo nonsense").asked().facts.nvml.state == Source::kRefused);
  CHECK(Host("exit 3").asked().facts.nvml.state == Source::kRefused);
}

TEST_CASE("a driver that does not answer is late") {
  CHECK(Host("read -r line <&1; exec sleep 100").asked().facts.nvml.state == Source::kLate);
}

TEST_CASE("without a driver nothing is asked") {
  hang::EvidenceTask task{.part = hang::Part::kGpus, .gpu_program = "/no/such/probe"};
  const hang::EvidenceAnswer answer = ask_gpus(task, {"ELASTIC_RUN_PROBE_ROOT=/no/such/root"});
  CHECK(answer.facts.nvml.state == Source::kNotAsked);
  CHECK(answer.lines.empty());
}

}  // namespace elastic::evidence
