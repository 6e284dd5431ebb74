#include "health/gpu/judge_gpu.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

using namespace elastic::health;

namespace {

constexpr std::uint64_t kGib = 1024ULL * 1024 * 1024;

// A GPU without any finding.
GpuFacts good_gpu(int index) {
  const std::string number = std::to_string(index);
  return {.index = index,
          .uuid = "GPU-" + number,
          .bus_id = "00000000:" + number + "B:00.0",
          .name = "NVIDIA H100",
          .driver_version = "580.65.06",
          .lost = false,
          .needs_reset = false,
          .ecc_uncorrectable = 0,
          .remap_pending = false,
          .remap_failed = false,
          .memory_used_bytes = kGib,
          .memory_bytes = 80 * kGib,
          .holders = {},
          .pcie_width = 16,
          .pcie_max_width = 16,
          .pcie_gen = 5,
          .pcie_max_gen = 5,
          .nvlinks = {{0, true, 0}, {1, true, 0}, {2, true, 0}},
          .throttle_reasons = 0x1 | 0x2 | 0x4 | 0x10 | 0x100,  // idle, set clocks, the power limit
          .persistence = true,
          .mig = false,
          .fabric_state = 3,
          .fabric_status = 0,
          .temperature_c = 40};
}

std::vector<GpuFacts> good_gpus() { return {good_gpu(0), good_gpu(1)}; }

const GpuNeeds kTwoWorkers{.nproc = 2, .visible = 2};

using Change = std::function<void(GpuFacts&)>;

// The findings about a node whose GPU 1 has changed during the check.
std::vector<Finding> changed(const Change& change, const GpuNeeds& needs = kTwoWorkers) {
  std::vector<GpuFacts> after = good_gpus();
  change(after[1]);
  return judge_gpus(good_gpus(), after, needs);
}

// The findings about a node whose GPU 1 was changed before the check already.
std::vector<Finding> always(const Change& change, const GpuNeeds& needs = kTwoWorkers) {
  std::vector<GpuFacts> gpus = good_gpus();
  change(gpus[1]);
  return judge_gpus(gpus, gpus, needs);
}

// Checks that there is one finding, with the severity and the remedy of the rule.
void check_only(const std::vector<Finding>& findings, GpuRule rule, const std::string& what,
                const std::string& where = "GPU 1 (00000000:1B:00.0)") {
  CAPTURE(what);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == threshold(rule).severity);
  CHECK(findings[0].what == what);
  CHECK(findings[0].where == where);
  CHECK(findings[0].remedy == threshold(rule).remedy);
}

std::string xid_line(int number, const std::string& device = "PCI:0000:1b:00") {
  return "[ 1.5] NVRM: Xid (" + device + "): " + std::to_string(number) + ", pid=7, name=python3, x\n";
}

}  // namespace

TEST_CASE("nothing is found at good GPUs, and nothing where nothing is known") {
  CHECK(changed([](GpuFacts&) {}).empty());
  CHECK(judge_gpus({}, {}, {.nproc = 8}).empty());
  CHECK(judge_gpus({}, good_gpus(), kTwoWorkers).empty());
  CHECK(judge_gpus(good_gpus(), {}, kTwoWorkers).empty());
  CHECK(judge_gpus({GpuFacts{}}, {GpuFacts{}}, {.nproc = 1, .visible = {}, .used = {}, .after_work = true}).empty());
}

TEST_CASE("every row of the GPUs' table has a name of its own, says when it is told, and what to do") {
  for (const GpuThreshold& row : kGpuThresholds) {
    CAPTURE(row.name);
    CHECK(!row.when.empty());
    CHECK(!row.remedy.empty());
    CHECK(std::ranges::count(kGpuThresholds, row.name, &GpuThreshold::name) == 1);
  }
}

