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
  protocol::AgentId agent = 0;  // Welcome::host; 0: it is not known, and is on none of the nodes
  protocol::Incarnation incarnation =
      0;  // the start of the job; terms of two starts have nothing to do with each other

  bool operator==(const CoordinatorId&) const = default;
};

// An agent's side of the promises: it supports one coordinator at a time. It promises by its vote, by which it joins
// the coordinator, and again by each KEPT that it acknowledges. It supports no other one until the promise is over: by
// time, because the coordinator has resigned, or because its process is proven dead. Once it has acknowledged a KEPT of
// a later term, it supports no coordinator of an earlier one ever again. Times are milliseconds of the agent's clock,
// which goes on while the machine is suspended.
class Allegiance {
 public:
  explicit Allegiance(protocol::LeaseTimes times) : times_(times) {}

  // A WELCOME has come now: these are the times of the coordinator, which may count the present promise by them, too.
  void learns(protocol::LeaseTimes times, std::int64_t now_ms);

  // Whether the agent may vote for this coordinator: its promise to any other one is over, and it has acknowledged no
  // other one of this term or a later one of the same start of the job. A coordinator of the same process and a later
  // term has resigned from the earlier one.
  bool may_vote(const CoordinatorId& coordinator, std::int64_t now_ms) const;
  // It votes: NodeJoins is sent now. This uses up the certificate, so that the testimony that goes with the vote is to
  // be taken before. To be called while may_vote().
  void vote(const CoordinatorId& coordinator, std::int64_t now_ms);
  // The same for the coordinator in the agent's own process: this promise ends when that resigns.
  void vote_for_own(const CoordinatorId& coordinator, std::int64_t now_ms);
  // A KEPT of this coordinator has come. False if the agent does not support it: then it acknowledges nothing.
  bool kept(const CoordinatorId& coordinator, std::int64_t now_ms);

  // A coordinator has lent without asking for a promise: it lends, to others too, for as long as it lives.
  void lends_unasked() { lends_unasked_ = true; }

  // The coordinator never acts again, and has said so.
  void resigned(const CoordinatorId& coordinator, std::int64_t now_ms);
  // What the agent did when its coordinator's process was proven dead.
  struct Circumstances {
    bool holds_lease = false;   // of this coordinator
    bool runs_workers = false;  // of the latest round that the agent has heard of: `round`
    Round round = {};
    std::optional<int> rank = {};  // in this round, of the node that hosted the coordinator; nothing: it was on none
  };
  // If the agent held a lease and ran workers, it has a certificate from now on.
  void died(const CoordinatorId& coordinator, const Circumstances& circumstances, std::int64_t now_ms);

  bool is_released(std::int64_t now_ms) const { return now_ms >= until_ms_; }
  // The promise is to the coordinator in the agent's own process, and that has not resigned.
  bool has_no_end() const { return until_ms_ == kNoEnd; }
  // When the promise ends by time; nothing if it is over, or has no such end.
  std::optional<std::int64_t> ends_ms(std::int64_t now_ms) const;
  // Whom the agent has promised its support to last.
  const CoordinatorId& coordinator() const { return promised_to_; }
  // The highest term that it has acknowledged; 0: none. A coordinator of a lower one resigns when it hears of it.
  protocol::Term term() const { return acknowledged_.term; }
  // For the next vote.
  const std::optional<Certificate>& certificate() const { return certificate_; }
  // For how long workers may still run, on nodes that do not come, under leases of the coordinator before, in
  // milliseconds. After an end by time only the killing takes a moment, since no coordinator lends for longer than it
  // has authority. After a resignation or a death the leases end by themselves, and so do those of a coordinator that
  // asked nobody, from when the agent votes for another one.
  std::int64_t others_may_run_for_ms(std::int64_t now_ms) const;

 private:
  static constexpr std::int64_t kOver = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

  void promise(const CoordinatorId& coordinator, std::int64_t until_ms, std::int64_t now_ms);
  void release(std::int64_t now_ms);

  protocol::LeaseTimes times_;
  CoordinatorId promised_to_;
  CoordinatorId acknowledged_;
  std::int64_t until_ms_ = kOver;
  // When a promise last ended otherwise than by time. A vote does not change it: the agent may have to vote once more.
  std::optional<std::int64_t> released_early_ms_;
  bool lends_unasked_ = false;  // the last coordinator
  std::optional<Certificate> certificate_;
};

}  // namespace elastic::election
