#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "src/base/job_states.h"
#include "src/status/snapshot.h"

namespace elastic::coordinator {

// What a coordinator counts of its job since it began or took it over. Times are milliseconds of the coordinator's
// clock.
class JobStatistics {
 public:
  explicit JobStatistics(std::int64_t now_ms) : since_ms_(now_ms) {}

  // The job is in this phase from now on. Entering the present phase again changes nothing.
  void enter(JobPhase phase, std::int64_t now_ms);

  // A round is formed. `after_run` says that the workers of the previous round had run.
  void round_began(RoundCause cause, bool after_run);
  // The round ends for this reason, and the work of its workers is lost. To be called while the round stops.
  void work_lost(RoundCause cause, std::int64_t now_ms);
  // Adds a failure to those that /status lists. Its age is ignored.
  void failed(status::Failure failure, std::int64_t now_ms);

  // Writes all counts into `job`.
  void fill_status(status::Job& job, std::int64_t now_ms) const;

 private:
  struct Remembered {
    status::Failure failure;
    std::int64_t at_ms = 0;
  };

  JobPhase phase_ = JobPhase::kWaiting;
  std::int64_t since_ms_;    // when the present phase began
  std::int64_t ran_ms_ = 0;  // how long the workers of the present round have run
  std::array<std::int64_t, kJobPhases> phase_ms_{};
  std::array<std::int64_t, kRoundCauses> rounds_{};
  std::array<std::int64_t, kRoundCauses> restarts_{};
  std::array<std::int64_t, kRoundCauses> lost_work_ms_{};
  std::deque<Remembered> failures_;  // the newest first
};

}  // namespace elastic::coordinator
