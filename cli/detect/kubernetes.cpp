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
// Set by LeaderWorkerSet.
constexpr const char* kLeader = "LWS_LEADER_ADDRESS";
constexpr const char* kGroupSize = "LWS_GROUP_SIZE";
constexpr const char* kWorkerIndex = "LWS_WORKER_INDEX";
// Mapped from the labels that JobSet gives its pods, as examples/kubernetes/jobset.yaml does. A JobSet makes several
// Jobs of one template.
constexpr const char* kJobIndex = "JOBSET_JOB_INDEX";
constexpr const char* kJobs = "JOBSET_REPLICATEDJOB_REPLICAS";
constexpr const char* kCompletions = "JOBSET_JOB_COMPLETIONS";  // of one of the Jobs; may be absent

constexpr auto kMostNodes = static_cast<std::int64_t>(limits::kNodesPerJob);

class PodReader {
 public:
  PodReader(const ParsedFlags& flags, const EnvironmentLookup& environment, const FileLookup& file)
      : flags_(flags), environment_(environment), file_(file) {}

  Result<Detected> read() {
    // Somebody has set the variables of an operator's pod in that of another.
    if (!variable(kIndex) && is_operators_pod()) return read_operators_pod();
    if (variable(kLeader) && variable(kGroupSize)) return read_leader_worker_set();
    if (variable(kIndex)) return read_indexed_job();
    return Detected{};
  }

