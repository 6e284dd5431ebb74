#include "cli/detect/systems.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::cli;
using namespace elastic::cli::detect;

namespace {

const std::string kHosts =
    "127.0.0.1\tlocalhost\nfe00::0\tip6-localnet\n10.1.2.3\ttrain-3.train.default.svc.cluster.local\ttrain-3\n";

struct Pod {
  std::map<std::string, std::string> variables;
  std::string hosts = kHosts;

  Result<Detected> read(std::vector<std::string> arguments = {}) const {
    const EnvironmentLookup lookup = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    arguments.emplace_back("train.py");
    const auto flags = parse_command_line(arguments, lookup);
    REQUIRE(flags.has_value());
    return detect_kubernetes(*flags, lookup,
                             [this](const std::string& path) { return path == "/etc/hosts" ? hosts : ""; });
  }
  // "--flag=value (source)" of each default.
  std::vector<std::string> defaults(std::vector<std::string> arguments = {}) const {
    const auto found = read(std::move(arguments));
    REQUIRE_MESSAGE(found.has_value(), (found ? "" : found.error().text()));
    std::vector<std::string> all;
    for (const Default& one : found->defaults) {
      all.push_back(format("{}={} ({})", long_spelling(flag_of(one.flag)), one.value, one.source));
    }
    return all;
  }
};

const Pod kIndexed = {{{"JOB_COMPLETION_INDEX", "3"}, {"HOSTNAME", "train-3"}, {"PET_NNODES", "4"}}};
// Pod 1 of Job 1 of a JobSet of two Jobs of two pods.
const Pod kJobSets = {{{"JOB_COMPLETION_INDEX", "1"},
                       {"HOSTNAME", "train-workers-1-1"},
                       {"PET_NNODES", "4"},
                       {"JOBSET_JOB_INDEX", "1"},
                       {"JOBSET_REPLICATEDJOB_REPLICAS", "2"}},
                      "10.1.2.3\ttrain-workers-1-1.train.default.svc.cluster.local\ttrain-workers-1-1\n"};
const Pod kLeaderWorkerSets = {
    {{"LWS_LEADER_ADDRESS", "train-1.train.default"}, {"LWS_GROUP_SIZE", "3"}, {"LWS_WORKER_INDEX", "2"}}};
const Pod kOperators = {{{"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
                         {"RANK", "1"},
                         {"WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "train-master-0"},
                         {"MASTER_PORT", "23456"}}};

}  // namespace

TEST_CASE("a pod of an Indexed Job has its index as its rank, and meets the others at pod 0 of its full name") {
  CHECK(kIndexed.defaults() ==
        std::vector<std::string>{
            "--rdzv-backend=c10d (Kubernetes: HOSTNAME=train-3)",
            "--rdzv-endpoint=train-0.train.default.svc.cluster.local:29400 (Kubernetes: HOSTNAME=train-3)",
            "--rdzv-id=train (Kubernetes: HOSTNAME=train-3)", "--node-rank=3 (Kubernetes: JOB_COMPLETION_INDEX=3)"});
}

TEST_CASE("a pod knows which of its job's it is, so that an endpoint that is each pod itself can be refused") {
  CHECK(kIndexed.read()->node == 3);
  CHECK(kJobSets.read()->node == 1);
  CHECK(kLeaderWorkerSets.read()->node == 2);
  CHECK_FALSE(kOperators.read()->node);  // people set RANK and MASTER_ADDR by hand, too, for launchers in one pod
  // Kubeflow Trainer makes a JobSet of one Job, and says by PET_ variables where its pods meet.
  Pod trainer = {{{"JOB_COMPLETION_INDEX", "1"},
                  {"HOSTNAME", "train-node-0-1"},
                  {"PET_NNODES", "2"},
                  {"PET_NODE_RANK", "1"},
                  {"PET_MASTER_ADDR", "train-node-0-0.train"},
                  {"PET_MASTER_PORT", "29500"}},
                 "10.1.2.3\ttrain-node-0-1.train.default.svc.cluster.local\ttrain-node-0-1\n"};
  CHECK(trainer.read()->node == 1);
}

TEST_CASE(
    "a pod of an Indexed Job that is not told of how many trains alone, and says so where it has a name for others") {
  Pod pod = kIndexed;
  pod.variables.erase("PET_NNODES");
  auto found = pod.read();
  REQUIRE(found.has_value());
  CHECK(found->defaults.empty());
  REQUIRE(found->notes.size() == 1);
  CHECK(found->notes[0].contains("PET_NNODES"));
  pod.hosts = "10.1.2.3 train-3\n";
  CHECK(pod.read()->notes.empty());
  pod.hosts = kHosts;
  CHECK(pod.read({"--nnodes=1"})->notes.empty());
}

TEST_CASE("pods of an Indexed Job without names for each other cannot meet, and are told what they lack") {
  const auto refused = [](const Pod& pod) {
    const auto found = pod.read();
    REQUIRE(!found.has_value());
    CHECK(found.error().what == "JOB_COMPLETION_INDEX=3");
    CHECK(found.error().remedy.contains("subdomain"));
  };
  Pod pod = kIndexed;
  pod.hosts = "10.1.2.3 train-3\n";
  refused(pod);
  pod = kIndexed;
  pod.variables["HOSTNAME"] = "gpu-host-17";  // hostNetwork
  refused(pod);
  pod.variables.erase("HOSTNAME");
  refused(pod);
  pod = kIndexed;
  pod.variables["JOB_COMPLETION_INDEX"] = "x";
  CHECK(pod.read().error().what == "JOB_COMPLETION_INDEX=x");
  CHECK(pod.read({"--nnodes=1"}).has_value());
}

TEST_CASE("a pod of a LeaderWorkerSet has the size, the leader and the index of its group") {
  CHECK(kLeaderWorkerSets.defaults() ==
        std::vector<std::string>{"--nnodes=3 (Kubernetes: LWS_GROUP_SIZE=3)",
                                 "--rdzv-backend=c10d (Kubernetes: LWS_LEADER_ADDRESS=train-1.train.default)",
                                 "--rdzv-endpoint=train-1.train.default:29400 (Kubernetes: "
                                 "LWS_LEADER_ADDRESS=train-1.train.default)",
                                 "--rdzv-id=train-1 (Kubernetes: LWS_LEADER_ADDRESS=train-1.train.default)",
                                 "--node-rank=2 (Kubernetes: LWS_WORKER_INDEX=2)"});
  Pod pod = kLeaderWorkerSets;
  pod.variables["LWS_WORKER_INDEX"] = "3";
  CHECK(pod.read().error().what == "LWS_WORKER_INDEX=3");
  pod.variables.erase("LWS_WORKER_INDEX");  // before LeaderWorkerSet 0.6
  CHECK(pod.read().error().remedy.contains("leaderworkerset.sigs.k8s.io/worker-index"));
  pod.variables["LWS_GROUP_SIZE"] = "1";
  CHECK(pod.defaults().empty());  // one pod needs no index
  pod.variables.erase("LWS_LEADER_ADDRESS");
  pod.variables["LWS_GROUP_SIZE"] = "3";
  CHECK(pod.defaults().empty());
}

TEST_CASE("a pod of a LeaderWorkerSet meets a leader by its address, and where its manifest says where, there") {
  Pod pod = kLeaderWorkerSets;
  pod.variables["LWS_LEADER_ADDRESS"] = "fd00::7";
  CHECK(pod.defaults()[2].starts_with("--rdzv-endpoint=[fd00::7]:29400 "));
  CHECK(pod.defaults()[3].starts_with("--rdzv-id=fd00::7 "));
  pod.variables["LWS_LEADER_ADDRESS"] = "10.1.2.3";
  CHECK(pod.defaults()[3].starts_with("--rdzv-id=10.1.2.3 "));
  pod.variables.insert(kOperators.variables.begin(), kOperators.variables.end());
  CHECK(pod.defaults() == kOperators.defaults());
}

TEST_CASE(
    "the pods of all Jobs of a JobSet are one job: the rank goes on from Job to Job, and pod 0 is that of Job 0") {
  CHECK(kJobSets.defaults() ==
        std::vector<std::string>{"--rdzv-backend=c10d (Kubernetes: HOSTNAME=train-workers-1-1)",
                                 "--rdzv-endpoint=train-workers-0-0.train.default.svc.cluster.local:29400 (Kubernetes: "
                                 "HOSTNAME=train-workers-1-1)",
                                 "--rdzv-id=train-workers (Kubernetes: HOSTNAME=train-workers-1-1)",
                                 "--node-rank=3 (Kubernetes: JOBSET_JOB_INDEX=1)"});
  Pod pod = kJobSets;
  pod.variables["PET_NNODES"] = "2:8";
  CHECK(pod.defaults().back().starts_with("--node-rank=5 "));
  pod.variables["JOBSET_JOB_COMPLETIONS"] = "2";
  CHECK(pod.defaults().back().starts_with("--node-rank=3 "));
}

TEST_CASE("a JobSet whose numbers do not fit is refused by the variable that says so") {
  const auto refused = [](const char* name, const char* value) {
    Pod pod = kJobSets;
    pod.variables[name] = value;
    const auto found = pod.read();
    REQUIRE(!found.has_value());
    return found.error().what;
  };
  CHECK(refused("JOBSET_JOB_INDEX", "2") == "JOBSET_JOB_INDEX=2");  // of two
  CHECK(refused("JOBSET_JOB_INDEX", "0") == "JOBSET_JOB_INDEX=0");  // not by its name
  CHECK(refused("JOBSET_REPLICATEDJOB_REPLICAS", "") ==
        "JOBSET_JOB_INDEX is set, but JOBSET_REPLICATEDJOB_REPLICAS is not");
  CHECK(refused("PET_NNODES", "5") == "JOBSET_REPLICATEDJOB_REPLICAS=2");
  CHECK(refused("PET_NNODES", "2") == "JOB_COMPLETION_INDEX=1");
  CHECK(refused("JOBSET_JOB_COMPLETIONS", "x") == "JOBSET_JOB_COMPLETIONS=x");
}

TEST_CASE(
    "a pod that its name shows in a JobSet's second Job is refused unless its place is mapped, or its job has an id") {
  Pod pod = kJobSets;
  pod.variables.erase("JOBSET_JOB_INDEX");
  const auto found = pod.read();
  REQUIRE(!found.has_value());
  CHECK(found.error().reason.contains("Job 1 of the JobSet train"));
  CHECK(found.error().remedy.contains("JOBSET_JOB_INDEX"));
  CHECK(pod.read({"--rdzv-id=mine"}).has_value());
  CHECK(pod.read({"--nnodes=1"}).has_value());
  // The last two are named by a CronJob and by a date.
  for (const char* job :
       {"train-workers-0", "other-workers-1", "train-1", "train-workers", "train-at-29384710", "train-2024-01-07"}) {
    const std::string name = std::string(job) + "-1";
    pod.variables["HOSTNAME"] = name;
    pod.hosts = format("10.1.2.3\t{}.train.default.svc.cluster.local\t{}\n", name, name);
    CHECK(pod.read().has_value());
  }
}

TEST_CASE("RANK, WORLD_SIZE and MASTER_ADDR of a pod, as Kubeflow's operator sets them, are those of nodes") {
  CHECK(kOperators.defaults() ==
        std::vector<std::string>{"--nnodes=2 (Kubernetes: WORLD_SIZE=2)",
                                 "--rdzv-backend=c10d (Kubernetes: MASTER_ADDR=train-master-0)",
                                 "--rdzv-endpoint=train-master-0:23456 (Kubernetes: MASTER_ADDR=train-master-0)",
                                 "--node-rank=1 (Kubernetes: RANK=1)"});
  Pod pod = kOperators;
  pod.variables["MASTER_ADDR"] = "fd00::1";
  CHECK(pod.defaults()[2].starts_with("--rdzv-endpoint=[fd00::1]:23456 "));
}

TEST_CASE("the same variables of a worker, outside of a pod, or beside PET_NNODES say nothing of nodes") {
  for (const char* name : {"KUBERNETES_SERVICE_HOST", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Pod pod = kOperators;
    pod.variables.erase(name);
    CHECK(pod.defaults().empty());
  }
  for (const char* name : {"LOCAL_RANK", "PET_NNODES", "DLROVER_MASTER_ADDR"}) {
    Pod pod = kOperators;
    pod.variables[name] = "1";
    CHECK(pod.defaults().empty());
  }
}

TEST_CASE("what a pod's variables cannot mean is refused by name") {
  const std::map<std::string, std::string> bad = {{"RANK", "2"}, {"WORLD_SIZE", "0"}, {"MASTER_PORT", "70000"}};
  for (const auto& [name, value] : bad) {
    Pod pod = kOperators;
    pod.variables[name] = value;
    const auto found = pod.read();
    REQUIRE(!found.has_value());
    CHECK(found.error().what == name + "=" + value);
  }
}
