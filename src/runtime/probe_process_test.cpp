#include "src/runtime/probe_process.h"

#include <doctest/doctest.h>

using namespace elastic::runtime;

TEST_CASE("a probe reads its task as it was written, and nothing else") {
  for (const ProbeTask& task :
       {ProbeTask{}, ProbeTask{.local_world_size = 8, .log_directory = "/logs", .hook = "a 'b' c", .external = "python x.py",
                               .interfaces = {"eth0", "eth1"}}}) {
    const auto read = read_probe_arguments(probe_arguments(task));
    REQUIRE(read);
    CHECK(read->local_world_size == task.local_world_size);
    CHECK(read->log_directory == task.log_directory);
    CHECK(read->hook == task.hook);
    CHECK(read->external == task.external);
    CHECK(read->interfaces == task.interfaces);
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