 private:
  Result<Detected> read_leader_worker_set();
  Result<Detected> read_indexed_job();
  Result<Detected> read_operators_pod();
  bool is_operators_pod() const;
  bool meets_others() const;
  // A pod of an Indexed Job: its index, the Job's name, and what follows in the pod's full name.
  struct IndexedPod {
    std::int64_t index = 0;
    std::string job = {};
    std::string domain = {};  // ".train.default.svc.cluster.local"
  };
  Result<Detected> read_jobset(const IndexedPod& pod);
  std::optional<Error> why_more_jobs(const IndexedPod& pod) const;
  void meet_at(const std::string& host, std::int64_t port, const char* name) {
    const bool is_ipv6 = host.contains(':') && !host.starts_with('[');
    take(FlagId::kRdzvBackend, "c10d", name);
    take(FlagId::kRdzvEndpoint, is_ipv6 ? format("[{}]:{}", host, port) : format("{}:{}", host, port), name);
  }

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

// Each group of pods is a job. The leader's address is a name, "SET-GROUP.SUBDOMAIN.NAMESPACE", or numeric.
Result<Detected> PodReader::read_leader_worker_set() {
  const auto nodes = number(kGroupSize, 1, kMostNodes);
  if (!nodes) return std::unexpected(nodes.error());
  if (*nodes == 1) return std::move(found_);
  if (!variable(kWorkerIndex)) {
    return fail(format("{} is set, but {} is not", kLeader, kWorkerIndex),
                "LeaderWorkerSet before 0.6 does not tell a pod its index",
                "map the pod's label leaderworkerset.sigs.k8s.io/worker-index to it (docs/kubernetes.md)");
  }
  const auto index = number(kWorkerIndex, 0, *nodes - 1);
  if (!index) return std::unexpected(index.error());
  found_.node = *index;
  const std::string leader = *variable(kLeader);
  const bool is_numeric = leader.contains(':') || leader.find_first_not_of("0123456789.") == std::string::npos;
  take(FlagId::kNnodes, format("{}", *nodes), kGroupSize);
  meet_at(leader, transport::kDefaultPort, kLeader);
  take(FlagId::kRdzvId, is_numeric ? leader : leader.substr(0, leader.find('.')), kLeader);
  take(FlagId::kNodeRank, format("{}", *index), kWorkerIndex);
  return std::move(found_);
}

// JobSet calls Job K of its template T "SET-T-K". Each of the Jobs counts its pods from 0.
Result<Detected> PodReader::read_jobset(const IndexedPod& pod) {
  if (!variable(kJobs)) {
    return fail(format("{} is set, but {} is not", kJobIndex, kJobs), "nothing says how many Jobs the JobSet has",
                "map the pod's label jobset.sigs.k8s.io/replicatedjob-replicas to it (docs/kubernetes.md)");
  }
  const auto jobs = number(kJobs, 1, kMostNodes);
  if (!jobs) return std::unexpected(jobs.error());
  const auto job = number(kJobIndex, 0, *jobs - 1);
  if (!job) return std::unexpected(job.error());
  const std::string ending = format("-{}", *job);
  if (!pod.job.ends_with(ending)) {
    return fail(format("{}={}", kJobIndex, *job),
                format("this pod's Job is {}, which is no Job {} of a JobSet", printable(pod.job), *job),
                "map the pod's label jobset.sigs.k8s.io/job-index to it (docs/kubernetes.md)");
  }
  const std::int64_t most = check_nnodes(flags_.text(FlagId::kNnodes), "")->max;
  const auto completions = variable(kCompletions) ? number(kCompletions, 1, kMostNodes) : most / *jobs;
  if (!completions) return std::unexpected(completions.error());
  if (!variable(kCompletions) && most % *jobs != 0) {
    return fail(format("{}={}", kJobs, *jobs),
                format("{} nodes are not the same number for each of {} Jobs", most, *jobs),
                format("give the completions of one Job as {}", kCompletions));
  }
  if (pod.index >= *completions) {
    return fail(format("{}={}", kIndex, pod.index),
                format("each of the {} Jobs has {} of the {} nodes", *jobs, *completions, most),
                format("give the pods of all Jobs as PET_NNODES, or the completions of one Job as {}", kCompletions));
  }
  const std::string set = pod.job.substr(0, pod.job.size() - ending.size());
  meet_at(format("{}-0-0{}", set, pod.domain), transport::kDefaultPort, "HOSTNAME");
  take(FlagId::kRdzvId, set, "HOSTNAME");
  take(FlagId::kNodeRank, format("{}", *job * *completions + pod.index), kJobIndex);
  return std::move(found_);
}

// A pod of a JobSet's second Job, or a later one, would meet the pods of its own Job only. Its name shows it, where the
// subdomain is JobSet's own, the JobSet's name.
std::optional<Error> PodReader::why_more_jobs(const IndexedPod& pod) const {
  if (flags_.is_given(FlagId::kRdzvId)) return {};
  const std::string set = pod.domain.substr(1, pod.domain.find('.', 1) - 1);
  const std::size_t dash = pod.job.rfind('-');
  if (!pod.job.starts_with(set + "-") || dash <= set.size()) return {};
  const std::string text = pod.job.substr(dash + 1);
  const auto job = parse_int(text);
  // A date or a time at the end of a Job's name is no index of a JobSet.
  if (!job || *job < 1 || *job >= kMostNodes || text != format("{}", *job)) return {};
  return Error{format("{}={}", kIndex, pod.index),
               format("{}-{} looks like a pod of Job {} of the JobSet {}, whose Jobs each count their pods from 0",
                      printable(pod.job), pod.index, *job, printable(set)),
               format("to train in all Jobs together, map the pod's labels jobset.sigs.k8s.io/job-index and "
                      "jobset.sigs.k8s.io/replicatedjob-replicas to {} and {} (docs/kubernetes.md); if this Job trains "
                      "by itself, set PET_RDZV_ID to its name",
                      kJobIndex, kJobs)};
}

// The Job controller calls pod I of the Job J "J-I". If the pod has a full name, a subdomain follows.
Result<Detected> PodReader::read_indexed_job() {
  const auto index = number(kIndex, 0, kMostNodes - 1);
  if (!index) return meets_others() ? Result<Detected>(std::unexpected(index.error())) : Detected{};
  const std::string name = variable("HOSTNAME").value_or("");
  const std::string ending = format("-{}", *index);
  const std::string full = full_name_in_hosts(file_("/etc/hosts"), name);
  const bool is_called_so = name.ends_with(ending) && full.starts_with(name + ".");
  if (!meets_others()) {
    if (is_called_so && !flags_.is_given(FlagId::kNnodes)) {
      found_.notes.push_back(format(
          "{}={}: this is a pod of an Indexed Job, but nothing says how many pods that has, so this one trains alone; "
          "set PET_NNODES to the number of pods that are to train together",
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
  found_.node = *index;
  const IndexedPod pod{*index, name.substr(0, name.size() - ending.size()), full.substr(name.size())};
  if (variable(kJobIndex)) return read_jobset(pod);
  if (auto why = why_more_jobs(pod)) return std::unexpected(*std::move(why));
  meet_at(format("{}-0{}", pod.job, pod.domain), transport::kDefaultPort, "HOSTNAME");
  take(FlagId::kRdzvId, pod.job, "HOSTNAME");
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
  const auto nodes = number("WORLD_SIZE", 1, kMostNodes);
  if (!nodes) return std::unexpected(nodes.error());
  const auto rank = number("RANK", 0, *nodes - 1);
  if (!rank) return std::unexpected(rank.error());
  const auto port = number("MASTER_PORT", 1, 65535);
  if (!port) return std::unexpected(port.error());
  take(FlagId::kNnodes, format("{}", *nodes), "WORLD_SIZE");
  meet_at(*variable("MASTER_ADDR"), *port, "MASTER_ADDR");
  take(FlagId::kNodeRank, format("{}", *rank), "RANK");
  return std::move(found_);
}

}  // namespace

Result<Detected> detect_kubernetes(const ParsedFlags& flags, const EnvironmentLookup& environment,
                                   const FileLookup& file) {
  return PodReader(flags, environment, file).read();
}

}  // namespace elastic::cli::detect
