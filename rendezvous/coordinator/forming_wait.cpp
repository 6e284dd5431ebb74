#include "rendezvous/coordinator/forming_wait.h"

namespace elastic::coordinator {

void FormingWait::begin(std::int64_t now_ms) {
  since_ms_ = now_ms;
  enough_since_ms_.reset();
  was_below_min_ = false;
}

membership::FormingDecision FormingWait::decide(const Here& here, const membership::FormingRules& rules,
                                                std::int64_t now_ms) {
  const bool are_enough = membership::round_size(here.ready, rules) > 0;
  if (are_enough && !enough_since_ms_) enough_since_ms_ = now_ms;
  if (!are_enough) enough_since_ms_.reset();
  if (!are_enough && here.awaited == 0) was_below_min_ = true;
  return membership::decide_forming({.ready = here.ready,
                                     .awaited = here.awaited,
                                     .again = here.again,
                                     .previous_size = here.previous_size,
                                     .since_ms = since_ms_,
                                     .enough_since_ms = enough_since_ms_,
                                     .last_join_ms = last_join_ms_,
                                     .was_below_min = was_below_min_,
                                     .back_by_ms = back_by_ms_},
                                    rules, now_ms);
}

}  // namespace elastic::coordinator
