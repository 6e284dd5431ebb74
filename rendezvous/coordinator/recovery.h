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
// stop it, or has to wait. A coordinator that was elected goes on with the nodes that are here. Where nobody votes
// (failover=off) it goes on only if all nodes of the round are back while their leases last. It is told what nodes
// report and, after each event, which are here; it answers what follows. It also knows which nodes did not come back:
// their losses are charged to their hosts, whose names are learned when they join again. Times are milliseconds of the
// coordinator's clock.
class Recovery {
 public:
  // A node reports a round that this coordinator does not know, or a later one than any that was reported.
  void begin(const protocol::AgentFacts& facts, const protocol::LeaseTimes& lease, std::int64_t now_ms);
  // begin() was called, and decide() has not ended it since.
  bool has_begun() const { return round_.has_value(); }

  // The node reports a later round than the one that is being taken over: of a later coordinator, or with a higher
  // number. A replaced coordinator may have counted on for a while, but has run none of those rounds.
  bool is_later(const protocol::AgentFacts& facts) const;
  // The node has been in the round that is being taken over.
  bool is_of_round(const protocol::AgentFacts& facts) const;
  // Another node reports this round.
  void is_reported(const protocol::AgentFacts& facts);
  // A node of the round comes back with this activity.
  void comes_back(protocol::AgentFacts::Activity activity);
  // No process of the round is left on this node, which does not come back.
  void is_empty(protocol::AgentId agent) { empty_.insert(agent); }
  // The round cannot go on: its nodes are told to stop, and those that come back later are told then.
  void stop() { round_->stops = true; }
  bool stops() const { return round_ && round_->stops; }
  // The coordinator was elected. Until that time workers may run on nodes that do not come.
  void elected(std::int64_t others_may_run_until_ms, std::int64_t now_ms);

  // Nodes may keep their workers running.
  bool grants_leases() const { return !round_ || round_->may_go_on; }

  // The nodes that are here. `slots` are those of the round that have reported.
  struct View {
    const Slots& slots;
    const membership::Roster& roster;
    bool counts_votes = false;      // votes decide, not which nodes are here
    bool needs_election = false;    // the coordinator is a candidate
    bool job_ends = false;          // the job ends anyway: no node is needed for that
    std::vector<int> out = {};      // ranks that are out of the job: they are not missed
    std::int64_t caught_up_ms = 0;  // by then everything is read that arrived while this process did not run
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
    std::int64_t until_ms = 0;     // kWaits: decide again then, or after an event
    std::string why = {};          // kFails
    int node_count = 0;            // kGoesOn, kStops: how many nodes the round has
    std::vector<int> missed = {};  // kStops
  };
  // kGoesOn and kStops end the recovery.
  Decision decide(const View& view);

  // The node was missed when a round was taken over, and joins now. True once for each such node.
  bool was_missed(const protocol::AgentFacts& facts);

 private:
  friend struct CoordinatorBreaker;  // for tests

  struct Round {
    protocol::Term term = 0;  // of the last coordinator that has given its state to the nodes of this round
    protocol::RoundNumber number = 0;
    protocol::Incarnation incarnation = 0;
    std::uint64_t membership = 0;
    int node_count = 0;
    protocol::LeaseTimes lease;
    // By then every lease that the earlier coordinator granted is over, and every node that looks for a coordinator has
    // found this one.
    std::int64_t until_ms = 0;
    bool stops = false;
    // A node that runs the round, or is about to, has a lease for it: no later round can have been formed. A node that
    // is idle, stopping or done may have missed a later round.
    bool is_latest = false;
    // The coordinator was elected; where nobody votes: all nodes were here at once.
    bool may_go_on = false;
  };
  std::string why_lost(const Slots& slots) const;
  bool are_others_empty(const Slots& slots) const;

  std::optional<Round> round_;
  std::set<protocol::AgentId> empty_;  // nodes without a process of round_, which may be in it
  std::set<int> missed_;               // node ranks
  // The round in which these ranks were missed.
  protocol::RoundNumber missed_round_ = 0;
  protocol::Incarnation missed_incarnation_ = 0;
};

}  // namespace elastic::coordinator
