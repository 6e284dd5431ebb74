#pragma once

#include <cstddef>

// Bounds of the agent protocol (docs/agent-protocol.md). docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | a frame of the agent protocol, behind its length | {kAgentFrameBytes} | that session is ended, with the reason |
inline constexpr std::size_t kAgentFrameBytes = 256 * 1024;
// | a reason, what was left behind; an order or result of the check | {kAgentTextBytes}; {kAgentCheckBytes} | the
// sender cuts it; longer in a message, it is an error that ends the session |
inline constexpr std::size_t kAgentTextBytes = 16 * 1024;
inline constexpr std::size_t kAgentCheckBytes = 128 * 1024;
// | the addresses of a node; of all nodes of a round | {kAgentAddressesBytes}; {kAgentAdmittedBytes} | the workers'
// store admits everybody |
inline constexpr std::size_t kAgentAddressesBytes = 4 * 1024;
inline constexpr std::size_t kAgentAdmittedBytes = 128 * 1024;
// | what one node tells all others about the worker that failed first | {kAgentDetailsBytes} | the sender cuts it;
// longer in a message, it is an error that ends the session. A coordinator remembers it with the result of 256
// finished jobs: 16 MiB at most |
inline constexpr std::size_t kAgentDetailsBytes = 64 * 1024;
// | failures in one list of a message | {kAgentFailures} | the first ones are sent, the cause first; more in a message
// are an error that ends the session |
inline constexpr std::size_t kAgentFailures = 64;
// | keep-alives of an agent without an answer | {kAgentUnansweredKeepAlives} | the oldest is forgotten; its answer
// renews nothing |
inline constexpr std::size_t kAgentUnansweredKeepAlives = 64;
// | ranges of HCCL's ports that a node tells to be in use | {kPortRanges} | what is above them counts as in use, too |
inline constexpr std::size_t kPortRanges = 128;
// | rounds that may be the last one that ran, in one message | {kLastRounds} | with so many nobody is elected |
inline constexpr std::size_t kLastRounds = 8;
// | the addresses in a leader's gossip, which goes with a HELLO | {kGossipedBytes} | those behind it are left out |
inline constexpr std::size_t kGossipedBytes = 1024;
// | what a coordinator transfers to the next leader | {kTransferredBytes} | the hosts that are quarantined the longest,
// and then those that were lost last, are transferred; the next leader does not know the others |
inline constexpr std::size_t kTransferredBytes = 64 * 1024;
// | facts about a hang, of one node, on their way to the coordinator | {kHangEvidenceBytes} | what is known of
// collectives is left out first, then RAS, outer frames, stacks, and all ranks but the first 256; the sources say so |
inline constexpr std::size_t kHangEvidenceBytes = 192 * 1024;
// | a report of a hang, as each node gets it | {kHangReportBytes} | groups of ranks are left out, and counted |
inline constexpr std::size_t kHangReportBytes = 64 * 1024;
// | what a node and the coordinator send each other about munge, behind its length | {kMungeWordBytes} each | the
// connection is closed; the node comes again |
inline constexpr std::size_t kMungeWordBytes = 4096;

}  // namespace elastic::limits
