#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/message_parts.h"
#include "src/base/fields.h"

// The values by which agents and coordinators elect a leader. docs/failover.md explains the rules, which are those of
// rendezvous/election.
namespace elastic::protocol {

// A round, as far as elections need it. Its members are known by their node ranks, from 0 to node_count - 1, since no
// node knows the agents of all others.
struct Round {
  Term term = 0;  // of the coordinator that formed it
  RoundNumber number = 0;
  std::uint64_t membership = 0;  // the digest of its members
  int node_count = 0;
  // The node rank of the node that hosted the coordinator that formed it; not set: that coordinator was on none of its
  // nodes.
  std::optional<int> tie_breaker = {};

  // The round of a later coordinator is the later one, whatever its number: a coordinator that was replaced may have
  // formed more rounds for a while, but has run none of them.
  friend auto operator<=>(const Round& a, const Round& b) { return a.key() <=> b.key(); }
  friend bool operator==(const Round& a, const Round& b) { return a.key() == b.key(); }
  static void fields(auto& io, auto& v) {
    each(io, "term", v.term, "number", v.number, "membership", v.membership, "node_count", v.node_count);
    io("tie_breaker", v.tie_breaker);
  }

 private:
  std::tuple<Term, RoundNumber, std::uint64_t> key() const { return {term, number, membership}; }
};

// What a node knows of a round.
struct KnownRound {
  Round round;
  std::optional<int> rank = {};  // the node's own; not set: it is not of the round, or has forgotten
  bool has_run = false;          // the node was told to run its workers
  bool operator==(const KnownRound&) const = default;
  static void fields(auto& io, auto& v) { each(io, "round", v.round, "rank", v.rank, "has_run", v.has_run); }
};

// A node that held a lease of a coordinator and ran the workers of this round has seen that coordinator dead. So no
// later round can have run: it would have had to wait for this node. That is why the round's voter set may do without
// the dead coordinator's node.
struct WitnessedDeath {
  Round round;
  Term term = 0;                 // of the dead coordinator
  std::optional<int> rank = {};  // the node rank, in the round, of the node that hosted it; not set: it was on none
  bool operator==(const WitnessedDeath&) const = default;
  static void fields(auto& io, auto& v) { each(io, "round", v.round, "term", v.term, "rank", v.rank); }
};

// What a voter tells a candidate.
struct VoterState {
  // The rounds that, as far as the voter knows, may be the last one that ran, the earliest first; at most
  // limits::kLastRounds. Empty: it has heard of none.
  std::vector<KnownRound> rounds = {};
  std::optional<WitnessedDeath> witnessed_death = {};
  // For how long workers may still run, on nodes that do not come, under leases of the coordinator before, in
  // milliseconds from when the voter state is sent (Voter::others_may_run_for_ms).
  std::int64_t others_may_run_for_ms = 0;
  bool operator==(const VoterState&) const = default;
  static void fields(auto& io, auto& v) {
    io("rounds", v.rounds, at_most(limits::kLastRounds));
    io("certificate", v.witnessed_death);
    io("others_may_run_for_ms", v.others_may_run_for_ms, bounds::kMs);
  }
};

// Where a node that asks for a job's coordinator is redirected. Part of REFUSED.
struct Redirect {
  // Numeric, as NodeJoins::addresses, the best first; empty: here, or it is not known where.
  std::string addresses = {};
  std::uint16_t port = 0;
  std::optional<std::int64_t> retry_ms = {};  // ask here again after so many milliseconds; not set: that is of no use
  // The process that was asked serves other jobs only, or knows no more of this one than the node that asks.
  bool knows_nothing = false;
  bool operator==(const Redirect&) const = default;
  static void fields(auto& io, auto& v) {
    io("addresses", v.addresses, at_most(limits::kAgentAddressesBytes));
    io("port", v.port);
    io("retry_ms", v.retry_ms, bounds::kMs);
    io.at_end("knows_nothing", v.knows_nothing);
  }
};

// Where the coordinator of a job is, as its own process gossips at the endpoint, or at what the file of discovery
// names. Part of HELLO.
struct Gossip {
  std::string addresses = {};  // numeric, as NodeJoins::addresses, the best first
  std::uint16_t port = 0;
  std::int64_t birth_ms = 0;              // when the job began, as in its fences
  std::optional<RoundNumber> round = {};  // the last that the coordinator has formed or taken over
  bool operator==(const Gossip&) const = default;
  static void fields(auto& io, auto& v) {
    io("addresses", v.addresses, at_most(limits::kGossipedBytes));
    io("port", v.port);
    io("birth_ms", v.birth_ms, bounds::kSignedMs);
    io("round", v.round);
  }
};

// A process that may host the coordinator when the present one is lost: that of a node, or of the present coordinator,
// if that is on none of the nodes.
struct NextLeader {
  AgentId agent = 0;           // or the number of a process on none of the nodes
  int node_rank = 0;           // -1: it is on none of the nodes
  std::string addresses = {};  // numeric, as NodeJoins::addresses
  std::uint16_t port = 0;      // at which it listens
  bool operator==(const NextLeader&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "agent", v.agent, "node_rank", v.node_rank);
    io("addresses", v.addresses, at_most(limits::kAgentAddressesBytes));
    io("port", v.port);
  }
};

}  // namespace elastic::protocol
