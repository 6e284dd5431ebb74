#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "rendezvous/protocol/messages.h"

namespace elastic::succession {

// A round, as far as it matters whose support a coordinator needs. Its members are known by their node ranks, from 0 to
// node_count - 1, since no node knows the agents of all others.
struct Round {
  protocol::Term term = 0;  // of the coordinator that formed it
  protocol::RoundNumber number = 0;
  std::uint64_t membership = 0;  // the digest of its members
  int node_count = 0;
  // The node rank of the node that hosted the coordinator that formed it; nothing: that coordinator was on none of its
  // nodes.
  std::optional<int> tie_breaker = {};

  // A round is later than another one if its coordinator is, whatever its number: a coordinator that was replaced may
  // have counted on for a while, but has run none of those rounds.
  friend auto operator<=>(const Round& a, const Round& b) { return a.key() <=> b.key(); }
  friend bool operator==(const Round& a, const Round& b) { return a.key() == b.key(); }

 private:
  std::tuple<protocol::Term, protocol::RoundNumber, std::uint64_t> key() const;
};

// What a node knows of a round.
struct KnownRound {
  Round round;
  std::optional<int> rank = {};  // the node's own; nothing: it is not of the round, or has forgotten
  bool has_run = false;          // the node was told to run its workers
};

// A coordinator was seen dead by a node that held a lease of it and ran the workers of this round. So no later round
// can have run: it would have had to wait for this node. That is why the round's electorate may do without the dead
// coordinator's node.
struct Certificate {
  Round round;
  protocol::Term term = 0;       // of the dead coordinator
  std::optional<int> rank = {};  // the node rank, in the round, of the node that hosted it; nothing: it was on none

  bool operator==(const Certificate&) const = default;
};

// How many rounds may be the last one, at most. Each coordinator that is lost before it has run a round adds one: after
// so many in a row nobody can be elected.
inline constexpr std::size_t kMostLastRounds = 8;

// What a voter tells a candidate.
struct Testimony {
  // The rounds that, as far as the voter knows, may be the last one that ran, the earliest first; at most
  // kMostLastRounds. Empty: it has heard of none.
  std::vector<KnownRound> rounds = {};
  std::optional<Certificate> certificate = {};
  // Allegiance::others_may_run_for_ms, when the testimony is sent.
  std::int64_t others_may_run_for_ms = 0;
};

// The rounds that a node keeps for its testimony.
class KnownRounds {
 public:
  // The node's coordinator prepares this round, in which the node has this rank, if it is in it. `before` are the
  // rounds whose quorum the coordinator needs to run it: one of them is the last that ran. Both come with the message.
  // A round that is not later than the latest one changes nothing.
  void hears(const Round& round, std::optional<int> rank, const std::vector<Round>& before);
  // The workers of the latest round run: those before it do not matter any more. False if it is another round.
  bool runs(const Round& round);

  const std::vector<KnownRound>& rounds() const { return rounds_; }

 private:
  std::vector<KnownRound> rounds_;  // the earliest first
};

}  // namespace elastic::succession
