#include "rendezvous/coordinator/job_statistics.h"

#include <algorithm>
#include <utility>

#include "src/status/limits.h"

namespace elastic::coordinator {

namespace {

auto& of(auto& values, auto name) { return values[static_cast<std::size_t>(name)]; }

}  // namespace

void JobStatistics::enter(JobPhase phase, std::int64_t now_ms) {
  if (phase == phase_) return;
  const std::int64_t spent_ms = std::max<std::int64_t>(now_ms - since_ms_, 0);
  of(phase_ms_, phase_) += spent_ms;
  if (phase_ == JobPhase::kRunning) ran_ms_ += spent_ms;
  // The time that was counted so far belongs to the previous round.
  if (phase == JobPhase::kRunning) ran_ms_ = 0;
  phase_ = phase;
  since_ms_ = now_ms;
}

void JobStatistics::round_began(RoundCause cause, bool after_run) {
  ++of(rounds_, cause);
  if (after_run) ++of(restarts_, cause);
  ran_ms_ = 0;
}

void JobStatistics::work_lost(RoundCause cause, std::int64_t now_ms) {
  enter(JobPhase::kStopping, now_ms);
  of(lost_work_ms_, cause) += std::exchange(ran_ms_, 0);
}

void JobStatistics::failed(status::Failure failure, std::int64_t now_ms) {
  failures_.push_front({std::move(failure), now_ms});
  if (failures_.size() > limits::kStatusFailures) failures_.pop_back();
}

void JobStatistics::fill_status(status::Job& job, std::int64_t now_ms) const {
  const std::int64_t spent_ms = std::max<std::int64_t>(now_ms - since_ms_, 0);
  job.phase = phase_;
  job.phase_for_ms = spent_ms;
  job.phase_ms = phase_ms_;
  of(job.phase_ms, phase_) += spent_ms;
  job.rounds = rounds_;
  job.restarts = restarts_;
  job.lost_work_ms = lost_work_ms_;
  for (const Remembered& each : failures_) {
    job.failures.push_back(each.failure);
    job.failures.back().age_ms = std::max<std::int64_t>(now_ms - each.at_ms, 0);
  }
}

}  // namespace elastic::coordinator