TEST_CASE("a GPU that is lost makes its node unhealthy, and nothing else is said of it") {
  check_only(changed([](GpuFacts& gpu) { gpu = {.index = 1, .lost = true, .ecc_uncorrectable = 5}; }), GpuRule::kLost,
             "its driver cannot reach it any more", "GPU 1");
  check_only(judge_gpus(good_gpus(), {good_gpu(0)}, kTwoWorkers), GpuRule::kLost,
             "it was there before the check and has disappeared");
  CHECK(threshold(GpuRule::kLost).severity == Severity::kFatal);
}

TEST_CASE("a GPU that needs a reset, has uncorrectable errors or could not remap a row is unhealthy") {
  check_only(changed([](GpuFacts& gpu) { gpu.needs_reset = true; }), GpuRule::kNeedsReset, "it needs a reset");
  check_only(always([](GpuFacts& gpu) { gpu.ecc_uncorrectable = 1; }), GpuRule::kEcc,
             "1 uncorrectable ECC error since the last reset, wanted 0");
  check_only(changed([](GpuFacts& gpu) { gpu.remap_failed = true; }), GpuRule::kRemapFailed,
             "a row of its memory could not be remapped");
  check_only(changed([](GpuFacts& gpu) { gpu.remap_pending = true; }), GpuRule::kRemapPending,
             "a row of its memory waits for the next reset to be remapped");
  for (const GpuRule fatal : {GpuRule::kNeedsReset, GpuRule::kEcc, GpuRule::kRemapFailed}) {
    CHECK(threshold(fatal).severity == Severity::kFatal);
  }
  CHECK(threshold(GpuRule::kRemapPending).severity == Severity::kWarning);
}

TEST_CASE("30 % of a GPU's memory in use before the check makes its node unhealthy, and who has it is named") {
  const auto used = [](std::uint64_t gib) { return [=](GpuFacts& gpu) { gpu.memory_used_bytes = gib * kGib; }; };
  CHECK(always(used(23)).empty());
  check_only(always(used(24)), GpuRule::kMemoryUsed,
             "24 GiB of its 80 GiB of memory are in use (30 %), by processes that are not visible here; "
             "wanted less than 30 %");
  CHECK(always(used(24)).front().severity == Severity::kFatal);
  check_only(always([](GpuFacts& gpu) {
               gpu.memory_used_bytes = 60 * kGib;
               gpu.holders = {{7, kGib, ""}, {0, {}, "x"}, {8, 50 * kGib, "python3\n"}, {9, 0, "z"}, {}};
             }),
             GpuRule::kMemoryUsed,
             "60 GiB of its 80 GiB of memory are in use (75 %), by python3\\x0a (pid 8, 50 GiB); a process (pid 7, "
             "1 GiB); x; and 2 more; wanted less than 30 %");
}

TEST_CASE("memory that is taken during the check, or of a GPU that MIG divides, is not judged") {
  CHECK(changed([](GpuFacts& gpu) { gpu.memory_used_bytes = 80 * kGib; }).empty());
  const auto divided = always([](GpuFacts& gpu) {
    gpu.memory_used_bytes = 80 * kGib;
    gpu.mig = true;
  });
  check_only(divided, GpuRule::kMig, "MIG is on");
  CHECK(always([](GpuFacts& gpu) {
          gpu.memory_used_bytes = 80 * kGib;
          gpu.memory_bytes = 0;
        }).empty());
}

TEST_CASE("memory of Grace's GPUs, which is the system's too, is judged only where a process is seen that has it") {
  const auto grace = [](std::vector<GpuHolder> holders) {
    return [holders = std::move(holders)](GpuFacts& gpu) {
      gpu.name = "NVIDIA GH200 480GB";
      gpu.memory_used_bytes = 60 * kGib;
      gpu.holders = holders;
    };
  };
  const auto is_told = [](const std::vector<Finding>& findings) {
    return std::ranges::any_of(findings, [](const Finding& finding) { return finding.what.contains("in use"); });
  };
  CHECK(!is_told(always(grace({}))));
  CHECK(is_told(always(grace({{7, 60 * kGib, "python3"}}))));
}

