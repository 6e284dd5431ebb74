#include <doctest/doctest.h>

#include "cli/launch_plan_test_support.h"

using namespace elastic;
using namespace elastic::cli;

TEST_CASE("hangs end in another round where a flag says so, and a number of them means nothing elsewhere") {
  const Trial t;
  const auto plan = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=host0"});
    flags.push_back("train.py");
    return t.good(flags);
  };
  CHECK(plan({"--hang=restart"}).settings.node.rules.hang_restarts == 3);
  CHECK(plan({"--hang=restart", "--rdzv-conf=hang_restarts=0"}).settings.node.rules.hang_restarts == 0);
  const LaunchPlan report = plan({"--rdzv-conf=hang_restarts=5"});
  CHECK(!report.settings.node.rules.hang_restarts);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("hang_restarts is ignored without --hang=restart") != std::string::npos);
}

TEST_CASE("file timers are served where torchelastic's variable is 1, at the user's path if there is one") {
  Trial t;
  CHECK_FALSE(t.good({"train.py"}).settings.file_timers.are_served);
  t.environment.emplace_back("TORCHELASTIC_ENABLE_FILE_TIMER=true");
  CHECK_FALSE(t.good({"train.py"}).settings.file_timers.are_served);
  t.environment.pop_back();
  t.environment.emplace_back("TORCHELASTIC_ENABLE_FILE_TIMER=1");
  CHECK(t.good({"train.py"}).settings.file_timers.are_served);
  CHECK(t.good({"train.py"}).settings.file_timers.path.empty());
  CHECK(t.good({"train.py"}).warnings.empty());
  t.environment.emplace_back("TORCHELASTIC_TIMER_FILE=/tmp/fifo");
  CHECK(t.good({"train.py"}).settings.file_timers.path == "/tmp/fifo");
  CHECK(!elastic::lookup(t.good({"train.py"}).settings.worker.environment, "TORCHELASTIC_TIMER_FILE"));
}

TEST_CASE("NVRx's client is served where the flag asks for it and no variable of the user stands in the way") {
  Trial t;
  CHECK(!t.good({"train.py"}).settings.progress.serves_nvrx);
  const LaunchPlan plan = t.good({"--progress-from=nvrx", "train.py"});
  CHECK(plan.settings.progress.serves_nvrx);
  CHECK(plan.settings.progress.nvrx_sections == std::vector<std::string>{"setup", "step", "checkpointing"});
  CHECK(t.good({"--progress-from=nvrx", "--progress-sections=a,b", "train.py"}).settings.progress.nvrx_sections ==
        std::vector<std::string>{"a", "b"});
  CHECK(t.good({"--progress-sections=a", "train.py"}).warnings.size() == 1);
  const std::string limits = "--progress-sections=setup:10m,step:30,checkpointing";
  const LaunchPlan limited = t.good({"--progress-from=nvrx", limits, "train.py"});
  CHECK(limited.settings.node.rules.hang_sections == hang::SectionLimits{{"setup", 600'000}, {"step", 30'000}});
  CHECK(limited.settings.progress.nvrx_sections == plan.settings.progress.nvrx_sections);
  const LaunchPlan off = t.good({"--progress-from=nvrx", limits, "--hang=off", "train.py"});
  CHECK(off.settings.node.rules.hang_sections.empty());
  REQUIRE(off.warnings.size() == 1);
  CHECK(off.warnings[0] == limits + ": limits are ignored with --hang=off");
  t.environment.emplace_back("FT_LAUNCHER_IPC_SOCKET=/of/the/user");
  CHECK(!t.good({"--progress-from=nvrx", "train.py"}).settings.progress.serves_nvrx);
}

TEST_CASE("the loader is tuned where the flag asks for it, and no file of the user stands in the way") {
  Trial t;
  CHECK(!t.good({"train.py"}).settings.tuning.gives_file);
  const LaunchPlan plan = t.good({"--auto-tunning", "train.py"});
  CHECK(plan.settings.tuning.gives_file);
  CHECK(plan.settings.progress.reads_metrics_file);
  CHECK(plan.warnings.empty());
  const LaunchPlan many =
      t.good({"--auto-tunning", "--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=host0", "train.py"});
  CHECK(many.settings.tuning.gives_file);
  CHECK(many.warnings.empty());
  t.environment.emplace_back("RUNTIME_METRICS_PATH=/of/the/user");
  CHECK(!t.good({"--auto-tunning", "train.py"}).settings.progress.reads_metrics_file);
  t.environment.emplace_back("DLROVER_PARAL_CONFIG_PATH=/of/the/user");
  CHECK(!t.good({"--auto-tunning", "train.py"}).settings.tuning.gives_file);
}
