#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/coordinator/round_slots.h"
#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// A round that an earlier coordinator formed and its nodes report: whether this coordinator may go on with it, has to
// stop it, or has to wait. One that was elected by a quorum goes on with whoever is here. Where nobody votes
// (failover=off) it goes on only if all nodes of the round are back while their leases last. It is told what nodes
// report and, after each event, who is here; it answers what follows. It also knows which nodes did not come back:
// their losses are charged to their hosts, whose names are learned when they join again. Times are milliseconds of the
// coordinator's clock.
class Recovery {
 public:
  // A node reports a round that this coordinator does not know, or a later one than was reported so far.
  void begin(const protocol::AgentFacts& facts, const protocol::LeaseTimes& lease, std::int64_t now_ms);
  // begin() was called, and decide() has not ended it since.
  bool has_begun() const { return round_.has_value(); }

  // The round that the node reports is later than the one that is being taken over: its coordinator is, or it has the
  // higher number. One that was replaced may have counted on for a while, but has run none of those rounds.
  bool is_later(const protocol::AgentFacts& facts) const;
  // The node has been in the round that is being taken over.
  bool is_of_round(const protocol::AgentFacts& facts) const;
  // Another node reports this round.
  void is_reported(const protocol::AgentFacts& facts);
  // A node of the round comes back with this activity.
  void comes_back(protocol::AgentFacts::Activity activity);
  // No process of the round is left on this node, which does not come back.
  void is_empty(protocol::AgentId agent) { empty_.insert(agent); }
  // The round cannot go on: its nodes are told to stop, those that come back later when they do.
  void stop() { round_->stops = true; }
  bool stops() const { return round_ && round_->stops; }
  // Promises count, and the coordinator has enough. Until then workers may run on nodes that do not come.
  void elected(std::int64_t others_may_run_until_ms, std::int64_t now_ms);

  // Nodes may keep their workers running.
  bool grants_leases() const { return !round_ || round_->may_go_on; }

  // Who is here. `seats` are the nodes of the round that have reported.
  struct View {
    const Slots& slots;
    const membership::Roster& roster;
    bool counts_votes = false;      // who is here does not matter, but whose promises the coordinator has
    bool needs_election = false;    // and they are too few so far
    bool job_ends = false;          // the job ends anyway: nobody is needed for that
    std::vector<int> out = {};      // ranks of nodes that are out of the job: those that do not come are not missed
    std::int64_t caught_up_ms = 0;  // by then all is read that arrived while this process did not run
    std::int64_t now_ms = 0;
  };
  struct Decision {
    enum class Kind : std::uint8_t {
      kWaits,   // for nodes that have not come back yet, or for votes
      kFails,   // the job ends for `why`
      kGoesOn,  // all nodes are back, and train
      kStops,   // the round has to be stopped; the nodes of the ranks in `missed` are lost
    };
    Kind kind = Kind::kWaits;
    std::int64_t until_ms = 0;     // kWaits: decide again then, or when something happens
    std::string why = {};          // kFails
    int node_count = 0;            // kGoesOn, kStops: how many nodes the round has
    std::vector<int> missed = {};  // kStops
  };
  // kGoesOn and kStops are the end of the rebuilding.
  Decision decide(const View& view);

  // The node was missed when a round was taken over, and now joins. True once for each such node.
  bool was_missed(const protocol::AgentFacts& facts);

 private:
  friend struct CoordinatorBreaker;  // a test's

  struct Round {
    protocol::Term term = 0;  // of the last coordinator that has handed its state to the nodes of this round
    protocol::RoundNumber number = 0;
    protocol::Incarnation incarnation = 0;
    std::uint64_t membership = 0;
    int node_count = 0;
    protocol::LeaseTimes lease;
    // By then every lease that the earlier coordinator gave is over, and every node that looks for a coordinator has
    // found this one.
    std::int64_t until_ms = 0;
    bool stops = false;
    // A node runs the round, or is about to, under a lease: no later round can have been formed. A node that is idle,
    // stopping or done may have missed a later round.
    bool is_latest = false;
    // Enough of its nodes vote for this coordinator; where nobody votes, all were here at once.
    bool may_go_on = false;
  };
  std::string why_lost(const Slots& slots) const;
  bool are_others_empty(const Slots& slots) const;

  std::optional<Round> round_;
  std::set<protocol::AgentId> empty_;  // nodes without a process of round_, which may be in it
  std::set<int> missed_;               // node ranks
  // The round in which they were missed.
  protocol::RoundNumber missed_round_ = 0;
  protocol::Incarnation missed_incarnation_ = 0;
};

}  // namespace elastic::coordinator
