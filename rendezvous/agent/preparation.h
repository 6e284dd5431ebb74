#pragma once

#include <cstdint>
#include <optional>

#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/waiting.h"

namespace elastic::agent {

// What stands between the order to prepare a round and the start of its workers on this node: the worker store, which
// the node of group rank 0 opens; the log files; the segment file; the check before training; and the coordinator's
// order to run.
class Preparation {
 public:
  // `logs`: there is a log directory. `segment`: there may be a segment file.
  explicit Preparation(bool logs, bool segment = false) : has_logs_(logs), has_segment_(segment) {}

  // A round is being prepared: orders a look at the segment file, its log files, and its store if this node serves
  // that. Nothing of an earlier round's preparation is kept, but answers about its store may still come.
  void begin(const protocol::PrepareRound& round, Effects& out);

  // Called once for each answer to OpenStore. True: it is about the store of the round that begin() was last called
  // for.
  bool is_answered_about_this_store();
  // The coordinator has ordered this phase of the check; the node has answered for its last one.
  void check(std::uint32_t phase);
  void check_is_answered() { check_is_answered_ = true; }
  // The log files are open.
  void logs_are_open() { awaits_logs_ = false; }
  // The segment file lets this node be in the round.
  void segment_is_seen() { awaits_segment_ = false; }
  // Log files are not waited for any more, in this round and in those that follow.
  void give_up_logs() { has_logs_ = awaits_logs_ = false; }
  // The coordinator has ordered to run the workers with this store.
  void run_with(const protocol::StoreEndpoint& store) { store_ = store; }

  bool has_logs() const { return has_logs_; }
  bool awaits_logs() const { return awaits_logs_; }
  bool checks() const { return phase_.has_value(); }
  // The store with which the workers can be started now; null: not yet.
  const protocol::StoreEndpoint* ready() const {
    return awaits_logs_ || awaits_segment_ || !store_ ? nullptr : &*store_;
  }
  // The wait for log files or for the check, in words and without its times, if there is one.
  std::optional<Waiting> waiting() const;

  // Called after each event.
  void check_invariants() const;

 private:
  friend struct LifecycleBreaker;  // a test's

  bool has_logs_;
  bool has_segment_;
  bool awaits_logs_ = false;     // OpenLogs is not answered
  bool awaits_segment_ = false;  // LookAtSegment is not answered
  int awaited_stores_ = 0;       // OpenStore orders without an answer; answers come in the orders' order
  std::optional<protocol::StoreEndpoint> store_;  // of the order to run
  std::optional<std::uint32_t> phase_;            // the last phase of the check that was ordered
  bool check_is_answered_ = false;                // for that phase
};

}  // namespace elastic::agent
