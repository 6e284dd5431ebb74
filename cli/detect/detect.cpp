#include "cli/detect/detect.h"

#include <algorithm>
#include <utility>

#include "cli/detect/systems.h"
#include "cli/flag_checks.h"
#include "cli/rdzv_conf.h"
#include "src/base/address.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::cli::detect {
namespace {

constexpr const char* kRunId = "TORCHELASTIC_RUN_ID";

// Whether the flag says where or how nodes meet.
bool is_for_rendezvous(FlagId id) {
  return id == FlagId::kRdzvBackend || id == FlagId::kRdzvEndpoint || id == FlagId::kNodeRank;
}

bool is_one_node(const ParsedFlags& flags) {
  const auto nodes = check_nnodes(flags.text(FlagId::kNnodes), "");
  return nodes && nodes->max == 1;
}

// The host of the endpoint that the user has named; empty: none, or it is no host.
std::string own_host(const ParsedFlags& flags, FlagId& named_by) {
  if (!flags.is_given(FlagId::kNnodes) || flags.on(FlagId::kStandalone)) return {};
  const auto conf = check_rdzv_conf(flags.text(FlagId::kRdzvConf), "");
  if (!conf || conf->boolean("is_host") || conf->find("store_type") != nullptr) return {};
  named_by = flags.is_given(FlagId::kRdzvEndpoint) ? FlagId::kRdzvEndpoint : FlagId::kMasterAddr;
  if (!flags.is_given(named_by)) return {};
  const auto endpoint = check_endpoint(flags.text(named_by), "");
  return endpoint ? endpoint->host : "";
}

// An endpoint that is each node itself would make as many jobs of one node, which wait for each other.
std::optional<Error> why_never_met(const ParsedFlags& flags, const Detected& found) {
  FlagId named_by{};
  const std::string host = own_host(flags, named_by);
  if (!found.node || *found.node == 0 || (lower(host) != "localhost" && !is_loopback(host))) return {};
  const auto nodes = check_nnodes(flags.text(FlagId::kNnodes), "");
  // Jobs of fewer nodes than the step may each be on one host.
  if (!nodes || nodes->max <= 1 || nodes->max < static_cast<std::int64_t>(found.hosts.size())) return {};
  // An Indexed Job does not tell its pods how many they are.
  const bool is_pod = found.hosts.empty();
  const std::string where = is_pod ? "" : format(" of the step's {}", found.hosts.size());
  return Error{
      flags.input(named_by),
      format("{} is each node itself, and this one is node {}{}: it would never meet the others", printable(host),
             *found.node, where),
      is_pod ? "leave the endpoint out, or give all pods the name of pod 0"
             : format("leave --nnodes and the endpoint out, or give all nodes the name of {}", found.hosts.front())};
}

// A worker of another launcher inherits all variables of its node, but is not a node of that job. The ids of Slurm
// steps that elastic-run has launched are known: a job that is submitted from within a worker inherits that worker's
// id.
bool is_worker(const EnvironmentLookup& environment, const Result<Detected>& found) {
  const auto id = environment(kRunId);
  if (!id) return false;
  if (!found || !id->starts_with(kSlurmRunId)) return true;
  return std::ranges::any_of(found->defaults,
                             [&](const Default& one) { return one.flag == FlagId::kRdzvId && one.value == *id; });
}

// A batch system that signals every process of the node with one of the user's own signals must not end elastic-run.
void keep_alive_under_signals(ParsedFlags& flags, const std::string& system) {
  FlagValue& forward = flags[FlagId::kForwardSignals];
  if (forward.origin != Origin::kDefault) return;
  const auto ending = check_signals_to_handle(flags.text(FlagId::kSignalsToHandle), "");
  if (!ending) return;
  const auto ends = [&](int signal) { return std::ranges::find(ending->numbers, signal) != ending->numbers.end(); };
  std::vector<std::string> names;
  for (const char* name : {"USR1", "USR2"}) {
    if (!ends(*signal_number(name))) names.push_back(signal_name(*signal_number(name)));
  }
  if (names.empty()) return;
  forward = {.text = join(names, ","), .origin = Origin::kDetected, .source = format("{}: a step", system)};
}

}  // namespace

bool has_own_rendezvous(const ParsedFlags& flags) {
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
  if (is_worker(environment, found)) {
    Detected nothing;
    if (!found || !found->defaults.empty()) {
      nothing.notes.push_back(
          format("{}={}: this is a worker of another launcher, so the variables of Slurm or "
                 "Kubernetes are ignored; unset this one if it is not",
                 kRunId, printable(*environment(kRunId))));
    }
    return nothing;
  }
  if (found && found->signals_the_node) keep_alive_under_signals(flags, found->system);
  if (has_own_rendezvous(flags)) {
    if (!found) return Detected{};
    if (auto why = why_never_met(flags, *found)) return std::unexpected(*std::move(why));
    return Detected{.system = found->system, .signals_the_node = found->signals_the_node};
  }
  if (!found) return found;
  const auto take = [&](const Default& one) {
    if (flags[one.flag].origin != Origin::kDefault) return;
    flags[one.flag] = {.text = one.value, .origin = Origin::kDetected, .source = one.source};
  };
  for (const Default& one : found->defaults) {
    if (!is_for_rendezvous(one.flag)) take(one);
  }
  // A job of one node needs no rendezvous.
  if (!is_one_node(flags)) {
    for (const Default& one : found->defaults) take(one);
  }
  return found;
}

}  // namespace elastic::cli::detect
