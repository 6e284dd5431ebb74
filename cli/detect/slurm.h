#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cli/detect/detect.h"

namespace elastic::cli::detect {

// The id of a job that is a Slurm step begins with this.
inline constexpr std::string_view kSlurmRunId = "slurm-";

// Where coordinators of Slurm's steps listen: below the ports that kernels give to connections (from 32768 on), above
// those that Slurm has for itself, and beside torchrun's 29400 and 29500.
inline constexpr std::uint16_t kFirstSlurmPort = 20000;
inline constexpr std::uint16_t kSlurmPorts = 8192;
// A step has this many ports of its own. Its nodes try them in order when they look for their coordinator.
inline constexpr std::size_t kPortsPerStep = 4;

// The ports of a step, in the order in which they are tried. Steps that follow each other have none in common.
std::array<std::uint16_t, kPortsPerStep> ports_of_step(std::uint64_t job, std::uint64_t step);

// In a step that srun has started, finds the number of nodes, the node rank, the endpoint, the backend and the id of
// the job, and the number of workers from the GPUs. All of it is read from the step's variables, not from those of the
// Slurm job. In a batch script or salloc's shell it finds nothing but a note, elsewhere nothing. Fails on a
// heterogeneous job, and where the step's variables cannot be understood.
Result<Detected> detect_slurm(const EnvironmentLookup& environment);

}  // namespace elastic::cli::detect
