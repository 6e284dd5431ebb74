#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/detect/detect.h"
#include "cli/flag_checks.h"
#include "cli/parse.h"
#include "cli/run/launch_settings.h"
#include "cli/run/worker_environment.h"
#include "src/base/environment.h"
#include "src/base/result.h"
#include "src/numa/binding.h"

namespace elastic::cli {

// What a plan needs to know about this host: the one seam between planning and the outside.
class HostView {
 public:
  struct PathFacts {
    bool exists = false;
    bool directory = false;
    bool readable = false;
    bool executable = false;
    bool writable = false;
  };

  virtual ~HostView() = default;
  virtual PathFacts look_at(const std::string& path) const = 0;
  // The file or directory to which the path leads once all links are followed; "" where there is none.
  virtual std::string resolved(const std::string& path) const = 0;
  // The absolute paths of this program: the one by which it was started, each one that its links lead to in turn, and
  // the resolved one.
  virtual std::vector<std::string> own_paths() const = 0;
  // CPUs that this process may run on, at least 1.
  virtual int usable_cpus() const = 0;
  // NVIDIA GPUs that CUDA would show with this CUDA_VISIBLE_DEVICES (nothing: not set).
  virtual int visible_gpus(const std::optional<std::string>& cuda_visible_devices) const = 0;
  // Devices of other makers that PyTorch would have with these variables, and whether the host has any at all.
  struct OtherDevices {
    bool has_amd = false;
    int amd = 0;
    bool is_amd_integrated = false;  // all of AMD's are in processors
    bool has_intel = false;
    int intel = 0;             // discrete ones
    int intel_integrated = 0;  // in the processor
    bool has_ascend = false;   // NPUs of Huawei's
  };
  virtual OtherDevices other_devices(const Environment& environment) const = 0;
  // What the binding of such workers needs of CPUs, NUMA nodes and the GPUs that CUDA would show with this
  // CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER (nothing: not set).
  virtual numa::Topology numa_topology(numa::Mode mode, const std::optional<std::string>& cuda_visible_devices,
                                       const std::optional<std::string>& cuda_device_order) const = 0;
  // A file's bytes; fails with the system's reason, or where it has more than `most`.
  virtual Result<std::string> read_file(const std::string& path, std::size_t most) const = 0;
  // "6f1e...-...": a random UUID of version 4.
  virtual std::string random_uuid() const = 0;
};

// One line of the plan, for --dry-run.
struct PlanEntry {
  std::string name;    // "workers on this node"
  std::string value;   // "4"
  std::string origin;  // "command line: --nproc-per-node=4", "default", "environment: PET_NNODES"
};

// Everything that a launch will do, and where each part of it came from.
struct LaunchPlan {
  run::LaunchSettings settings;
  std::vector<PlanEntry> entries;
  std::vector<std::string> warnings;  // to be printed before the launch, one a line

  void entry(std::string name, std::string value, std::string origin) {
    entries.push_back({std::move(name), std::move(value), std::move(origin)});
  }
  void warn(std::string text) { warnings.push_back(std::move(text)); }
};

// Settles every value from flags, environment and host. Starts nothing, changes nothing. Fails on
// anything that would make the launch fail, with the input, the reason and the remedy. `detected`: what
// detect::detect() has found for these flags.
Result<LaunchPlan> make_launch_plan(const ParsedFlags& flags, const Environment& environment, const HostView& host,
                                    const detect::Detected& detected = {});

}  // namespace elastic::cli
