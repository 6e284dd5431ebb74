#include "src/runtime/probe_process.h"

#include <doctest/doctest.h>

using namespace elastic::runtime;

TEST_CASE("a probe reads its task as it was written, and nothing else") {
  for (const ProbeTask& task :
       {ProbeTask{}, ProbeTask{.local_world_size = 8, .log_directory = "/logs", .hook = "a 'b' c", .external = "python x.py",
                               .interfaces = {"eth0", "eth1"}, .gpus = 8, .nccl_lib = "/l/libnccl.so.2", .gpu_program = "/p",
                               .python = "/usr/bin/python3", .temporary = "/tmp"}}) {
    const auto read = read_probe_arguments(probe_arguments(task));
    REQUIRE(read);
    CHECK(read->local_world_size == task.local_world_size);
    CHECK(read->log_directory == task.log_directory);
    CHECK(read->hook == task.hook);
    CHECK(read->external == task.external);
    CHECK(read->interfaces == task.interfaces);
    CHECK(read->gpus == task.gpus);
    CHECK(read->nccl_lib == task.nccl_lib);
    CHECK(read->gpu_program == task.gpu_program);
    CHECK(read->python == task.python);
    CHECK(read->temporary == task.temporary);
  }
  CHECK(!read_probe_arguments({}));
  CHECK(!read_probe_arguments({kProbeArgument, "8", "/logs"}));
}

TEST_CASE("how long a test and a hook may take follows from what they are and from NETWORK_CHECK_TIMEOUT") {
  const ProbeTask own;
  const ProbeTask external{.hook = "check", .external = "probe"};
  CHECK(probe_settings({}, own).test_ms == 30'000);
  CHECK(probe_settings({}, external).test_ms == 180'000);
  CHECK(probe_settings({}, external).busy_ms == 180'000);
  CHECK(hook_limit_ms({}, own) == 0);
  CHECK(hook_limit_ms({}, external) == 30'000);
  for (const ProbeTask& task : {own, external}) CHECK(probe_settings({"NETWORK_CHECK_TIMEOUT=7"}, task).test_ms == 7'000);
  CHECK(hook_limit_ms({"NETWORK_CHECK_TIMEOUT=7"}, external) == 7'000);
  CHECK(hook_limit_ms({"NETWORK_CHECK_TIMEOUT=0"}, external) == 30'000);
  CHECK(probe_settings({}, external).external.directory == "/tmp/dlrover/network_check");
  CHECK(probe_settings({"ELASTIC_RUN_PROBE_DIR=/d"}, external).external.directory == "/d");
}

TEST_CASE("GPUs are tested where that is asked for: so many, or those that workers see; never beside an external probe") {
  const ProbeTask task{.gpus = 4};
  CHECK(probe_settings({}, task).gpu.gpus == 0);
  CHECK(probe_settings({"ELASTIC_RUN_PROBE_GPUS=auto"}, task).gpu.gpus == 4);
  CHECK(probe_settings({"ELASTIC_RUN_PROBE_GPUS=2"}, task).gpu.gpus == 2);
  CHECK(probe_settings({"ELASTIC_RUN_PROBE_GPUS=1000000"}, task).gpu.gpus == 64);
  CHECK(probe_settings({"ELASTIC_RUN_PROBE_GPUS=x"}, task).gpu.gpus == 0);
  CHECK(probe_settings({"ELASTIC_RUN_PROBE_GPUS=2"}, {.external = "probe"}).gpu.gpus == 0);
  CHECK(probe_settings({"NETWORK_CHECK_TIMEOUT=7", "ELASTIC_RUN_PROBE_GPUS=2"}, task).gpu.gather_ms == 7'000);
}
