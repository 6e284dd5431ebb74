#pragma once

#include <cstddef>
#include <cstdint>

// Bounds that several folders share; each folder has its own in its limits.h. docs/limits.md is made of the rows above
// them: what, the bound, what happens at it (scripts/limits_page.py).
namespace elastic::limits {

// | workers on one node (`--nproc-per-node`) | {kMaxWorkersPerNode} | refused as a mistake, exit status 2 |
inline constexpr std::int64_t kMaxWorkersPerNode = 4096;
// | nodes of one job, those that stand by included | {kNodesPerJob} | refused |
inline constexpr std::size_t kNodesPerJob = 16'384;
// | restarts (`--max-restarts`) | {kMaxRestarts} | refused, exit status 2 |
inline constexpr std::int64_t kMaxRestarts = 1'000'000'000;
// | a timeout on the command line | 10 years ({kMaxTimeoutSeconds}) | refused, exit status 2 |
inline constexpr std::int64_t kMaxTimeoutSeconds = 3650LL * 24 * 3600;
// | a job's name, a role, an address, a host, the reason of a refused session, in a message | {kAgentNameBytes} | the
// sender cuts it (a job's name must not be longer); longer in a message, it is an error that ends the session |
inline constexpr std::size_t kAgentNameBytes = 1024;
// | a frame of the agent protocol, behind its length, until its sender has proven the job's secret to the coordinator |
// {kAgentHelloBytes} | that session is ended, with the reason |
inline constexpr std::size_t kAgentHelloBytes = 4096;
// | nodes that may host the coordinator next | {kNextLeaders} | no others are told ([failover.md](failover.md)) |
inline constexpr std::size_t kNextLeaders = 8;
// | the end of a worker's stderr that is kept for the report | {kStderrTailBytes} | older lines are forgotten and
// counted |
inline constexpr std::size_t kStderrTailBytes = 64 * 1024;
// | `--progress-sections` | {kNvrxSections} names of {kNvrxSectionBytes} | it is refused, exit status 2 |
inline constexpr std::size_t kNvrxSections = 64;
inline constexpr std::size_t kNvrxSectionBytes = 64;

}  // namespace elastic::limits
