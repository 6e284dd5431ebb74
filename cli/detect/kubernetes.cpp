#include "cli/detect/systems.h"

#include <utility>

#include "cli/flag_checks.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "src/base/hosts_file.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::cli::detect {
namespace {

constexpr const char* kKubernetes = "Kubernetes";
constexpr const char* kIndex = "JOB_COMPLETION_INDEX";

class PodReader {
 public:
  PodReader(const ParsedFlags& flags, const EnvironmentLookup& environment, const FileLookup& file)
      : flags_(flags), environment_(environment), file_(file) {}

  Result<Detected> read() {
    if (variable(kIndex)) return read_indexed_job();
    if (is_operators_pod()) return read_operators_pod();
    return Detected{};
  }

 private:
  Result<Detected> read_indexed_job();
  Result<Detected> read_operators_pod();
  bool is_operators_pod() const;
  bool meets_others() const;

  // An empty variable counts as unset.
  std::optional<std::string> variable(const char* name) const {
    auto value = environment_(name);
    if (value && value->empty()) value.reset();
    return value;
  }
  Result<std::int64_t> number(const char* name, std::int64_t least, std::int64_t most) const;
  void take(FlagId flag, std::string value, const char* name) {
    found_.defaults.push_back(
        {flag, std::move(value), format("{}: {}={}", kKubernetes, name, printable(*variable(name)))});
  }

  const ParsedFlags& flags_;
  const EnvironmentLookup& environment_;
  const FileLookup& file_;
  Detected found_{.system = kKubernetes};
};

Result<std::int64_t> PodReader::number(const char* name, std::int64_t least, std::int64_t most) const {
  const std::string text = variable(name).value_or("");
  const auto value = parse_int(text);
  if (value && *value >= least && *value <= most) return *value;
  return fail(format("{}={}", name, printable(text)), format("this is not a number from {} to {}", least, most),
              "unset it, name the nodes with --nnodes and --rdzv-endpoint, or set ELASTIC_RUN_DETECT=off");
}

bool PodReader::meets_others() const {
  const auto nodes = check_nnodes(flags_.text(FlagId::kNnodes), "");
  return nodes && nodes->max > 1;
}

// The Job controller calls pod I of the Job J "J-I". If the pod has a full name, a subdomain follows.
Result<Detected> PodReader::read_indexed_job() {
  const auto index = number(kIndex, 0, static_cast<std::int64_t>(limits::kNodesPerJob) - 1);
  if (!index) return meets_others() ? Result<Detected>(std::unexpected(index.error())) : Detected{};
  const std::string name = variable("HOSTNAME").value_or("");
  const std::string ending = format("-{}", *index);
  const std::string full = full_name_in_hosts(file_("/etc/hosts"), name);
  const bool is_called_so = name.ends_with(ending) && full.starts_with(name + ".");
  if (!meets_others()) {
    if (is_called_so && !flags_.is_given(FlagId::kNnodes)) {
      found_.notes.push_back(format(
          "{}={}: this is a pod of an Indexed Job, but nothing says how many pods that has, so this one trains alone; "
          "set PET_NNODES to the Job's completions if its pods are to train together",
          kIndex, *index));
    }
    return std::move(found_);
  }
  if (!is_called_so) {
    return fail(
        format("{}={}", kIndex, *index),
        format("this pod ({}) has no host name by which the other pods of its Job can find it", printable(name)),
        "give the pods a subdomain, the name of a headless service, and no hostNetwork; or name a place to meet "
        "with --rdzv-endpoint (docs/kubernetes.md)");
  }
  const std::string job = name.substr(0, name.size() - ending.size());
  take(FlagId::kRdzvBackend, "c10d", kIndex);
  take(FlagId::kRdzvEndpoint, format("{}-0{}:{}", job, full.substr(name.size()), transport::kDefaultPort), "HOSTNAME");
  take(FlagId::kRdzvId, job, "HOSTNAME");
  take(FlagId::kNodeRank, format("{}", *index), kIndex);
  return std::move(found_);
}

// A worker of another launcher has these variables, too, and LOCAL_RANK.
bool PodReader::is_operators_pod() const {
  for (const char* name : {"KUBERNETES_SERVICE_HOST", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    if (!variable(name)) return false;
  }
  // With PET_NNODES the operator has said the number of nodes, and WORLD_SIZE is that of the workers. DLRover's pods
  // are told where to meet by other variables.
  const bool is_told_nodes = flags_[FlagId::kNnodes].origin == Origin::kEnvironment;
  return !variable("LOCAL_RANK") && !is_told_nodes && !variable("DLROVER_MASTER_ADDR");
}

Result<Detected> PodReader::read_operators_pod() {
  const auto nodes = number("WORLD_SIZE", 1, static_cast<std::int64_t>(limits::kNodesPerJob));
  if (!nodes) return std::unexpected(nodes.error());
  const auto rank = number("RANK", 0, *nodes - 1);
  if (!rank) return std::unexpected(rank.error());
  const auto port = number("MASTER_PORT", 1, 65535);
  if (!port) return std::unexpected(port.error());
  const std::string host = *variable("MASTER_ADDR");
  const bool is_ipv6 = host.contains(':') && !host.starts_with('[');
  take(FlagId::kNnodes, format("{}", *nodes), "WORLD_SIZE");
  take(FlagId::kRdzvBackend, "c10d", "MASTER_ADDR");
  take(FlagId::kRdzvEndpoint, is_ipv6 ? format("[{}]:{}", host, *port) : format("{}:{}", host, *port), "MASTER_ADDR");
  take(FlagId::kNodeRank, format("{}", *rank), "RANK");
  return std::move(found_);
}

}  // namespace

Result<Detected> detect_kubernetes(const ParsedFlags& flags, const EnvironmentLookup& environment,
                                   const FileLookup& file) {
  return PodReader(flags, environment, file).read();
}

}  // namespace elastic::cli::detect
