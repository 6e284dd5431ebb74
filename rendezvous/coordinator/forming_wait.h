#pragma once

#include <cstdint>
#include <optional>

#include "rendezvous/membership/round_forming.h"

namespace elastic::coordinator {

// The past of a round that is forming: since when nodes are awaited, since when they are enough, and until when some
// may come back. With that it asks membership::decide_forming(). It also keeps when the first round may begin, which
// the caller looks to. Times are milliseconds of the coordinator's clock.
class FormingWait {
 public:
  // `first_not_before_ms`: as not_first_before().
  FormingWait(std::int64_t now_ms, std::int64_t first_not_before_ms)
      : since_ms_(now_ms), first_not_before_ms_(first_not_before_ms) {}

  // Nodes of an earlier coordinator may come until then: this one's first round does not begin before.
  void not_first_before(std::int64_t at_ms) { first_not_before_ms_ = at_ms; }
  // The last round has ended, and the next one begins to form.
  void begin(std::int64_t now_ms);
  // The first node has brought the job's settings: the wait counts from now.
  void restart_clock(std::int64_t now_ms) { since_ms_ = now_ms; }
  // A node came that was not in the last round.
  void newcomer_joins(std::int64_t now_ms) { last_join_ms_ = now_ms; }
  // A waiting node has lost its session. If it comes back, it does so by then.
  void may_be_back_by(std::int64_t until_ms) { back_by_ms_ = until_ms; }

  // As in membership::FormingView.
  struct Here {
    int ready = 0;
    int awaited = 0;
    bool again = false;
    int previous_size = 0;
  };
  membership::FormingDecision decide(const Here& here, const membership::FormingRules& rules, std::int64_t now_ms);

  std::int64_t first_not_before_ms() const { return first_not_before_ms_; }
  std::int64_t since_ms() const { return since_ms_; }
  std::int64_t last_join_ms() const { return last_join_ms_; }

 private:
  std::int64_t since_ms_;
  std::int64_t first_not_before_ms_;
  std::optional<std::int64_t> enough_since_ms_;
  bool was_below_min_ = false;
  std::int64_t last_join_ms_ = 0;
  std::int64_t back_by_ms_ = 0;
};

}  // namespace elastic::coordinator