TEST_CASE("memory that nobody is seen to have may come back yet, but not a little, and not that of a process") {
  std::vector<GpuFacts> gpus = good_gpus();
  CHECK(!has_memory_of_nobody(gpus));
  gpus[1].memory_used_bytes = 60 * kGib;
  CHECK(has_memory_of_nobody(gpus));
  gpus[1].holders = {{7, 60 * kGib, "python3"}};
  CHECK(!has_memory_of_nobody(gpus));
  CHECK(!has_memory_of_nobody({}));
}

TEST_CASE("lanes of PCIe are judged at any time, its generation only right after work") {
  check_only(changed([](GpuFacts& gpu) { gpu.pcie_width = 8; }), GpuRule::kPcieWidth,
             "its PCIe link has 8 lanes, wanted 16");
  CHECK(changed([](GpuFacts& gpu) { gpu.pcie_width = 0; }).empty());
  CHECK(changed([](GpuFacts& gpu) { gpu.pcie_max_width.reset(); }).empty());
  const auto slow = [](GpuFacts& gpu) { gpu.pcie_gen = 1; };
  CHECK(changed(slow).empty());
  check_only(changed(slow, {.nproc = 2, .visible = 2, .used = {}, .after_work = true}), GpuRule::kPcieGeneration,
             "right after load its PCIe link was at generation 1, wanted 5");
  CHECK(threshold(GpuRule::kPcieGeneration).severity == Severity::kNote);
}

TEST_CASE("a GPU with fewer NVLinks up than another of its model is told, where all lack some it is a note") {
  const auto down = [](GpuFacts& gpu) { gpu.nvlinks[2].up = false; };
  check_only(changed(down), GpuRule::kNvlinkDown, "2 of its 3 NVLinks are up, while GPU 0, of the same model, has 3");
  CHECK(threshold(GpuRule::kNvlinkDown).severity == Severity::kWarning);
  CHECK(changed([](GpuFacts& gpu) { gpu.nvlinks.clear(); }).empty());
  CHECK(changed([](GpuFacts& gpu) {
          for (Nvlink& link : gpu.nvlinks) link.up.reset();
        }).empty());
  std::vector<GpuFacts> gpus = good_gpus();
  for (GpuFacts& gpu : gpus) down(gpu);
  check_only(judge_gpus({}, gpus, kTwoWorkers), GpuRule::kNvlinkSomeDown, "2 of its 3 NVLinks are up", "GPUs 0-1");
  for (GpuFacts& gpu : gpus) gpu.nvlinks = {{0, false, 0}, {1, false, 0}};
  CHECK(judge_gpus({}, gpus, kTwoWorkers).empty());
}

TEST_CASE("NVLinks that count errors during the check are a warning, errors from before it a note") {
  const auto errors = [](GpuFacts& gpu) { gpu.nvlinks[0].errors = gpu.nvlinks[2].errors = 4; };
  check_only(changed(errors), GpuRule::kNvlinkErrors, "NVLinks 0, 2 counted errors during the check");
  check_only(always(errors), GpuRule::kNvlinkOldErrors, "NVLinks 0, 2 counted errors since the driver was loaded");
  CHECK(threshold(GpuRule::kNvlinkErrors).severity == Severity::kWarning);
  CHECK(threshold(GpuRule::kNvlinkOldErrors).severity == Severity::kNote);
  std::vector<GpuFacts> gpus = good_gpus();
  gpus[1].nvlinks[1].errors = 1;
  check_only(judge_gpus({}, gpus, kTwoWorkers), GpuRule::kNvlinkOldErrors,
             "NVLink 1 counted errors since the driver was loaded");
  CHECK(judge_gpus(gpus, good_gpus(), kTwoWorkers).empty());
}

