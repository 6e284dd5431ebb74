#pragma once

#include <cstddef>

namespace elastic {

// Says when a check that visits all of `size` things is due again. It is due so seldom that at most kThingsPerEvent
// things are visited for each event, on average: after each event where there are few things, and after every
// thousandth where there are a thousand times as many. It counts events, so that the same events are checked in every
// run.
template <std::size_t kThingsPerEvent>
class CheckPace {
 public:
  // To be called once for each event.
  bool is_due(std::size_t size) {
    if (++events_ * kThingsPerEvent < size) return false;
    events_ = 0;
    return true;
  }

 private:
  std::size_t events_ = 0;  // since the last check
};

}  // namespace elastic
