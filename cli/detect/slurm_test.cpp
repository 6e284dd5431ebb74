#include "cli/detect/systems.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace elastic;
using namespace elastic::cli;
using namespace elastic::cli::detect;

namespace {

using Variables = std::map<std::string, std::string>;

// A task of a step of three nodes, as srun starts it.
Variables step(const Variables& changed = {}) {
  Variables all = {{"SLURM_JOB_ID", "1234"},      {"SLURM_STEP_ID", "2"},
                   {"SLURM_NNODES", "8"},         {"SLURM_NODELIST", "wrong[1-8]"},
                   {"SLURM_STEP_NUM_NODES", "3"}, {"SLURM_STEP_NODELIST", "gpu[04-05,11]"},
                   {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
                   {"SLURM_NODEID", "1"},         {"SLURM_LOCALID", "0"},
                   {"SLURM_PROCID", "1"}};
  for (const auto& [name, value] : changed) {
    all[name] = value;
    if (value == "unset") all.erase(name);
  }
  return all;
}

Result<Detected> look(const Variables& variables) {
  return detect_slurm([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

// "value (source)" of a flag, "none" where nothing is said.
std::string said_of(FlagId flag, const Variables& variables) {
  const auto found = look(variables);
  if (!found) return found.error().text();
  for (const Default& one : found->defaults) {
    if (one.flag == flag) return one.value + " (" + one.source + ")";
  }
  return "none";
}

std::string error_of(const Variables& variables) {
  const auto found = look(variables);
  return found ? "none" : found.error().text();
}

}  // namespace

TEST_CASE("a step of Slurm says nodes, rank, endpoint and id; the job's own numbers do not count") {
  CHECK(said_of(FlagId::kNnodes, step()) == "3 (Slurm: SLURM_STEP_NUM_NODES=3)");
  CHECK(said_of(FlagId::kNodeRank, step()) == "1 (Slurm: SLURM_NODEID=1)");
  CHECK(said_of(FlagId::kRdzvBackend, step()) == "c10d (Slurm: of a step of many nodes)");
  CHECK(said_of(FlagId::kRdzvEndpoint, step()) ==
        "gpu04:24700 (Slurm: first host of SLURM_STEP_NODELIST=gpu[04-05,11]; port of step 1234.2)");
  CHECK(said_of(FlagId::kRdzvId, step()) == "slurm-1234.2 (Slurm: SLURM_JOB_ID=1234 SLURM_STEP_ID=2)");
  CHECK(said_of(FlagId::kNprocPerNode, step()) == "none");
  const auto found = look(step());
  REQUIRE(found);
  CHECK(found->system == "Slurm");
  CHECK(found->is_host == false);
  CHECK(found->ports == std::vector<std::uint16_t>{24700, 26748, 20604, 22652});
  CHECK(found->signals_the_node);
  CHECK(found->notes.empty());
  CHECK(look(step({{"SLURM_NODEID", "0"}}))->is_host == true);
}

TEST_CASE("no task of an array, and no later life of a requeued job, has the id of another") {
  std::set<std::string> ids;
  for (const Variables& one :
       {step(), step({{"SLURM_STEP_ID", "3"}}), step({{"SLURM_JOB_ID", "1235"}}), step({{"SLURM_RESTART_COUNT", "1"}}),
        step({{"SLURM_RESTART_COUNT", "2"}}), step({{"SLURM_ARRAY_JOB_ID", "1233"}, {"SLURM_ARRAY_TASK_ID", "5"}})}) {
    ids.insert(said_of(FlagId::kRdzvId, one));
  }
  CHECK(ids.size() == 6);
  CHECK(said_of(FlagId::kRdzvId, step({{"SLURM_RESTART_COUNT", "0"}})).starts_with("slurm-1234.2 ("));
  CHECK(said_of(FlagId::kRdzvId,
                step({{"SLURM_ARRAY_JOB_ID", "1233"}, {"SLURM_ARRAY_TASK_ID", "5"}, {"SLURM_RESTART_COUNT", "2"}})) ==
        "slurm-1234.2-1233_5-restart2 (Slurm: SLURM_JOB_ID=1234 SLURM_STEP_ID=2 SLURM_ARRAY_JOB_ID=1233 "
        "SLURM_ARRAY_TASK_ID=5 SLURM_RESTART_COUNT=2)");
}

TEST_CASE("ports of steps lie in their range, each step's own apart, and those of neighbours have none in common") {
  std::set<std::uint16_t> seen;
  for (std::uint64_t job = 90'000; job < 90'020; ++job) {
    for (std::uint64_t step_id = 0; step_id < 10; ++step_id) {
      for (const std::uint16_t port : ports_of_step(job, step_id)) {
        CHECK(port >= kFirstSlurmPort);
        CHECK(port < kFirstSlurmPort + kSlurmPorts);
        CHECK(seen.insert(port).second);
      }
    }
  }
  CHECK(ports_of_step(4'000'000'000, 4'000'000'000).front() >= kFirstSlurmPort);
}

TEST_CASE("GPUs of the step on this node make workers") {
  CHECK(said_of(FlagId::kNprocPerNode, step({{"SLURM_GPUS_ON_NODE", "8"}})) == "8 (Slurm: SLURM_GPUS_ON_NODE=8)");
  CHECK(said_of(FlagId::kNprocPerNode, step({{"SLURM_STEP_GPUS", "0,1,5"}})) == "3 (Slurm: SLURM_STEP_GPUS=0,1,5)");
  CHECK(said_of(FlagId::kNprocPerNode, step({{"SLURM_GPUS_ON_NODE", "4"}, {"SLURM_STEP_GPUS", "0,1"}})) ==
        "4 (Slurm: SLURM_GPUS_ON_NODE=4)");
  CHECK(said_of(FlagId::kNprocPerNode, step({{"SLURM_GPUS_ON_NODE", "0"}})) == "none");
  CHECK(said_of(FlagId::kNprocPerNode, step({{"SLURM_GPUS_ON_NODE", "x"}}))
            .starts_with("SLURM_GPUS_ON_NODE=x: this is not a number"));
}

TEST_CASE(
    "where tasks are bound to GPUs, workers are as many as the one that launches can see, and a warning says so") {
  const Variables bound =
      step({{"SLURM_GPUS_ON_NODE", "8"}, {"SLURM_STEP_TASKS_PER_NODE", "8(x3)"}, {"CUDA_VISIBLE_DEVICES", "0"}});
  CHECK(said_of(FlagId::kNprocPerNode, bound) == "1 (Slurm: CUDA_VISIBLE_DEVICES=0)");
  REQUIRE(look(bound)->warnings.size() == 1);
  CHECK(look(bound)->warnings.front().contains("--ntasks-per-node=1 --gpus-per-node=8"));
  const Variables shared =
      step({{"SLURM_GPUS_ON_NODE", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "8(x3)"}, {"CUDA_VISIBLE_DEVICES", "0,1"}});
  CHECK(said_of(FlagId::kNprocPerNode, shared).starts_with("2 "));
  CHECK(look(shared)->warnings.empty());
}

TEST_CASE("of several tasks on a node the first launches, and all name the same company") {
  const Variables first = step({{"SLURM_STEP_TASKS_PER_NODE", "1,4(x2)"}});
  const Variables third = step({{"SLURM_STEP_TASKS_PER_NODE", "1,4(x2)"}, {"SLURM_LOCALID", "2"}});
  REQUIRE(look(first));
  CHECK(look(first)->local_tasks.members == 4);
  CHECK(look(first)->local_tasks.index == 0);
  CHECK(look(third)->local_tasks.members == 4);
  CHECK(look(third)->local_tasks.index == 2);
  CHECK(look(first)->local_tasks.name == look(third)->local_tasks.name);
  CHECK(look(first)->local_tasks.name != look(step({{"SLURM_NODEID", "2"}}))->local_tasks.name);
  CHECK(look(step({{"SLURM_STEP_TASKS_PER_NODE", "1(x3)"}}))->local_tasks.members == 1);
  CHECK(error_of(step({{"SLURM_STEP_TASKS_PER_NODE", "2(x1)"}})).contains("it describes 1 nodes"));
  CHECK(error_of(step({{"SLURM_STEP_TASKS_PER_NODE", "2(x3"}})).contains("does not say how many tasks"));
}

TEST_CASE("in a batch script and in salloc's shell nothing is taken, and a line says so") {
  for (const char* id : {"unset", "4294967291", "4294967290", "4294967292"}) {
    const auto found = look(step({{"SLURM_STEP_ID", id}, {"SLURM_HET_SIZE", "2"}}));
    REQUIRE(found);
    CHECK(found->defaults.empty());
    CHECK_FALSE(found->signals_the_node);
    REQUIRE(found->notes.size() == 1);
    CHECK(
        found->notes.front().starts_with("Slurm job 1234: this is its batch script or a shell of salloc, not a step"));
  }
}

TEST_CASE("without Slurm there is nothing, and nothing is said") {
  const auto found = look({{"PATH", "/bin"}, {"SLURM_CONF", "/etc/slurm.conf"}});
  REQUIRE(found);
  CHECK(found->system.empty());
  CHECK(found->notes.empty());
}

TEST_CASE("a heterogeneous job is refused with the reason") {
  CHECK(error_of(step({{"SLURM_HET_SIZE", "2"}})) ==
        "Slurm job 1234, SLURM_HET_SIZE=2: it is a heterogeneous job, whose components do not list each other's nodes; "
        "submit a job that is not heterogeneous, or give --nnodes and --rdzv-endpoint=HOST:PORT");
}

TEST_CASE("a step that says something impossible is refused by the variable's name") {
  CHECK(
      error_of(step({{"SLURM_NODEID", "3"}})).starts_with("SLURM_NODEID=3: the last node of a step of 3 is number 2"));
  CHECK(error_of(step({{"SLURM_NODEID", "unset"}})).starts_with("SLURM_NODEID: it is not set"));
  CHECK(error_of(step({{"SLURM_STEP_NUM_NODES", "0"}}))
            .starts_with("SLURM_STEP_NUM_NODES=0: this is not a number from 1"));
  CHECK(error_of(step({{"SLURM_STEP_ID", "x"}})).starts_with("SLURM_STEP_ID=x: this is not a number"));
  CHECK(error_of(step({{"SLURM_STEP_NODELIST", "a,b"}})).starts_with("SLURM_STEP_NODELIST=a,b: it names 2 hosts"));
  CHECK(error_of(step({{"SLURM_STEP_NODELIST", ""}})).starts_with("SLURM_STEP_NODELIST: it is not set"));
  CHECK(error_of(step({{"SLURM_STEP_NODELIST", "a["}})).contains("not a list of hosts"));
}
