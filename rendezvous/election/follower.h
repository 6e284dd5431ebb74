#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rendezvous/election/node_vote.h"
#include "rendezvous/election/search.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/protocol/session.h"

namespace elastic::election {

// The agent's side of the votes: which coordinator its node votes for, which of the next leaders it asks when that one
// is lost, and what proves that one dead (docs/failover.md). Its owner has the connections: it asks the process that
// next_peer() names, and tells what has come of it. Times are milliseconds of the agent's clock, which goes on while
// the machine is suspended.
class Follower {
 public:
  // `own`: the number of this agent.
  explicit Follower(protocol::AgentId own) : vote_(own) {}

  // The process to ask next, when the one before has not welcomed the node.
  struct Attempt {
    std::optional<PeerTarget> to = {};             // empty: discovery
    std::optional<std::int64_t> patience_ms = {};  // until the welcome; empty: as long as always
  };
  Attempt next_peer(std::int64_t now_ms);
  // It is to be joined only if it is a coordinator, or a candidate, already.
  bool probes() const { return search_.probes(); }
  // How long it may take once it has accepted the connection; empty: no longer than `patience_ms`.
  std::optional<std::int64_t> greeting_ms(std::int64_t now_ms) const { return search_.greeting_ms(now_ms); }
  // When to ask again, after it did not welcome the node; empty: after the ordinary pause. `has_refused`: the kernel
  // says that nothing listens there.
  std::optional<std::int64_t> ask_again_ms(bool has_refused, std::int64_t now_ms) const {
    return search_.again_at_ms(has_refused, now_ms);
  }
  // It has redirected the node, or sent it away for a while.
  void redirected(const protocol::Redirect& redirect) { search_.sent(redirect); }

  // What the node does at the time of a call.
  struct Node {
    bool holds_lease = false;
    bool runs_workers = false;             // of the last round that was prepared
    protocol::Incarnation belongs_to = 0;  // the start of the job in which it was in a round; 0: in none
  };
  // Nothing listens where it was asked. True if that proves the coordinator dead that the node voted for.
  bool refused(const Node& node, std::int64_t now_ms);
  // It has welcomed the node. `why_not`: it is not followed; then another one is to be asked.
  struct Welcomed {
    const char* why_not = nullptr;
    bool is_proof = false;     // that the coordinator is dead that the node voted for
    bool has_refused = false;  // as in ask_again_ms()
  };
  // `is_same_place`: the coordinator of the last session was reached at this address.
  Welcomed welcomed(const protocol::Welcome& welcome, bool is_same_place, const Node& node, std::int64_t now_ms);

  // The coordinator of that welcome, whose term may have grown, has answered a keep-alive. Not empty: the lease ack to
  // be sent, with which the node votes for it.
  using LeaseAck = NodeVote::Answer;
  std::optional<LeaseAck> lease_granted(const protocol::Welcome& welcome, const protocol::Grant& grant,
                                        std::int64_t now_ms);
  // It prepares a round with the node. True: it is to be told that the node has heard that.
  bool on_prepare_round(const protocol::PrepareRound& round, const protocol::Welcome& welcome, std::int64_t now_ms);
  // It prepares one without the node.
  void on_next_round(const protocol::NextRound& next, const protocol::Welcome& welcome);
  // The workers of the prepared round run.
  void on_run_workers(const protocol::RunWorkers& run) { vote_.runs(run.round); }
  // The node's workers have run after this job result was given: it is one of a coordinator that was cut off.
  bool has_run_after(const protocol::JobResult& job_result, const protocol::Welcome& welcome) const {
    return vote_.have_run_after(job_result, welcome.incarnation);
  }
  // It will not act any more.
  void on_resigned(const protocol::Welcome& welcome, std::int64_t now_ms) { vote_.resigned(welcome, now_ms); }
  // The session with it has ended.
  void lost(const protocol::LeaseTimes& times, std::int64_t now_ms) { search_.begin(times, now_ms); }
  // The coordinator in the agent's own process is over: the agent may have had no session with it.
  void own_is_over(std::int64_t now_ms) { vote_.own_is_over(now_ms); }

  // The node is done. `told`: the welcome of the coordinator that has been told so; null: none was there.
  void leaves(const protocol::Welcome* told);
  bool has_left() const { return vote_.has_left(); }

  // Looks for a coordinator that may act; one that has only welcomed the node may be a candidate.
  bool is_searching() const { return search_.is_on(); }
  const std::vector<protocol::NextLeader>& next_leaders() const { return search_.next_leaders(); }
  // In the last round nobody but its coordinator could lead the job.
  bool is_bound() const { return is_bound_; }
  bool votes_for_own() const { return vote_.votes_for_own(); }
  // From when on the node may vote for any other coordinator than the one that it votes for; 0: now. Empty: it has
  // never voted, or its vote has no end.
  std::optional<std::int64_t> free_at_ms(std::int64_t now_ms) const { return vote_.free_at_ms(now_ms); }
  // What the node tells the next coordinator of rounds.
  const KnownRounds& rounds() const { return vote_.rounds(); }

 private:
  bool proves_death(const Node& node, std::int64_t now_ms);

  NodeVote vote_;
  Search search_;
  bool refusal_is_proof_ = true;  // PrepareRound::refusal_is_proof of the last round
  bool is_bound_ = false;
};

}  // namespace elastic::election
