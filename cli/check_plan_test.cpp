// What the launch plan says of the check before training, and of the scheduler's word on this node.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/launch_plan.h"
#include "cli/launch_plan_test_support.h"

using namespace elastic;
using namespace elastic::cli;

TEST_CASE("--check-only needs no script and starts none, and is a check") {
  Trial trial;
  const LaunchPlan plan = trial.good({"--check-only"});
  CHECK(plan.settings.node.check.only);
  CHECK(plan.settings.node.check.when != health::CheckRules::When::kNever);
  CHECK(plan.settings.title == "--check-only");
  CHECK(plan.settings.program.empty());
  CHECK(trial.good({"--check-only", "nowhere.py"}).settings.program.empty());
  CHECK(!trial.good({"--network-check", "train.py"}).settings.node.check.only);
}

TEST_CASE("--check-policy says when nodes are checked again") {
  using When = health::CheckRules::When;
  Trial t;
  CHECK(t.good({"--network-check", "train.py"}).settings.node.check.when == When::kSuspect);
  CHECK(t.good({"--network-check", "--check-policy=suspect", "train.py"}).settings.node.check.when == When::kSuspect);
  CHECK(t.good({"--network-check", "--check-policy=first", "train.py"}).settings.node.check.when == When::kFirst);
  CHECK(t.good({"--network-check", "--check-policy=always", "train.py"}).settings.node.check.when == When::kAlways);
}

TEST_CASE("the rack of a node is --node-group, else DLRover's variable") {
  Trial trial;
  CHECK(trial.good({"--network-check", "train.py"}).settings.node.group.empty());
  trial.environment.push_back("scheduling/rack-id=r7");
  CHECK(trial.good({"--network-check", "train.py"}).settings.node.group == "r7");
  CHECK(trial.good({"--network-check", "--node-group=r8", "train.py"}).settings.node.group == "r8");
}

TEST_CASE("of an accelerator that is not NVIDIA's one line says that the check does not test it") {
  Trial trial;
  CHECK(trial.good({"--network-check", "--accelerator=nvidia.com/gpu", "train.py"}).warnings.empty());
  for (const char* name : {"ascend-npu", "mthreads.com/gpu", "metax-tech.com/gpu"}) {
    CHECK(trial.good({std::string("--accelerator=") + name, "train.py"}).warnings.empty());
    const auto warnings = trial.good({"--network-check", std::string("--accelerator=") + name, "train.py"}).warnings;
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0] == std::string("--accelerator=") + name +
                             ": such devices are not tested; --network-check looks at the host and its network");
  }
}

TEST_CASE("a library or a program that the check is to use has to be there") {
  Trial trial;
  trial.host.file("lib.so");
  trial.host.program("probe");
  const LaunchPlan plan = trial.good({"--network-check", "--nccl-lib=lib.so", "--probe-path=probe", "train.py"});
  CHECK(plan.settings.check.nccl_lib == "lib.so");
  CHECK(plan.settings.check.gpu_program == "probe");
  CHECK(trial.error({"--network-check", "--nccl-lib=nowhere.so", "train.py"})
            .contains("--nccl-lib=nowhere.so: no such file"));
  CHECK(trial.error({"--network-check", "--probe-path=lib.so", "train.py"})
            .contains("--probe-path=lib.so: it is not executable"));
  CHECK(trial.error({"--network-check", "--probe-path=/tmp", "train.py"}).contains("it is a directory"));
}

TEST_CASE("the check tests the GPUs that workers see, unless they are of another kind") {
  Trial trial;
  trial.host.gpus = 4;
  CHECK(trial.good({"--network-check", "train.py"}).settings.check.gpus == 1);  // the others are nobody's affair here
  CHECK(trial.good({"--network-check", "--nproc-per-node=3", "train.py"}).settings.check.gpus == 3);
  CHECK(trial.good({"--network-check", "--nproc-per-node=8", "train.py"}).settings.check.gpus == 4);
  CHECK(trial.good({"--network-check", "--accelerator=nvidia.com/gpu", "--nproc-per-node=4", "train.py"})
            .settings.check.gpus == 4);
  CHECK(trial.good({"--network-check", "--accelerator=ascend-npu", "train.py"}).settings.check.gpus == 0);
  CHECK(trial.good({"--network-check", "--accelerator=cpu", "train.py"}).settings.check.gpus == 0);
  CHECK(trial.good({"--network-check", "--accelerator=cpu", "train.py"}).warnings.empty());
  CHECK(trial.good({"--network-check", "--check-probe=probe", "train.py"}).settings.check.gpus == 0);
  CHECK(trial.good({"train.py"}).settings.check.gpus == 0);
  trial.host.gpus = 100;
  CHECK(trial.good({"--network-check", "--nproc-per-node=gpu", "train.py"}).settings.check.gpus == 64);
}

