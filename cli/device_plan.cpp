#include "cli/device_plan.h"

#include <vector>

#include "rendezvous/membership/training_port.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

constexpr const char* kFirstPort = "HCCL_IF_BASE_PORT";

bool has_nvidia(const HostView& host) { return host.visible_gpus({}) > 0; }

// Those of the variables that are set: " with ZE_AFFINITY_MASK=7".
std::string settings_of(const Environment& environment, const std::vector<std::string_view>& variables) {
  std::vector<std::string> set;
  for (const std::string_view name : variables) {
    if (const auto value = elastic::lookup(environment, name)) set.push_back(format("{}={}", name, printable(*value)));
  }
  return set.empty() ? "" : format(" with {}", join(set, " "));
}

std::string why_no_gpu(const HostView& host, const Environment& environment) {
  const bool is_amd = !has_nvidia(host) && host.other_devices(environment).has_amd;
  const std::string settings =
      is_amd ? settings_of(environment, {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"})
             : settings_of(environment, {"CUDA_VISIBLE_DEVICES"});
  if (is_amd) return format("no AMD GPU is visible{}", settings);
  if (!settings.empty()) return format("no NVIDIA GPU is visible{}", settings);
  return "no NVIDIA GPU is found (/proc/driver/nvidia/gpus, /dev/nvidia0), and none of AMD (/sys/class/kfd, /dev/kfd)";
}

// With those of AMD's processors.
WorkerCount count_all_gpus(const HostView& host, const Environment& environment) {
  if (!has_nvidia(host)) {
    const HostView::OtherDevices others = host.other_devices(environment);
    if (others.has_amd) return {others.amd, "visible AMD GPUs"};
  }
  return {host.visible_gpus(elastic::lookup(environment, "CUDA_VISIBLE_DEVICES")), "visible GPUs"};
}

}  // namespace

WorkerCount count_gpus(const HostView& host, const Environment& environment) {
  if (!has_nvidia(host) && host.other_devices(environment).is_amd_integrated) return {};
  return count_all_gpus(host, environment);
}

Result<WorkerCount> count_workers(const WorkersPerNode& wanted, const std::string& input, const HostView& host,
                                  const Environment& environment) {
  using Kind = WorkersPerNode::Kind;
  const std::string remedy = "give the number of workers, or use auto or cpu";
  switch (wanted.kind) {
    case Kind::kNumber: return WorkerCount{wanted.number};
    case Kind::kCpu: return WorkerCount{host.usable_cpus(), "usable CPUs"};
    case Kind::kGpu: {
      WorkerCount gpus = count_all_gpus(host, environment);
      if (gpus.number == 0) return fail(input, why_no_gpu(host, environment), remedy);
      return gpus;
    }
    case Kind::kXpu: {
      const HostView::OtherDevices others = host.other_devices(environment);
      const int count = others.intel != 0 ? others.intel : others.intel_integrated;
      if (count > 0) return WorkerCount{count, "visible Intel GPUs"};
      return fail(input,
                  others.has_intel ? format("no Intel GPU is visible{}", settings_of(environment, {"ZE_AFFINITY_MASK"}))
                                   : "no Intel GPU is found (with i915 or xe in /sys/bus/pci/devices, and in /dev/dri)",
                  remedy);
    }
    case Kind::kAuto: break;
  }
  if (WorkerCount gpus = count_gpus(host, environment); gpus.number > 0) return gpus;
  if (const int intel = host.other_devices(environment).intel; intel > 0)
    return WorkerCount{intel, "visible Intel GPUs"};
  return WorkerCount{host.usable_cpus(), "usable CPUs (no GPU is visible)"};
}

run::Devices devices_of_workers(const ParsedFlags& flags, const HostView& host, const Environment& environment) {
  using run::Devices;
  if (flags.text(FlagId::kAccelerator) == "ascend-npu") return Devices::kAscend;
  if (has_nvidia(host)) return Devices::kCuda;
  const HostView::OtherDevices others = host.other_devices(environment);
  const bool has_amd = others.has_amd && !others.is_amd_integrated;
  if (has_amd || elastic::lookup(environment, "ROCR_VISIBLE_DEVICES")) return Devices::kAmd;
  if (others.has_ascend || elastic::lookup(environment, "ASCEND_RT_VISIBLE_DEVICES")) return Devices::kAscend;
  if (others.has_intel || elastic::lookup(environment, "ZE_AFFINITY_MASK")) return Devices::kIntel;
  return others.has_amd ? Devices::kAmd : Devices::kCuda;
}

Status plan_training_port(const ParsedFlags& flags, const Environment& environment, LaunchPlan& plan) {
  std::int64_t start = flags.integer(FlagId::kTrainingPort);
  if (flags.text(FlagId::kAccelerator) != "ascend-npu") {
    if (flags.is_given(FlagId::kTrainingPort) &&
        flags.text(FlagId::kTrainingPort) != flag_of(FlagId::kTrainingPort).by_default.value_or("")) {
      plan.warn(
          format("{} is only used with --accelerator=ascend-npu; it is ignored", flags.input(FlagId::kTrainingPort)));
    }
    return {};
  }
  if (start == 0) return {};
  std::string input = flags.input(FlagId::kTrainingPort);
  std::string origin = flags.origin_text(FlagId::kTrainingPort);
  const std::string remedy = format("give a port from 1 to {}", membership::kHighestStart);
  const auto set = elastic::lookup(environment, kFirstPort);
  if (set && !set->empty()) {
    input = format("{}={}", kFirstPort, printable(*set));
    origin = format("environment: {}", kFirstPort);
    const auto port = parse_int(*set);
    if (!port || *port < 1) return fail(input, "this is no port", remedy);
    start = *port;
  }
  if (start > membership::kHighestStart) {
    return fail(input, format("HCCL needs {} ports from there on", membership::kTrainingPorts), remedy);
  }
  plan.settings.worker.training_port = static_cast<std::uint16_t>(start);
  plan.entry("HCCL's ports",
             format("the first {} free ones in a row from {} on{}", membership::kTrainingPorts, start,
                    plan.settings.rendezvous.alone ? "" : ", the same on all nodes"),
             std::move(origin));
  return {};
}

}  // namespace elastic::cli
