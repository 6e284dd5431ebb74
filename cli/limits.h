#pragma once

#include <cstddef>

// Bounds of the command line. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | hosts of a Slurm step's list, and its bytes | {kHostListHosts}, {kHostListBytes} | refused, exit status 2 |
inline constexpr std::size_t kHostListHosts = 65536;
inline constexpr std::size_t kHostListBytes = 1024 * 1024;
// | hosts in `--rdzv-endpoint` | {kEndpointHosts} | more are refused, exit status 2; of a Slurm step the first ones are
// used |
inline constexpr std::size_t kEndpointHosts = 64;
// | the file of a job's secret (`token_file`) | {kAgentSecretBytes} | refused, exit status 2 |
inline constexpr std::size_t kAgentSecretBytes = 4096;

}  // namespace elastic::limits
