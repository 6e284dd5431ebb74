#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "rendezvous/election/round.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::election {

// A coordinator, or a candidate.
struct CoordinatorId {
  protocol::Term term = 0;
  protocol::AgentId agent = 0;            // Welcome::host; 0: not known, and on none of the nodes
  protocol::Incarnation incarnation = 0;  // the start of the job; terms of two starts cannot be compared

  bool operator==(const CoordinatorId&) const = default;
};

// An agent's side of the votes: it votes for one coordinator at a time. The first lease grant (KEPT) of a coordinator
// that it acknowledges is its vote, and each further one renews it. It votes for no other one until the vote ends: by
// time, because the coordinator has resigned, or because its process is proven dead. Once it has acknowledged a lease
// grant of a later term, it never votes for an earlier one again. Times are milliseconds of the agent's clock, which
// goes on while the machine is suspended.
class Voter {
 public:
  explicit Voter(protocol::LeaseTimes times) : times_(times) {}

  // A WELCOME has come now, with the times of the coordinator, which may count the present vote by them, too.
  void learns(protocol::LeaseTimes times, std::int64_t now_ms);

  // Whether the agent may vote for this coordinator: its vote for any other one has ended, and it has acknowledged no
  // other one of this or a later term of the same start of the job. A coordinator of the same process and a later term
  // has resigned from the earlier one.
  bool may_vote(const CoordinatorId& coordinator, std::int64_t now_ms) const;
  // The agent votes: its first lease ack to the coordinator is sent now. This clears the witnessed death, so the voter
  // state that goes with the vote must be taken before. Called only while may_vote().
  void vote(const CoordinatorId& coordinator, std::int64_t now_ms);
  // The same for the coordinator in the agent's own process: this vote ends when that coordinator resigns.
  void vote_for_own(const CoordinatorId& coordinator, std::int64_t now_ms);
  // A lease grant of this coordinator has come. False if the agent does not vote for it: then it acknowledges nothing.
  bool lease_granted(const CoordinatorId& coordinator, std::int64_t now_ms);

  // A coordinator has granted a lease without asking for a vote: it grants leases, to others too, for as long as it
  // lives.
  void grants_unasked() { grants_unasked_ = true; }

  // The coordinator never acts again, and has said so.
  void resigned(const CoordinatorId& coordinator, std::int64_t now_ms);
  // What the agent did when its coordinator's process was proven dead.
  struct Circumstances {
    bool holds_lease = false;   // of this coordinator
    bool runs_workers = false;  // of the latest round that the agent has heard of: `round`
    Round round = {};
    std::optional<int> rank = {};  // in this round, of the node that hosted the coordinator; empty: it was on none
  };
  // If the agent held a lease and ran workers, it has witnessed the death from now on.
  void died(const CoordinatorId& coordinator, const Circumstances& circumstances, std::int64_t now_ms);

  bool is_released(std::int64_t now_ms) const { return now_ms >= until_ms_; }
  // The vote is for the coordinator in the agent's own process, which has not resigned.
  bool has_no_end() const { return until_ms_ == kNoEnd; }
  // When the vote ends by time; empty if it has ended, or has no such end.
  std::optional<std::int64_t> ends_ms(std::int64_t now_ms) const;
  // The coordinator that the agent voted for last.
  const CoordinatorId& coordinator() const { return voted_for_; }
  // The highest term that the agent has acknowledged; 0: none. A coordinator of a lower one resigns when it hears of
  // it.
  protocol::Term term() const { return acknowledged_.term; }
  // It goes with the next vote.
  const std::optional<WitnessedDeath>& witnessed_death() const { return witnessed_death_; }
  // For how many milliseconds workers may still run, on nodes that do not join, under leases of the previous
  // coordinator. After a vote that ended by time only the killing takes a moment, since no lease outlasts the authority
  // of its coordinator. After a resignation or a death the leases end by themselves, and so do those of a coordinator
  // that asked for no votes, from when the agent votes for another one.
  std::int64_t others_may_run_for_ms(std::int64_t now_ms) const;

 private:
  static constexpr std::int64_t kOver = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

  void bind(const CoordinatorId& coordinator, std::int64_t until_ms, std::int64_t now_ms);
  void release(std::int64_t now_ms);

  protocol::LeaseTimes times_;
  CoordinatorId voted_for_;
  CoordinatorId acknowledged_;
  std::int64_t until_ms_ = kOver;
  // When a vote last ended otherwise than by time. A new vote does not change it: the agent may have to vote once more.
  std::optional<std::int64_t> released_early_ms_;
  bool grants_unasked_ = false;  // of the last coordinator
  std::optional<WitnessedDeath> witnessed_death_;
};

}  // namespace elastic::election
