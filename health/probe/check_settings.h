#pragma once

#include <string>

#include "health/messages/messages.h"
#include "src/base/fields.h"

namespace elastic::health {

// What a node's command line says about its part of the check before training.
struct CheckSettings {
  std::string hook = {};         // --health-hook, the user's own check of the host; empty: none
  std::string external = {};     // --check-probe, the user's own program for the tests of two nodes; empty: none
  int gpus = 0;                  // how many GPUs are tested; none with an external probe
  std::string nccl_lib = {};     // --nccl-lib; empty: the NCCL that the workers would load
  std::string gpu_program = {};  // --probe-path; empty: elastic-run's own probe of GPUs
  std::string page = {};         // --health-report, written by the node with the coordinator; empty: none
  bool operator==(const CheckSettings&) const = default;
  // Those that a probe needs.
  static void fields(auto& io, auto& v) {
    each(io, "hook", v.hook, "external", v.external);
    io("gpus", v.gpus, at_most(kMostGpus));
    each(io, "nccl_lib", v.nccl_lib, "gpu_program", v.gpu_program);
  }
};

}  // namespace elastic::health
