#include "rendezvous/agent/search.h"

#include <algorithm>
#include <utility>

namespace elastic::agent {

using election::SuccessorDialing;
using protocol::Successor;

namespace {

// Doors that send an agent on to each other: after so many it goes on by itself.
constexpr int kMostHops = 3;

// How often the time doubles that those who are asked have to answer.
constexpr int kMostDoublings = 3;

// After a door that is not open yet; then twice as long each time, up to SuccessorDialing::kStepMs.
constexpr std::int64_t kFirstPauseMs = 10;

DoorTarget door_of(const Successor& successor) { return {successor.addresses, successor.port, successor.agent}; }

}  // namespace

// What the search has found is by the places in the list before.
void Search::knows(std::vector<Successor> successors) {
  is_done_ = false;
  if (successors == successors_) return;
  successors_ = std::move(successors);
  silent_.reset();
  to_look_at_.clear();
  to_wait_for_.reset();
  looked_at_.reset();
  dialing_.reset();
  retry_ms_.reset();
}

// A new start of a node may be found at that node's door and where the nodes meet, and other doors lead there. If it
// could not be elected, since others do not reach it, these have their turn before it is made a candidate again.
bool Search::shuns(protocol::AgentId host) const {
  return host != 0 && host == shunned_ && doors_opened_ <= successors_.size() + 1;
}

void Search::begin(const protocol::LeaseTimes& times, std::int64_t now_ms) {
  // A successor that has stood in vain, perhaps on the agent's own node, has its turn again when the others, and the
  // place where the nodes meet, had theirs: a coordinator may be there.
  begins_with_ = is_on_ && asked_ == Asked::kSuccessor ? successor_ + 1 : 0;
  vain_ = is_on_ ? std::min(vain_ + 1, kMostDoublings) : 0;
  const bool is_successor = std::ranges::find(successors_, host_, &Successor::agent) != successors_.end();
  shunned_ = vain_ > 0 && !is_successor ? host_ : 0;
  doors_opened_ = 0;
  is_on_ = !successors_.empty();
  to_look_at_.clear();
  to_wait_for_.reset();
  looked_at_.reset();
  if (vain_ == 0) silent_.reset();
  times_ = times;
  began_ms_ = now_ms;
  asked_ = Asked::kNobody;
  dialing_.reset();
  sent_to_.reset();
  retry_ms_.reset();
  longest_pause_ms_ = kFirstPauseMs;
  hops_ = 0;
}

// Who has voted in vain, or is done, looks also where the nodes meet: the process there may be of another start than
// the successor on that host. After a loss that takes too long, since the coordinator's host is mostly the one.
void Search::look_round() {
  to_wait_for_ = silent_;
  look_at_those_that_answer();
}

// The lost coordinator's own process is no candidate so soon. One that has stood in vain, or that a node that is done
// has lost a while ago, may be one again: others make it one.
void Search::look_at_those_that_answer() {
  to_look_at_.clear();
  const std::size_t meeting_place = successors_.size();
  if ((vain_ > 0 || is_done_) && !silent_[meeting_place]) to_look_at_.push_back(meeting_place);
  for (std::size_t index = successors_.size(); index-- > 0;) {
    const bool is_lost = vain_ == 0 && !is_done_ && successors_[index].agent == host_;
    if (!silent_[index] && !is_lost) to_look_at_.push_back(index);
  }
}

// If it was waited for in vain, a candidate may have risen among the others meanwhile: those that answer are looked at
// once more before the next one is waited for. So nobody looks away from them for longer than one step, and a candidate
// stands for longer than that.
void Search::was_looked_at(std::int64_t now_ms) {
  if (!looked_at_ || now_ms < asked_ms_ + step_ms()) return;
  silent_.set(*looked_at_);
  look_at_those_that_answer();
}

std::optional<DoorTarget> Search::next(std::optional<std::int64_t> free_at_ms, std::int64_t now_ms) {
  was_looked_at(now_ms);
  asked_ms_ = now_ms;
  const bool is_free = free_at_ms && now_ms >= *free_at_ms;
  bound_until_ms_ = is_free ? std::nullopt : free_at_ms;
  if (sent_to_) {
    // If nobody is there, the node of that door may have lost the same coordinator, and not know it yet.
    if (asked_ == Asked::kSuccessor) retry_ms_ = pause_ms();
    asked_ = asked_ == Asked::kSuccessor || asked_ == Asked::kWhereSent ? Asked::kWhereSent : Asked::kElsewhere;
    return std::exchange(sent_to_, std::nullopt);
  }
  hops_ = 0;
  if (comes_back(now_ms)) {
    retry_ms_.reset();
    asked_ = Asked::kSuccessor;
    return door_of(successors_[successor_]);
  }
  retry_ms_.reset();
  if (!is_on_) {
    asked_ = Asked::kMeetingPlace;
    return {};
  }
  if (!is_free) {
    const auto lost = std::ranges::find(successors_, host_, &Successor::agent);
    const bool turn_of_the_lost = asked_ != Asked::kLost && host_ != 0 && lost != successors_.end();
    asked_ = turn_of_the_lost ? Asked::kLost : Asked::kMeetingPlace;
    if (!turn_of_the_lost) return {};
    return door_of(*lost);
  }
  const bool begins_to_look = is_done_ ? has_looked_round() : !looked_at_ && vain_ > 0;
  if (begins_to_look) look_round();
  looked_at_.reset();
  for (std::size_t place = 0; to_look_at_.empty() && to_wait_for_.any(); ++place) {
    if (!to_wait_for_[place]) continue;
    to_wait_for_.reset(place);
    to_look_at_.push_back(place);
  }
  if (!to_look_at_.empty()) {
    looked_at_ = to_look_at_.back();
    to_look_at_.pop_back();
    silent_.reset(*looked_at_);
    asked_ = Asked::kElsewhere;
    if (*looked_at_ == successors_.size()) return {};
    return door_of(successors_[*looked_at_]);
  }
  // The meeting place is one more in the turn, the last.
  if (!dialing_) {
    dialing_.emplace(successors_.size() + 1, times_, now_ms);
    for (std::size_t skipped = 0; skipped < begins_with_; ++skipped) (void)dialing_->dial();
  }
  successor_ = dialing_->dial();
  ++doors_opened_;
  successor_since_ms_ = now_ms;
  asked_ = successor_ < successors_.size() ? Asked::kSuccessor : Asked::kMeetingPlace;
  if (asked_ == Asked::kMeetingPlace) return {};
  return door_of(successors_[successor_]);
}

bool Search::comes_back(std::int64_t now_ms) const {
  if (!retry_ms_) return false;
  if (asked_ == Asked::kWhereSent) return now_ms < successor_since_ms_ + times_.renewal_ms();
  // Nobody is bound by a promise for longer than that: the agent at that door does not look for a coordinator.
  return asked_ == Asked::kSuccessor && now_ms < successor_since_ms_ + times_.loss_timeout_ms;
}

// Before a door is asked again: its node may learn soon that the coordinator is dead.
std::int64_t Search::pause_ms() {
  return std::exchange(longest_pause_ms_, std::min(2 * longest_pause_ms_, SuccessorDialing::kStepMs));
}

std::optional<int> Search::rank_of_the_lost() const {
  const auto lost = std::ranges::find(successors_, host_, &Successor::agent);
  if (host_ == 0 || lost == successors_.end() || lost->node_rank < 0) return {};
  return lost->node_rank;
}

void Search::sent(const protocol::Elsewhere& elsewhere) {
  if (elsewhere.addresses.empty() && looks_round()) return;
  if (elsewhere.addresses.empty()) {
    retry_ms_ = elsewhere.retry_ms;
    if (is_on_ && retry_ms_) retry_ms_ = std::min(*retry_ms_, pause_ms());
    return;
  }
  if (++hops_ <= kMostHops) sent_to_ = DoorTarget{elsewhere.addresses, elsewhere.port, 0};
}

std::optional<std::int64_t> Search::patience_ms(std::int64_t now_ms) const {
  const bool hurries = is_on_ && (looks_round() || now_ms < began_ms_ + times_.search_ms());
  if (!hurries) return {};
  return bound_until_ms_ ? std::clamp<std::int64_t>(*bound_until_ms_ - now_ms, 1, step_ms()) : step_ms();
}

// A host that is dead accepts no connection. A successor that does lives, and may have much to do: who passes it over
// stands itself, and splits the votes.
std::optional<std::int64_t> Search::greeting_ms(std::int64_t now_ms) const {
  if (asked_ != Asked::kSuccessor || !patience_ms(now_ms)) return {};
  return times_.renewal_ms();
}

// A welcome takes three round trips. Where that is longer than a step nobody finds a candidate: each node passes the
// others over and stands itself, again and again. So it doubles with each search in vain, up to half of the time that a
// candidate waits for its next vote.
std::int64_t Search::step_ms() const {
  return std::clamp(times_.next_vote_ms() / 2, SuccessorDialing::kStepMs, SuccessorDialing::kStepMs << vain_);
}

std::optional<std::int64_t> Search::again_at_ms(bool has_refused, std::int64_t now_ms) const {
  if (sent_to_) return now_ms;
  if (!is_on_) return {};
  const bool rests = is_done_ && has_looked_round();
  if (looks_round()) return rests ? std::max(now_ms, asked_ms_ + SuccessorDialing::kStepMs) : now_ms;
  if (retry_ms_) return now_ms + std::max<std::int64_t>(*retry_ms_, 1);
  if (dialing_) return dialing_->again_at_ms(asked_ms_, has_refused, now_ms);
  // Where the lost coordinator's own door has refused, the agent is free now.
  if (asked_ == Asked::kLost && has_refused) return now_ms;
  if (now_ms >= began_ms_ + times_.search_ms()) return {};
  // Once it is free it asks others, who may wait for its vote.
  const std::int64_t step_over_ms = asked_ms_ + SuccessorDialing::kStepMs;
  return std::max(now_ms, std::min(step_over_ms, bound_until_ms_.value_or(step_over_ms)));
}

}  // namespace elastic::agent
