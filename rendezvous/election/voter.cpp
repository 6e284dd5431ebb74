#include "rendezvous/election/voter.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"

namespace elastic::election {

void Voter::learns(protocol::LeaseTimes times, std::int64_t now_ms) {
  const std::int64_t more_ms = times.vote_ms() - times_.vote_ms();
  times_ = times;
  if (!is_released(now_ms) && until_ms_ != kNoEnd && more_ms > 0) until_ms_ += more_ms;
}

bool Voter::may_vote(const CoordinatorId& coordinator, std::int64_t now_ms) const {
  const bool is_same_start = coordinator.incarnation == acknowledged_.incarnation;
  if (is_same_start && coordinator != acknowledged_ && coordinator.term <= acknowledged_.term) return false;
  const bool is_same_process = coordinator.agent != 0 && coordinator.agent == voted_for_.agent;
  const bool is_earlier = coordinator.incarnation == voted_for_.incarnation && coordinator.term < voted_for_.term;
  if (is_same_process && !is_earlier) return true;
  return coordinator == voted_for_ || is_released(now_ms);
}

void Voter::vote(const CoordinatorId& coordinator, std::int64_t now_ms) {
  bind(coordinator, now_ms + times_.vote_ms(), now_ms);
}

void Voter::vote_for_own(const CoordinatorId& coordinator, std::int64_t now_ms) { bind(coordinator, kNoEnd, now_ms); }

void Voter::bind(const CoordinatorId& coordinator, std::int64_t until_ms, std::int64_t now_ms) {
  ELASTIC_CHECK(may_vote(coordinator, now_ms));
  witnessed_death_.reset();
  if (std::exchange(grants_unasked_, false)) released_early_ms_ = now_ms;
  voted_for_ = coordinator;
  until_ms_ = std::max(until_ms_, until_ms);
}

bool Voter::lease_granted(const CoordinatorId& coordinator, std::int64_t now_ms) {
  if (coordinator != voted_for_) return false;
  witnessed_death_.reset();  // the coordinator lives
  grants_unasked_ = false;
  acknowledged_ = coordinator;
  until_ms_ = std::max(until_ms_, now_ms + times_.vote_ms());
  return true;
}

void Voter::resigned(const CoordinatorId& coordinator, std::int64_t now_ms) {
  if (coordinator == voted_for_) release(now_ms);
}

void Voter::died(const CoordinatorId& coordinator, const Circumstances& circumstances, std::int64_t now_ms) {
  if (coordinator != voted_for_ || is_released(now_ms)) return;
  if (circumstances.holds_lease && circumstances.runs_workers) {
    witnessed_death_ =
        WitnessedDeath{.round = circumstances.round, .term = coordinator.term, .rank = circumstances.rank};
  }
  release(now_ms);
}

void Voter::release(std::int64_t now_ms) {
  if (is_released(now_ms)) return;
  until_ms_ = kOver;
  released_early_ms_ = now_ms;
}

std::optional<std::int64_t> Voter::ends_ms(std::int64_t now_ms) const {
  if (is_released(now_ms) || until_ms_ == kNoEnd) return {};
  return until_ms_;
}

std::int64_t Voter::others_may_run_for_ms(std::int64_t now_ms) const {
  constexpr std::int64_t kKillMs = protocol::LeaseTimes::kKillMs;
  if (grants_unasked_) return times_.over_ms();
  if (!released_early_ms_) return kKillMs;
  return std::max(kKillMs, *released_early_ms_ + times_.over_ms() - now_ms);
}

}  // namespace elastic::election
