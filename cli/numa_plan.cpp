#include "cli/plan_parts.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/text.h"
#include "src/numa/binding.h"

namespace elastic::cli {
namespace {

// One of the words of --numa-binding; --numa-affinity alone means the node.
numa::Mode mode_of(std::string_view word) {
  if (word == "socket") return numa::Mode::kSocket;
  if (word == "exclusive") return numa::Mode::kExclusive;
  return word == "core-complex" ? numa::Mode::kCoreComplex : numa::Mode::kNode;
}

// dlrover-run's rule: with any other word only the CPUs are bound.
numa::Memory memory_of(std::string_view word) {
  if (word == "bind") return numa::Memory::kBound;
  return word == "preferred" ? numa::Memory::kPreferred : numa::Memory::kAny;
}

std::string warning_about(const std::vector<numa::Placement>& placements) {
  std::vector<numa::Warning> warnings;
  for (std::size_t rank = 0; rank < placements.size(); ++rank) {
    if (placements[rank].why_other.empty()) continue;
    warnings.push_back(
        {.kind = placements[rank].cpus.empty() ? numa::Warning::Kind::kCpusNotBound : numa::Warning::Kind::kOtherCpus,
         .local_rank = static_cast<int>(rank),
         .reason = placements[rank].why_other});
  }
  return numa::text_of(warnings);
}

}  // namespace

void plan_numa(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan) {
  const std::string& mode = flags.text(FlagId::kNumaBinding);
  const bool binds_memory = flags.on(FlagId::kNumaAffinity);
  if (!binds_memory && flags.is_given(FlagId::kMembindPolicy)) {
    plan.warn(format("{}: it is only used with --numa-affinity", flags.input(FlagId::kMembindPolicy)));
  }
  if (mode.empty() && !binds_memory) return;
  if (const std::string& policy = flags.text(FlagId::kMembindPolicy);
      binds_memory && memory_of(policy) == numa::Memory::kAny && policy != "none") {
    plan.warn(
        format("{}: it is none of bind, preferred and none, and binds no memory", flags.input(FlagId::kMembindPolicy)));
  }
  const numa::Request request{
      .mode = mode_of(mode),
      .memory = binds_memory ? memory_of(flags.text(FlagId::kMembindPolicy)) : numa::Memory::kAny};
  const numa::Topology topology = host.numa_topology(request.mode, elastic::lookup(environment, "CUDA_VISIBLE_DEVICES"),
                                                     elastic::lookup(environment, "CUDA_DEVICE_ORDER"));
  const FlagId asked = mode.empty() ? FlagId::kNumaAffinity : FlagId::kNumaBinding;
  plan.entry("NUMA binding",
             format("{}, {}", mode.empty() ? "node" : mode,
                    topology.gpus.empty() ? "by local rank (no NVIDIA GPU is visible)" : "by GPU"),
             flags.origin_text(asked));
  plan.settings.placements = numa::place_workers(topology, request, plan.settings.node.local_world_size);
  std::string warning = warning_about(plan.settings.placements);
  if (!warning.empty()) plan.warn(format("{}: {}", flags.input(asked), warning));
}

std::string text_of(const numa::Placement& placement) {
  std::string text = placement.cpus.empty()
                         ? std::string("not bound to CPUs")
                         : format("{} {}", plural("CPU", placement.cpus.size()), rank_ranges(placement.cpus));
  if (placement.nodes.empty()) return text + "; memory of any NUMA node";
  return text + format("; memory of {} {}{}", plural("NUMA node", placement.nodes.size()), rank_ranges(placement.nodes),
                       placement.memory == numa::Memory::kPreferred ? " preferred" : " only");
}

}  // namespace elastic::cli
