#pragma once

#include "cli/launch_plan.h"

namespace elastic::cli {

// This host, as it is.
class ThisHost : public HostView {
 public:
  PathFacts look_at(const std::string& path) const override;
  int usable_cpus() const override;
  int visible_gpus(const std::optional<std::string>& cuda_visible_devices) const override;
  std::string random_uuid() const override;
};

}  // namespace elastic::cli
