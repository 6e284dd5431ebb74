#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cli/detect/detect.h"

namespace elastic::cli::detect {

// What the ids of steps' jobs begin with.
inline constexpr std::string_view kSlurmRunId = "slurm-";

// Where coordinators of Slurm's steps listen: below the ports that kernels give to connections (from 32768 on), above
// those that Slurm has for itself, and beside torchrun's 29400 and 29500.
inline constexpr std::uint16_t kFirstSlurmPort = 20000;
inline constexpr std::uint16_t kSlurmPorts = 8192;
// At so many ports of its own a step's nodes look for their coordinator, one after the other, where others are taken.
inline constexpr std::size_t kPortsPerStep = 4;

// The ports of a step, in the order in which they are tried. Steps that follow each other have none in common.
std::array<std::uint16_t, kPortsPerStep> ports_of_step(std::uint64_t job, std::uint64_t step);

// In a step that srun has started: number of nodes, node rank, endpoint, backend and id of the job, and the number of
// workers from the GPUs, all of the step and none of the job. In a batch script, or in salloc's shell: nothing but a
// note. Elsewhere: nothing. Fails on a heterogeneous job, and where what the step says cannot be understood.
Result<Detected> detect_slurm(const EnvironmentLookup& environment);

}  // namespace elastic::cli::detect
