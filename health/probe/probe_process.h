#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "health/probe/probe.h"
#include "src/base/environment.h"

namespace elastic::health {

// With it as its first argument this program is the probe of its node's check, over its stdout; behind it stands its
// task. Only elastic-run itself starts one.
inline constexpr const char* kProbeArgument = "--health-probe";

struct ProbeTask {
  int local_world_size = 1;
  std::string log_directory = {};            // may be empty
  std::string hook = {};                     // --health-hook; empty: none
  std::string external = {};                 // --check-probe; empty: none
  std::vector<std::string> interfaces = {};  // that the node uses, by name; none: not known
  int gpus = 0;                              // to be tested, none beside an external probe
  std::string nccl_lib = {};                 // --nccl-lib; empty: not given
  std::string gpu_program = {};              // --probe-path; empty: elastic-run's own
  std::string python = {};                   // the workers' interpreter, if they have one
  std::string temporary = {};                // a directory for files
  std::int64_t began_us = 0;                 // when the job began on this node, CLOCK_MONOTONIC_RAW
};
std::vector<std::string> probe_arguments(const ProbeTask& task);
// Nothing where they are not those of a task.
std::optional<ProbeTask> read_probe_arguments(const std::vector<std::string>& arguments);

// The variables that it looks at. DLRover's: how many seconds a test or the hook may take; a local rank: the tests of
// the node that has it are to fail, to try what follows. Ours: where an external probe leaves its results, if not where
// DLRover's do; and for tests of how many bytes GPUs gather, and a directory that stands for "/" where procfs, sysfs
// and /dev/kmsg are read.
inline constexpr const char* kProbeVariables[] = {"NETWORK_CHECK_TIMEOUT", "MOCK_ERR_RANK", "ELASTIC_RUN_PROBE_DIR",
                                                  "ELASTIC_RUN_PROBE_BYTES", "ELASTIC_RUN_PROBE_ROOT"};
health::ProbeSettings probe_settings(const Environment& environment, const ProbeTask& task);
// After which a probe that has not answered is killed: the first phase, and one of these tests or of a ring with these
// neighbours. More than all that the probe may take by its own deadlines.
std::int64_t look_limit_ms(const Environment& environment, const ProbeTask& task);
std::int64_t tests_limit_ms(const Environment& environment, const ProbeTask& task,
                            const std::vector<health::PairOrder>& tests);
std::int64_t ring_limit_ms(const Environment& environment, const ProbeTask& task, const health::RingOrder& ring);
// In which the hook must end; 0: there is none.
std::int64_t hook_limit_ms(const Environment& environment, const ProbeTask& task);

// The probe's whole life. `arguments`: the command line without the program's name. Returns the exit status.
int run_probe_process(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace elastic::health
