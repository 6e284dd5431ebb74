
#include "health/probe/probe_process.h"
#include <doctest/doctest.h>
#include <algorithm>
#include "src/base/environment.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::health;

TEST_CASE("a probe reads its task as it was written, and nothing else") {
  for (const ProbeTask& task : {ProbeTask{}, ProbeTask{.check = {.hook = "a 'b' \"c\"\n",
                                                                .external = "python x.py",
                                                                .gpus = 8,
                                                                .nccl_lib = "/l/libnccl.so.2",
                                                                .gpu_program = "/p"},
                                             .local_world_size = 8,
                                             .log_directory = "/logs/no \xff UTF-8",
                                             .interfaces = {"eth0", "eth1"},
                                             .python = "/usr/bin/python3",
                                             .temporary = "/tmp",
                                             .began_us = 123}}) {
    const std::vector<std::string> arguments = probe_arguments(task);
    REQUIRE(arguments.size() == 2);
    CHECK(arguments[1].find('\n') == std::string::npos);
    CHECK(read_probe_arguments(arguments) == task);
  }
  CHECK(!read_probe_arguments({}));
  CHECK(!read_probe_arguments({kProbeArgument}));
  for (const std::string wrong : {"", "8", "[]", "{}"}) CHECK(!read_probe_arguments({kProbeArgument, wrong}));
  const std::string whole = probe_arguments({}).back();
  CHECK(!read_probe_arguments({kProbeArgument, replace_all(whole, "\"gpus\":0", "\"gpus\":65")}));
  CHECK(!read_probe_arguments({kProbeArgument, replace_all(whole, "size\":1", "size\":0")}));
}

TEST_CASE("how long a test and a hook may take follows from what they are and from NETWORK_CHECK_TIMEOUT") {
  const ProbeTask own;
  const ProbeTask external{.check = {.hook = "check", .external = "probe"}};
  CHECK(probe_settings({}, own).test_ms == 30'000);
  CHECK(probe_settings({}, external).test_ms == 180'000);
  CHECK(probe_settings({}, external).busy_ms == 180'000);
  CHECK(hook_limit_ms({}, own) == 0);
  CHECK(hook_limit_ms({}, external) == 30'000);
  for (const ProbeTask& task : {own, external})
    CHECK(probe_settings({"NETWORK_CHECK_TIMEOUT=7"}, task).test_ms == 7'000);
  CHECK(hook_limit_ms({"NETWORK_CHECK_TIMEOUT=7"}, external) == 7'000);
  CHECK(hook_limit_ms({"NETWORK_CHECK_TIMEOUT=0"}, external) == 30'000);
  CHECK(probe_settings({}, external).external.directory == "/tmp/dlrover/network_check");
  CHECK(probe_settings({"ELASTIC_RUN_PROBE_DIR=/d"}, external).external.directory == "/d");
}

TEST_CASE("each step of the GPU test takes as long as NETWORK_CHECK_TIMEOUT says, else as long as is usual") {
  const ProbeTask task{.check = {.gpus = 4}};
  const health::GpuSettings usual = probe_settings({}, task).gpu;
  CHECK(usual.gpus == 4);
  for (const std::int64_t step_ms : {usual.open_ms, usual.facts_ms, usual.compute_ms, usual.gather_ms})
    CHECK(step_ms >= 10'000);
  for (const std::int64_t seconds : {1, 7, 300}) {
    const health::GpuSettings set = probe_settings({format("NETWORK_CHECK_TIMEOUT={}", seconds)}, task).gpu;
    for (const std::int64_t step_ms : {set.open_ms, set.first_facts_ms, set.compute_ms, set.gather_ms})
      CHECK(step_ms == seconds * 1000);
    CHECK(set.facts_ms == std::min(usual.facts_ms, seconds * 1000));
  }
}

TEST_CASE("a probe is given more time for a phase than all steps in it may take by their own deadlines") {
  const std::vector<health::PairOrder> tests = {{.with = 1, .after = 0}, {.with = 2, .after = 3}};
  for (const Environment& environment :
       {Environment{}, Environment{"NETWORK_CHECK_TIMEOUT=1"}, Environment{"NETWORK_CHECK_TIMEOUT=900"}}) {
    for (const ProbeTask& task :
         {ProbeTask{}, ProbeTask{.check = {.gpus = 8}}, ProbeTask{.check = {.hook = "look", .gpus = 64}},
          ProbeTask{.check = {.external = "x"}}}) {
      const health::ProbeSettings settings = probe_settings(environment, task);
      const health::GpuSettings& gpu = settings.gpu;
      const std::int64_t gpus_ms =
          gpu.gpus == 0 ? 0 : gpu.open_ms + gpu.first_facts_ms + gpu.facts_ms + gpu.compute_ms + gpu.gather_ms;
      CHECK(health::longest_look_ms(gpu) == gpus_ms);
      CHECK(look_limit_ms(environment, task) > gpus_ms + hook_limit_ms(environment, task));
      const std::int64_t connect_ms = 2 * settings.connect_ms + 3 * settings.busy_ms;
      const std::int64_t test_ms = settings.test_ms + (gpu.gpus == 0 ? 0 : gpu.gather_ms);
      CHECK(tests_limit_ms(environment, task, PairOrders{.tests = tests}) > connect_ms + 2 * test_ms);
      CHECK(tests_limit_ms(environment, task, RingOrder{.previous = tests[0], .next = tests[1]}) >
            connect_ms + settings.test_ms);
    }
  }
}

TEST_CASE("for a test another directory stands for that in which the facts of the host are found") {
  const health::GpuSettings settings =
      probe_settings({"ELASTIC_RUN_PROBE_ROOT=/r"}, ProbeTask{.check = {.gpus = 1}, .began_us = 5}).gpu;
  CHECK(settings.root == "/r");
  CHECK(settings.began_us == 5);
}
