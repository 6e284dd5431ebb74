#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "rendezvous/coordinator/round_slots.h"
#include "rendezvous/coordinator/round_stop.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// The last round of a job that has formed, here or with an earlier coordinator: which nodes are in it, how far it has
// come, and why there is another one after it.
class LastRound {
 public:
  // Empty: none has formed.
  std::optional<protocol::RoundNumber> number() const { return number_; }
  bool has_formed() const { return number_.has_value(); }
  // It was formed after the job had this result.
  bool is_after(const protocol::JobResult& job_result) const {
    return number_ && (*number_ > job_result.round || formed_in_ > job_result.term);
  }
  // Why it follows the one before, or, once it has stopped, why the next one follows it.
  const Again& again() const { return again_; }
  // By node rank; while a round is taken over those that have reported, in any order.
  const Slots& slots() const { return slots_; }
  // Empty: it is not open.
  const std::optional<protocol::StoreEndpoint>& store() const { return store_; }
  // Its nodes were told to start the workers.
  bool has_run() const { return has_run_; }
  // Why it is being stopped. Also while no round is on, and before the first one: why the job ends, and which nodes
  // have left.
  const RoundStop& stopping() const { return stopping_; }
  RoundStop& stopping() { return stopping_; }

  // Another round forms here, in this term.
  void form(protocol::Term term) {
    number_ = number_ ? *number_ + 1 : 0;
    formed_in_ = term;
    slots_.clear();
    store_.reset();
    has_run_ = false;
    stopping_ = {};
  }
  // Its nodes report this round of an earlier coordinator.
  void take_over(protocol::RoundNumber number) {
    number_ = number;
    formed_in_ = 0;
    slots_.clear();
    stopping_ = {};
  }
  // An earlier coordinator has ended the job with this round.
  void was_last(protocol::RoundNumber number) { number_ = number; }
  void add(Slot slot) { slots_.push_back(std::move(slot)); }
  // All nodes of a round that is taken over have reported.
  void sort_slots() { std::ranges::sort(slots_, {}, &Slot::slot); }
  void open_store(const protocol::StoreEndpoint& endpoint) { store_ = endpoint; }
  void run() { has_run_ = true; }
  // All its nodes have stopped. Returns why, and forgets it.
  RoundStop take_stop() { return std::exchange(stopping_, {}); }
  void ends_for(Again again) { again_ = std::move(again); }

 private:
  friend struct CoordinatorBreaker;  // for tests

  std::optional<protocol::RoundNumber> number_;
  protocol::Term formed_in_ = 0;  // the term in which it was formed here; 0: by an earlier coordinator
  Again again_;
  Slots slots_;
  std::optional<protocol::StoreEndpoint> store_;
  bool has_run_ = false;
  RoundStop stopping_;
};

}  // namespace elastic::coordinator