TEST_CASE("clocks throttled by heat or the power brake are told, those of the power limit not") {
  const auto reasons = [](std::uint64_t bits) {
    return changed([=](GpuFacts& gpu) {
      gpu.throttle_reasons = bits;
      gpu.temperature_c = 92;
    });
  };
  for (const std::uint64_t heat : {0x20U, 0x40U, 0x48U}) {
    CAPTURE(heat);
    check_only(reasons(heat), GpuRule::kHot, "its clocks are throttled by heat, at 92 °C");
  }
  check_only(reasons(0x88), GpuRule::kPowerBrake, "its clocks are throttled by the host's power brake");
  check_only(reasons(0x08), GpuRule::kSlowdown, "its clocks are throttled by the hardware, which gives no reason");
  CHECK(reasons(0x40 | 0x80).size() == 2);
  CHECK(reasons(0x4).empty());
  check_only(changed([](GpuFacts& gpu) {
               gpu.throttle_reasons = 0x40;
               gpu.temperature_c.reset();
             }),
             GpuRule::kHot, "its clocks are throttled by heat");
}

TEST_CASE("persistence mode and MIG are notes, told once for all GPUs that have them") {
  std::vector<GpuFacts> gpus = good_gpus();
  for (GpuFacts& gpu : gpus) gpu.persistence = false;
  check_only(judge_gpus({}, gpus, kTwoWorkers), GpuRule::kPersistence, "persistence mode is off", "GPUs 0-1");
  CHECK(threshold(GpuRule::kPersistence).severity == Severity::kNote);
  CHECK(threshold(GpuRule::kMig).severity == Severity::kNote);
}

TEST_CASE("a fabric that is not ready is a warning, one that has failed makes the node unhealthy") {
  const auto fabric = [](int state, int status) {
    return changed([=](GpuFacts& gpu) {
      gpu.fabric_state = state;
      gpu.fabric_status = status;
    });
  };
  CHECK(fabric(0, 5).empty());
  check_only(fabric(1, 0), GpuRule::kFabricWaiting, "its registration with the NVLink fabric has not begun");
  check_only(fabric(2, 0), GpuRule::kFabricWaiting, "its registration with the NVLink fabric is still going on");
  check_only(fabric(3, 999), GpuRule::kFabricFailed,
             "its registration with the NVLink fabric failed with NVML's error 999");
  CHECK(threshold(GpuRule::kFabricFailed).severity == Severity::kFatal);
}

TEST_CASE("fewer GPUs than workers are told, where there are any") {
  CHECK(judge_gpus({}, {}, {.nproc = 4, .visible = 0}).empty());
  CHECK(judge_gpus({}, {}, {.nproc = 4, .visible = 4}).empty());
  check_only(judge_gpus({}, {}, {.nproc = 4, .visible = 1}), GpuRule::kFewGpus,
             "workers see 1 GPU, wanted 4 for 4 workers", "CUDA_VISIBLE_DEVICES");
  check_only(judge_gpus({}, {}, {.nproc = 3, .visible = {}, .used = {{"a", ""}, {"b", ""}}}), GpuRule::kFewGpus,
             "workers see 2 GPUs, wanted 3 for 3 workers", "CUDA_VISIBLE_DEVICES");
}

TEST_CASE("GPUs of different models or drivers in a node are told") {
  check_only(changed([](GpuFacts& gpu) { gpu.name = "NVIDIA A100"; }), GpuRule::kModels,
             "the node's GPUs are of different models: GPU 1 (00000000:1B:00.0): NVIDIA A100; GPU 0 "
             "(00000000:0B:00.0): NVIDIA H100",
             "nvidia-smi");
  check_only(changed([](GpuFacts& gpu) { gpu.driver_version = "1"; }), GpuRule::kDrivers,
             "the node's GPUs have different drivers: GPU 1 (00000000:1B:00.0): 1; GPU 0 (00000000:0B:00.0): "
             "580.65.06",
             "nvidia-smi");
}

