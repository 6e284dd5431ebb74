#include "rendezvous/election/allegiance.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"

namespace elastic::election {

void Allegiance::learns(protocol::LeaseTimes times, std::int64_t now_ms) {
  const std::int64_t more_ms = times.promise_ms() - times_.promise_ms();
  times_ = times;
  if (!is_released(now_ms) && until_ms_ != kNoEnd && more_ms > 0) until_ms_ += more_ms;
}

bool Allegiance::may_vote(const CoordinatorId& coordinator, std::int64_t now_ms) const {
  const bool is_same_start = coordinator.incarnation == acknowledged_.incarnation;
  if (is_same_start && coordinator != acknowledged_ && coordinator.term <= acknowledged_.term) return false;
  const bool is_same_process = coordinator.agent != 0 && coordinator.agent == promised_to_.agent;
  const bool is_earlier = coordinator.incarnation == promised_to_.incarnation && coordinator.term < promised_to_.term;
  if (is_same_process && !is_earlier) return true;
  return coordinator == promised_to_ || is_released(now_ms);
}

void Allegiance::vote(const CoordinatorId& coordinator, std::int64_t now_ms) {
  promise(coordinator, now_ms + times_.promise_ms(), now_ms);
}

void Allegiance::vote_for_own(const CoordinatorId& coordinator, std::int64_t now_ms) {
  promise(coordinator, kNoEnd, now_ms);
}

void Allegiance::promise(const CoordinatorId& coordinator, std::int64_t until_ms, std::int64_t now_ms) {
  ELASTIC_CHECK(may_vote(coordinator, now_ms));
  certificate_.reset();
  if (std::exchange(lends_unasked_, false)) released_early_ms_ = now_ms;
  promised_to_ = coordinator;
  until_ms_ = std::max(until_ms_, until_ms);
}

bool Allegiance::kept(const CoordinatorId& coordinator, std::int64_t now_ms) {
  if (coordinator != promised_to_) return false;
  certificate_.reset();  // it lives
  lends_unasked_ = false;
  acknowledged_ = coordinator;
  until_ms_ = std::max(until_ms_, now_ms + times_.promise_ms());
  return true;
}

void Allegiance::resigned(const CoordinatorId& coordinator, std::int64_t now_ms) {
  if (coordinator == promised_to_) release(now_ms);
}

void Allegiance::died(const CoordinatorId& coordinator, const Circumstances& circumstances, std::int64_t now_ms) {
  if (coordinator != promised_to_ || is_released(now_ms)) return;
  if (circumstances.holds_lease && circumstances.runs_workers) {
    certificate_ = Certificate{.round = circumstances.round, .term = coordinator.term, .rank = circumstances.rank};
  }
  release(now_ms);
}

void Allegiance::release(std::int64_t now_ms) {
  if (is_released(now_ms)) return;
  until_ms_ = kOver;
  released_early_ms_ = now_ms;
}

std::optional<std::int64_t> Allegiance::ends_ms(std::int64_t now_ms) const {
  if (is_released(now_ms) || until_ms_ == kNoEnd) return {};
  return until_ms_;
}

std::int64_t Allegiance::others_may_run_for_ms(std::int64_t now_ms) const {
  constexpr std::int64_t kKillMs = protocol::LeaseTimes::kKillMs;
  if (lends_unasked_) return times_.over_ms();
  if (!released_early_ms_) return kKillMs;
  return std::max(kKillMs, *released_early_ms_ + times_.over_ms() - now_ms);
}

}  // namespace elastic::election
