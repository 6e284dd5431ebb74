#include "tests/simulation/process.h"

#include <algorithm>

namespace elastic::simulation {

void Process::resume(bool timers_first) {
  if (pauses_ == 0 || --pauses_ > 0) return;
  std::vector<Waiting> waiting = std::exchange(waiting_, {});
  if (timers_first) std::ranges::stable_partition(waiting, &Waiting::is_timer);
  const std::uint32_t launch = launch_;
  for (Waiting& next : waiting) {
    if (!alive_ || launch_ != launch) return;
    run(next.is_timer, std::move(next.action));
  }
}

}  // namespace elastic::simulation
