#pragma once

#include <cstddef>
#include <cstdint>

// Bounds of connections between nodes. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | connections of agents and guardians that a coordinator's process may have at once | {kAgentConnections} | a further
// one is closed |
inline constexpr std::size_t kAgentConnections = 32'768;
// | jobs that one coordinator's process serves at once | {kJobsServed} | the agents of a further one are turned away |
inline constexpr std::size_t kJobsServed = 1024;
// | finished jobs whose results are remembered for agents that come late | {kEndedJobs} | the oldest is forgotten |
inline constexpr std::size_t kEndedJobs = 256;
// | what a coordinator keeps for an agent that does not read | {kAgentUnreadBytes} | its connection is closed |
inline constexpr std::size_t kAgentUnreadBytes = 4 * 1024 * 1024;
// | nodes that ask a coordinator by munge at once; the time of each | {kMungeVisits}; {kMungeVisitMs} | the connection
// is closed; the node comes again |
inline constexpr std::size_t kMungeVisits = 4096;
inline constexpr std::int64_t kMungeVisitMs = 5'000;
// | munged's first answer | {kMungeSilenceMs} | elastic-run goes on as without munge |
inline constexpr std::int64_t kMungeSilenceMs = 2'000;
// | a file of discovery (`store_type=file`) | {kEntryFileBytes} | the node that would add an entry ends, and says
// so |
inline constexpr std::size_t kEntryFileBytes = 2 * 1024 * 1024;

}  // namespace elastic::limits
