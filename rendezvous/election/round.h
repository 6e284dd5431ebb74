#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "rendezvous/protocol/election_parts.h"
#include "rendezvous/protocol/limits.h"

namespace elastic::election {

using protocol::KnownRound;
using protocol::Round;
using protocol::VoterState;
using protocol::WitnessedDeath;

// How many rounds may be the last one, the last that ran among them: with so many nobody can be elected. Each
// coordinator that is lost before it has run a round adds one.
inline constexpr std::size_t kMostLastRounds = limits::kLastRounds;

// The rounds that a node keeps for its voter state.
class KnownRounds {
 public:
  // The node's coordinator prepares this round, in which the node has this rank, if it is a member. `before` are the
  // rounds whose quorum the coordinator needs to run it: one of them is the last that ran. Both come with the message.
  // A round that is not later than the latest one changes nothing.
  void hears(const Round& round, std::optional<int> rank, const std::vector<Round>& before);
  // The workers of the latest round run: the rounds before it do not matter any more. False if `round` is not the
  // latest.
  bool runs(const Round& round);

  const std::vector<KnownRound>& rounds() const { return rounds_; }

 private:
  std::vector<KnownRound> rounds_;  // the earliest first
};

}  // namespace elastic::election
