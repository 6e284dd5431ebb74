#pragma once

#include "cli/launch_plan.h"

namespace elastic::cli {

// The real host.
class ThisHost : public HostView {
 public:
  PathFacts look_at(const std::string& path) const override;
  std::string resolved(const std::string& path) const override;
  std::vector<std::string> own_paths() const override;
  int usable_cpus() const override;
  int visible_gpus(const std::optional<std::string>& cuda_visible_devices) const override;
  OtherDevices other_devices(const Environment& environment) const override;
  numa::Topology numa_topology(numa::Mode mode, const std::optional<std::string>& cuda_visible_devices,
                               const std::optional<std::string>& cuda_device_order) const override;
  Result<std::string> read_file(const std::string& path, std::size_t most) const override;
  std::string random_uuid() const override;
};

}  // namespace elastic::cli
