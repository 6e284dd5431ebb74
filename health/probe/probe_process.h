#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "health/probe/check_settings.h"
#include "health/probe/probe.h"
#include "src/base/environment.h"

namespace elastic::health {

// With this first argument elastic-run is the probe of its node's check and talks over its stdout; the second one is
// the task, as JSON. Only elastic-run itself starts a probe.
inline constexpr const char* kProbeArgument = "--health-probe";

struct ProbeTask {
  CheckSettings check = {};
  int local_world_size = 1;
  std::string log_directory = {};            // may be empty
  std::vector<std::string> interfaces = {};  // the names of those that the node uses; none: not known
  std::string python = {};                   // the workers' interpreter; empty: they have none
  std::string temporary = {};                // a directory for files
  std::int64_t began_us = 0;                 // when the job began on this node, CLOCK_MONOTONIC_RAW
  bool operator==(const ProbeTask&) const = default;
  static void fields(auto& io, auto& v) {
    io("check", v.check);
    io("local_world_size", v.local_world_size, {1, INT32_MAX});
    each(io, "log_directory", v.log_directory, "interfaces", v.interfaces, "python", v.python);
    each(io, "temporary", v.temporary, "began_us", v.began_us);
  }
};
std::vector<std::string> probe_arguments(const ProbeTask& task);
// Nothing where the arguments are not those of a task.
std::optional<ProbeTask> read_probe_arguments(const std::vector<std::string>& arguments);

// The environment variables that a probe reads. Two are DLRover's: how many seconds a test or the hook may take, and a
// local rank, where the tests of the nodes that have it are reported as failed, to try the consequences. Ours are the
// directory in which an external probe leaves its results (by default DLRover's), and, for our own tests, the size of
// the GPUs' blocks in an all-gather and a directory in the place of "/" for procfs, sysfs and /dev/kmsg.
inline constexpr const char* kProbeVariables[] = {"NETWORK_CHECK_TIMEOUT", "MOCK_ERR_RANK", "ELASTIC_RUN_PROBE_DIR",
                                                  "ELASTIC_RUN_PROBE_BYTES", "ELASTIC_RUN_PROBE_ROOT"};
health::ProbeSettings probe_settings(const Environment& environment, const ProbeTask& task);
// A probe that has not answered after so long is killed: in kSelfPhase, and in a phase with these tests. It is more
// than the probe's own deadlines together.
std::int64_t look_limit_ms(const Environment& environment, const ProbeTask& task);
std::int64_t tests_limit_ms(const Environment& environment, const ProbeTask& task, const CheckOrder& order);
// The hook's deadline; 0: there is no hook.
std::int64_t hook_limit_ms(const Environment& environment, const ProbeTask& task);

// Runs the probe until its end. `arguments`: the command line without the program's name. Returns the exit status.
int run_probe_process(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace elastic::health
