#include "cli/detect/detect.h"

#include <utility>

#include "cli/detect/kubernetes.h"
#include "cli/detect/slurm.h"
#include "cli/flag_checks.h"

namespace elastic::cli::detect {
namespace {

// Of the flags that say where and how nodes meet.
bool is_for_meeting(FlagId id) {
  return id == FlagId::kRdzvBackend || id == FlagId::kRdzvEndpoint || id == FlagId::kNodeRank;
}

bool is_one_node(const ParsedFlags& flags) {
  const auto nodes = check_nnodes(flags.text(FlagId::kNnodes), "");
  return nodes && nodes->max == 1;
}

}  // namespace

bool has_own_meeting(const ParsedFlags& flags) {
  for (const FlagId id : {FlagId::kRdzvEndpoint, FlagId::kMasterAddr, FlagId::kMasterPort}) {
    if (flags.is_given(id)) return true;
  }
  if (flags.on(FlagId::kStandalone)) return true;
  if (flags.is_given(FlagId::kRdzvBackend)) {
    const auto backend = check_rdzv_backend(flags.text(FlagId::kRdzvBackend), "");
    if (!backend || *backend != Backend::kC10d) return true;
  }
  if (flags.is_given(FlagId::kNnodes) && is_one_node(flags)) return true;
  if (!flags.is_given(FlagId::kRdzvConf)) return false;
  const auto conf = check_rdzv_conf(flags.text(FlagId::kRdzvConf), "");
  const std::string* type = conf ? conf->find("store_type") : nullptr;
  return type != nullptr && *type != "tcp";
}

Result<Detected> detect(ParsedFlags& flags, const EnvironmentLookup& environment, const FileLookup& file) {
  if (environment(kSwitchVariable) == "off") return Detected{};
  Result<Detected> found = detect_slurm(environment);
  if (found && found->system.empty()) found = detect_kubernetes(flags, environment, file);
  if (has_own_meeting(flags)) {
    if (!found) return Detected{};
    return Detected{.system = found->system, .signals_the_node = found->signals_the_node};
  }
  if (!found) return found;
  const auto take = [&](const Default& one) {
    if (flags[one.flag].origin != Origin::kDefault) return;
    flags[one.flag] = {.text = one.value, .origin = Origin::kDetected, .source = one.source};
  };
  for (const Default& one : found->defaults) {
    if (!is_for_meeting(one.flag)) take(one);
  }
  // One node alone meets nobody.
  if (!is_one_node(flags)) {
    for (const Default& one : found->defaults) take(one);
  }
  return found;
}

}  // namespace elastic::cli::detect
