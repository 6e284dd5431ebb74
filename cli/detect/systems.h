#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/detect/detect.h"
#include "src/base/result.h"

// The systems that detect() knows, and what is read of each.
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

// The hosts of a list as Slurm compresses it, in its order: "a[1-3,5],b[01-03]-x[1,2],c" stands for a1 a2 a3 a5
// b01-x1 b01-x2 b02-x1 ... c. A number has at least as many digits as its range begins with. A host that stands there
// twice is there twice. Fails on what is no such list, and above limits::kHostListHosts hosts or
// limits::kHostListBytes; `input` names the list in the error.
Result<std::vector<std::string>> expand_host_list(std::string_view text, std::string_view input);

// In a pod of a LeaderWorkerSet, finds the number of nodes, the node rank, the job's id and the endpoint. In a pod of
// an Indexed Job, finds the node rank, the job's id, and pod 0 as the endpoint, by the pod's full name in /etc/hosts;
// in one of a JobSet, whose labels are mapped to variables, among the pods of all its Jobs. In a pod to which an
// operator has given RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, finds the number of nodes, the node rank and the
// endpoint by these. Elsewhere it finds nothing. `flags` say whether the job is to have several nodes. If so, it fails
// where the pods have no names by which to meet, or a variable is not what it should be.
Result<Detected> detect_kubernetes(const ParsedFlags& flags, const EnvironmentLookup& environment,
                                   const FileLookup& file);

}  // namespace elastic::cli::detect