TEST_CASE("only GPUs that the workers will use are judged, by whichever of their names is known") {
  const Change bad = [](GpuFacts& gpu) { gpu.needs_reset = true; };
  const auto judged = [&](const std::vector<GpuIdentity>& used) {
    return !changed(bad, {.nproc = 1, .visible = 1, .used = used}).empty();
  };
  CHECK(judged({}));
  CHECK(judged({{"GPU-1", ""}}));
  CHECK(judged({{"", "0000:1b:00.0"}}));
  CHECK(judged({{"MIG-5", "0000:1b:00.0"}}));
  CHECK(!judged({{"GPU-0", "0000:0b:00.0"}}));
  CHECK(!judged({{"GPU-0", ""}}));
  CHECK(!judged({{"", "0001:1b:00.0"}}));
  CHECK(judged({{"", "nonsense"}}));
  // A GPU that NVML cannot reach has no name. It is taken for one of the workers' GPUs if one of those is missing.
  const Change lost = [](GpuFacts& gpu) { gpu = {.index = 1, .lost = true}; };
  CHECK(changed(lost, {.nproc = 1, .visible = 1, .used = {{"GPU-0", ""}}}).empty());
  CHECK(!changed(lost, {.nproc = 1, .visible = 1, .used = {{"GPU-1", ""}}}).empty());
  CHECK(!changed(lost, {.nproc = 2, .visible = 2, .used = {{"GPU-0", ""}, {"GPU-1", ""}}}).empty());
  CHECK(judge_gpus(good_gpus(), {good_gpu(0)}, {.nproc = 1, .visible = 1, .used = {{"GPU-0", ""}}}).empty());
}

TEST_CASE("an Xid since the job began makes a GPU unhealthy where it says so, one of a program says nothing") {
  for (const int number : {48, 62, 64, 74, 79, 95, 119, 120}) {
    CAPTURE(number);
    const auto findings = xid_findings("", xid_line(number), {});
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].severity == Severity::kFatal);
    CHECK(findings[0].what.starts_with("Xid " + std::to_string(number) + ": "));
    CHECK(findings[0].where == "PCI:0000:1b:00");
    CHECK(findings[0].remedy == threshold(GpuRule::kXidUnhealthy).remedy);
  }
  for (const int number : {63, 92, 94}) {
    CAPTURE(number);
    CHECK(xid_findings("", xid_line(number), {}).front().severity == Severity::kWarning);
  }
  for (const int number : {13, 31, 43, 45}) {
    CAPTURE(number);
    CHECK(xid_findings(xid_line(number), xid_line(number), {}).empty());
  }
  check_only(xid_findings("", xid_line(999), {}), GpuRule::kXidUnknown,
             "Xid 999: an error of a GPU that NVIDIA's driver reported", "PCI:0000:1b:00");
  CHECK(xid_findings("usb 1-1: new device\nNVRM: Xid", "x", {}).empty());
}

TEST_CASE("an Xid is told once for each GPU, and one from before the job began only as a note") {
  const std::string twice = xid_line(79) + xid_line(79) + xid_line(79, "PCI:0000:2b:00");
  const auto findings = xid_findings("", twice, {});
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].what.ends_with("; 2 times"));
  CHECK(findings[1].where == "PCI:0000:2b:00");
  check_only(xid_findings(xid_line(63), "", {}), GpuRule::kXidOld,
             "Xid 63: a failing page or row of GPU memory was recorded for retirement or remapping", "PCI:0000:1b:00");
  CHECK(threshold(GpuRule::kXidOld).severity == Severity::kNote);
  CHECK(xid_findings(xid_line(79), xid_line(79), {}).size() == 1);
  CHECK(xid_findings(xid_line(79, "PCI:0000:2b:00"), xid_line(79), {}).size() == 2);
  CHECK(xid_findings(xid_line(999), "", {}).empty());
  std::string many;
  for (int i = 0; i < 100; ++i) many += xid_line(79, "PCI:0000:" + std::to_string(i) + ":00");
  CHECK(xid_findings("", many, {}).size() == 16);
}

TEST_CASE("an Xid of a GPU that the workers do not use is nobody's affair") {
  const auto told = [](const std::vector<GpuIdentity>& used) {
    return !xid_findings("", xid_line(79), {.nproc = 1, .visible = {}, .used = used}).empty();
  };
  CHECK(told({{"GPU-1", "00000000:1B:00.0"}}));
  CHECK(!told({{"GPU-0", "00000000:0B:00.0"}}));
  CHECK(told({{"GPU-0", ""}}));
}
