#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace elastic::election {

// What decides if exactly half of the members vote for a coordinator.
class TieBreaker {
 public:
  // Nobody: half is not enough.
  static constexpr TieBreaker nobody() { return TieBreaker(Kind::kNobody, 0); }
  // The coordinator that needs the votes, since it formed the round itself: half is enough.
  static constexpr TieBreaker coordinator() { return TieBreaker(Kind::kCoordinator, 0); }
  // The node of this node rank: half is enough if it is in that half.
  static constexpr TieBreaker node(int rank) { return TieBreaker(Kind::kNode, rank); }

  bool is_coordinator() const { return kind_ == Kind::kCoordinator; }
  // Empty if it is no node.
  std::optional<int> rank() const { return kind_ == Kind::kNode ? std::optional(rank_) : std::nullopt; }

  bool operator==(const TieBreaker&) const = default;

 private:
  enum class Kind : std::uint8_t { kNobody, kCoordinator, kNode };
  constexpr TieBreaker(Kind kind, int rank) : kind_(kind), rank_(rank) {}

  Kind kind_;
  int rank_;
};

// The voters of a coordinator: the members of a round, by node rank. A quorum is more than half of them, or half with
// the tie-breaker. Two coordinators never have a quorum each, since a member votes for one at a time.
class VoterSet {
 public:
  VoterSet(int node_count, TieBreaker tie_breaker) : node_count_(node_count), tie_breaker_(tie_breaker) {}

  // A voter has witnessed the death of the coordinator that led the round. Its node, of this rank if it was in the
  // round, counts no more. If that was the tie-breaker, or if there was none, the first other node becomes it: all
  // witnesses of this death mean the same voter set.
  void strike_off(std::optional<int> rank);

  // The member counts, whether it votes for the coordinator or not.
  bool has(int rank) const { return rank >= 0 && rank < node_count_ && rank != struck_off_; }
  // How many members the round has, and how many of them count.
  int node_count() const { return node_count_; }
  int size() const { return node_count_ - (struck_off_ ? 1 : 0); }
  TieBreaker tie_breaker() const { return tie_breaker_; }
  // Whether this many of the members that count are a quorum. `with_tie_breaker`: the tie-breaker's node is among them.
  bool is_quorum(int count, bool with_tie_breaker) const;
  // Whether the members of these ranks, each given once, are a quorum. Members that do not count are ignored.
  bool is_quorum(const std::vector<int>& ranks) const;

 private:
  int node_count_;
  TieBreaker tie_breaker_;
  std::optional<int> struck_off_;  // the node rank of a dead coordinator
};

}  // namespace elastic::election
