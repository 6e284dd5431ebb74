// What must hold of a coordinator between two events. It is checked in release builds, too: a coordinator that went on
// with a broken state could run two rounds at once. No message of an agent can break any of it.
#include <algorithm>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/hang_desk.h"
#include "src/base/check.h"
#include "src/base/limits.h"

namespace elastic::coordinator {

namespace {

using membership::MemberState;
using membership::Node;
using membership::Roster;

// While a round is prepared, its slots are those of its members, by node rank.
void check_slots(const Roster& roster, const Slots& slots) {
  ELASTIC_CHECK(roster.count(MemberState::kMember) == slots.size());
  ELASTIC_CHECK(roster.count(MemberState::kMember) + roster.count(MemberState::kReady) == roster.size());
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    const Node& node = roster.at(slots[rank].agent);
    ELASTIC_CHECK(node.member_state() == MemberState::kMember);
    ELASTIC_CHECK(node.slot == slots[rank].slot);
    ELASTIC_CHECK(node.place.node_rank == static_cast<int>(rank));
    ELASTIC_CHECK(rank == 0 || slots[rank - 1].slot < slots[rank].slot);
  }
}

// How many of these slots belong to nodes whose workers run.
std::size_t running(const Roster& roster, const Slots& slots) {
  return static_cast<std::size_t>(std::ranges::count_if(slots, [&](const Slot& slot) {
    const auto found = roster.nodes().find(slot.agent);
    return found != roster.nodes().end() && found->second.member_state() == MemberState::kMember;
  }));
}

std::size_t in_round(const Roster& roster) {
  return roster.count(MemberState::kMember) + roster.count(MemberState::kDone);
}

std::size_t stopping(const Roster& roster) {
  return roster.count(MemberState::kStopping) + roster.count(MemberState::kLeaving);
}

}  // namespace

void Coordinator::check_invariants() const {
  roster_.check_invariants();
  loss_watch_.check_invariants(roster_);
  claims_.check_invariants(roster_);
  news_.check_invariants(roster_.arrivals());
  ending_.check_invariants(roster_);
  check_.check_invariants();
  hang_->check_invariants();
  ELASTIC_CHECK(!hang_->round() || (state_ == State::kRunning && hang_->round() == round_.number()));
  ELASTIC_CHECK(term() >= config_.term);
  // What exists in which state.
  const bool is_over = state_ == State::kEnding || state_ == State::kEnded;
  ELASTIC_CHECK(round_.has_formed() || !is_in_round());
  ELASTIC_CHECK(round_.has_formed() || (round_.slots().empty() && !recovery_.has_begun()));
  ELASTIC_CHECK(ending_.job_result() ? is_over : state_ != State::kEnding);
  ELASTIC_CHECK(recovery_.has_begun() ? is_over || state_ == State::kRecovery : state_ != State::kRecovery);
  ELASTIC_CHECK(!round_.has_run() || round_.store());
  ELASTIC_CHECK(is_over || roster_.size() <= limits::kNodesPerJob);
  // A round that was stopped does not run, and one that runs was not stopped.
  const bool is_stopped =
      round_.stopping().job_ends || !round_.stopping().other.empty() || !round_.stopping().lost.empty();
  switch (state_) {
    case State::kForming:
      ELASTIC_CHECK(in_round(roster_) == 0);
      ELASTIC_CHECK(round_.has_formed() || roster_.count(MemberState::kReady) == roster_.size());
      break;
    case State::kRecovery: ELASTIC_CHECK(!recovery_.stops() || in_round(roster_) == 0); break;
    case State::kPreparing:
      ELASTIC_CHECK(!is_stopped && !round_.has_run());
      check_slots(roster_, round_.slots());
      ELASTIC_CHECK(!is_checking() || check_.nodes() == round_.slots().size());
      break;
    case State::kRunning:
      ELASTIC_CHECK(!is_stopped);
      ELASTIC_CHECK(roster_.count(MemberState::kMember) > 0);
      ELASTIC_CHECK(roster_.count(MemberState::kMember) == running(roster_, round_.slots()));
      ELASTIC_CHECK(roster_.count(MemberState::kStopping) == 0 && roster_.count(MemberState::kLost) == 0);
      break;
    case State::kStopping: ELASTIC_CHECK(in_round(roster_) == 0 && stopping(roster_) > 0); break;
    case State::kEnding: ELASTIC_CHECK(roster_.count(MemberState::kLost) == 0); break;
    case State::kEnded:
      // The coordinator has told how the job ends, or has left it to another one, or no node is here.
      ELASTIC_CHECK(ending_.job_result() || round_.has_formed() || settings_.counts_votes() || roster_.size() == 0);
      break;
  }
}

}  // namespace elastic::coordinator
