#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "src/status/snapshot.h"

namespace elastic::coordinator {

// What a coordinator counts of its job, from when it took it on. A plain value, fed by the coordinator; times are
// milliseconds of its clock.
class JobStatistics {
 public:
  explicit JobStatistics(std::int64_t now_ms) : since_ms_(now_ms) {}

  // The job is in this phase from now on; the same again changes nothing.
  void enter(status::Phase phase, std::int64_t now_ms);

  // A round is formed. `after_run`: the workers of the one before it had run.
  void round_began(status::Cause cause, bool after_run);
  // A round is over whose work, as far as there was any, is lost for this reason. To be called at its end, while it
  // is being stopped.
  void work_lost(status::Cause cause, std::int64_t now_ms);
  // Its age is ignored.
  void failed(status::Failure failure, std::int64_t now_ms);

  // Writes what was counted until now into `job`.
  void tell(status::Job& job, std::int64_t now_ms) const;

 private:
  struct Remembered {
    status::Failure failure;
    std::int64_t at_ms = 0;
  };

  status::Phase phase_ = status::Phase::kWaiting;
  std::int64_t since_ms_;    // of the phase
  std::int64_t ran_ms_ = 0;  // how long the workers of the last round ran, until its work was lost
  std::array<std::int64_t, status::kPhases> phase_ms_{};
  std::array<std::int64_t, status::kCauses> rounds_{};
  std::array<std::int64_t, status::kCauses> restarts_{};
  std::array<std::int64_t, status::kCauses> lost_work_ms_{};
  std::deque<Remembered> failures_;  // the newest first
};

}  // namespace elastic::coordinator
