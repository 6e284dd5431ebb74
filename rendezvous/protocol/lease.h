#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace elastic::protocol {

// The times that follow from the loss timeout, in milliseconds: how long a node and the coordinator may not hear of
// each other. Agents enforce their lease by their own clocks, and the coordinator waits by its own. It waits a little
// longer than the lease, so that the workers of two rounds never run at once.
struct LeaseTimes {
  std::int64_t loss_timeout_ms = 5000;

  // How often an agent sends a keep-alive, which renews its lease.
  std::int64_t renewal_ms() const { return loss_timeout_ms / 5; }
  // How long an agent lets its workers run, counted from when it sent the last keep-alive that was answered.
  std::int64_t lease_ms() const { return loss_timeout_ms * 3 / 5; }
  // When the lease of a node is over in any case, counted from its last message: clocks may differ by 1 %.
  std::int64_t ends_ms() const { return lease_ms() + lease_ms() / 100; }
  // When the workers of a lost node are gone: its guardian needs a moment to kill them. If the coordinator's machine
  // was suspended when the lease ended, guardians on it are not resumed earlier than the coordinator is; so the moment
  // counts from when the coordinator has noticed the end.
  std::int64_t over_ms() const { return ends_ms() + kKillMs; }
  // When all nodes have found a coordinator that takes a job over, counted from its start: every lease that another
  // coordinator gave is over by then, and each agent has made another attempt to connect.
  std::int64_t all_back_ms() const { return std::max(over_ms(), kLongestPauseMs + kLongestPauseMs / 100 + kConnectMs); }

  // How long an agent votes for no other coordinator, counted from when it received the last KEPT of its own one:
  // longer than the lease, so that its workers are gone before another coordinator can be elected.
  std::int64_t vote_ms() const { return loss_timeout_ms * 4 / 5; }
  // How long a coordinator counts on that vote, from when it sent that KEPT: clocks may differ by 1 %.
  std::int64_t counted_vote_ms() const { return vote_ms() - (vote_ms() + 99) / 100; }
  // A coordinator that could grant no longer lease than this resigns: the workers of such a lease would have to stop at
  // once.
  std::int64_t least_ms() const { return loss_timeout_ms / 50; }
  // A candidate resigns if its votes are not enough and no further vote has come for so long.
  std::int64_t next_vote_ms() const { return std::max<std::int64_t>(2 * renewal_ms(), 1'000); }
  // How long an agent that has lost its coordinator hurries from one next leader to the other.
  std::int64_t search_ms() const { return 2 * loss_timeout_ms; }

  static constexpr std::int64_t kKillMs = 100;
  // How long nodes whose votes are free may take to find a coordinator that others have elected.
  static constexpr std::int64_t kFindMs = 400;
  // The longest pause between two attempts of an agent to connect, and the time that the attempt itself takes.
  static constexpr std::int64_t kLongestPauseMs = 2000;
  static constexpr std::int64_t kConnectMs = 250;
  // How long a peer port that is tried may take to answer: a firewall may drop the attempt silently.
  static constexpr std::int64_t kPeerPortMs = 1000;
};

// How a keep-alive is answered.
struct Grant {
  std::optional<std::int64_t> good_for_ms = {};  // of the lease; empty: without limit
  bool asks_vote = false;                        // the node is to vote by a lease ack
  bool is_lease = true;                          // else it only asks, with 0 ms, and a lease may follow
};

}  // namespace elastic::protocol