TEST_CASE("ELASTIC_RUN_PROBE_GPUS turns the test of GPUs off, or says how many there are") {
  const auto gpus_with = [](const char* value, int visible) {
    Trial trial;
    trial.host.gpus = visible;
    trial.environment.push_back(std::string("ELASTIC_RUN_PROBE_GPUS=") + value);
    return trial.good({"--network-check", "--nproc-per-node=8", "train.py"}).settings.check.gpus;
  };
  for (const char* off : {"off", "0"}) CHECK(gpus_with(off, 4) == 0);
  CHECK(gpus_with("auto", 4) == 4);
  CHECK(gpus_with("auto", 0) == 0);
  for (const int visible : {0, 4}) CHECK(gpus_with("2", visible) == 2);
  for (const char* wrong : {"", "x", "-1", "65", "on"}) {
    Trial trial;
    trial.environment.push_back(std::string("ELASTIC_RUN_PROBE_GPUS=") + wrong);
    CHECK(trial.error({"--network-check", "train.py"}).contains("not auto, off or a number of GPUs from 0 to 64"));
    CHECK(trial.plan({"train.py"}).has_value());
  }
}

TEST_CASE("a check that only a hang asks for tests what every check does") {
  Trial trial;
  trial.host.gpus = 4;
  trial.environment.push_back("scheduling/rack-id=r7");
  const auto plan = [&](const char* hang) {
    return trial.good({hang, "--nproc-per-node=4", "--health-hook=hook", "--health-report=page.html", "train.py"})
        .settings;
  };
  CHECK(plan("--hang=restart").check == health::CheckSettings{.hook = "hook", .gpus = 4, .page = "page.html"});
  CHECK(plan("--hang=restart").node.check == health::CheckRules{});
  CHECK(plan("--hang=restart").node.group == "r7");
  CHECK(plan("--hang=report").check == health::CheckSettings{});
  CHECK(trial.good({"--hang=restart", "--check-probe=probe", "train.py"}).settings.check.external == "probe");
  CHECK(trial.error({"--hang=restart", "--nccl-lib=nowhere.so", "train.py"}).contains("no such file"));
}

TEST_CASE("of the test of GPUs nothing is said on a host without one, and else how many are tested and why") {
  const auto told = [](const Trial& trial, std::vector<std::string> arguments) {
    std::string text;
    for (const PlanEntry& entry : trial.good(std::move(arguments)).entries) {
      if (entry.name == "GPUs to test") text = entry.value + " (" + entry.origin + ")";
    }
    return text;
  };
  Trial trial;
  CHECK(told(trial, {"--network-check", "train.py"}) == "");
  CHECK(told(trial, {"--network-check", "--accelerator=cpu", "train.py"}) == "");
  trial.host.gpus = 8;
  CHECK(told(trial, {"train.py"}) == "");
  CHECK(told(trial, {"--network-check", "--nproc-per-node=8", "train.py"}) == "8 (visible GPUs)");
  CHECK(told(trial, {"--network-check", "train.py"}) == "1 (one visible GPU for each worker)");
  CHECK(told(trial, {"--network-check", "--accelerator=cpu", "train.py"}) == "none (command line: --accelerator=cpu)");
  trial.environment.push_back("ELASTIC_RUN_PROBE_GPUS=off");
  CHECK(told(trial, {"--network-check", "train.py"}) == "none (environment: ELASTIC_RUN_PROBE_GPUS)");
}

TEST_CASE("a segment file is named by the array task, else by the job, and without either ignored with a warning") {
  Trial trial;
  const std::vector<std::string> arguments = {"--segment-health-dir=/shared/health", "train.py"};
  const LaunchPlan nowhere = trial.good(arguments);
  CHECK(nowhere.settings.segment_file.empty());
  REQUIRE(nowhere.warnings.size() == 1);
  CHECK(nowhere.warnings[0].starts_with("--segment-health-dir=/shared/health: it is ignored, as neither SLURM_JOB_ID"));
  trial.environment.emplace_back("SLURM_JOB_ID=1238");
  trial.environment.emplace_back("SLURM_ARRAY_JOB_ID=1230");
  const LaunchPlan job = trial.good(arguments);
  CHECK(job.settings.segment_file == "/shared/health/segment_health_check.1238.1238");
  CHECK(job.warnings.empty());
  trial.environment.emplace_back("SLURM_ARRAY_TASK_ID=7");
  CHECK(trial.good(arguments).settings.segment_file == "/shared/health/segment_health_check.1230.7");
  CHECK(trial.good({"train.py"}).settings.segment_file.empty());
  CHECK(trial.error({"--segment-health-dir=health", "train.py"})
            .starts_with("--segment-health-dir=health: it is not an absolute path"));
}

TEST_CASE("what names a segment file is a number, and leads to no other directory") {
  Trial trial;
  trial.environment = {"PATH=/usr/bin", "SLURM_ARRAY_JOB_ID=../../x", "SLURM_ARRAY_TASK_ID=7", "SLURM_JOB_ID=-1"};
  CHECK(trial.good({"--segment-health-dir=/d", "train.py"}).settings.segment_file.empty());
}
