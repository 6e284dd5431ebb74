#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace elastic::simulation {

// Virtual milliseconds since the beginning of a world.
using Ms = std::int64_t;

// What is going to happen, in the order of its time; what happens at the same millisecond, in the order in
// which it was planned.
class Timeline {
 public:
  using Action = std::function<void()>;

  Ms now_ms() const { return now_ms_; }
  void at(Ms when_ms, Action action);
  void after(Ms delay_ms, Action action) { at(now_ms_ + delay_ms, std::move(action)); }
  // Lets the next thing happen; false if there is none.
  bool step();
  std::uint64_t steps() const { return steps_; }
  bool empty() const { return heap_.empty(); }
  Ms next_ms() const { return heap_.front().at_ms; }

 private:
  struct Entry {
    Ms at_ms;
    std::uint64_t order;
    std::uint32_t slot;
  };
  static bool later(const Entry& left, const Entry& right) {
    return left.at_ms != right.at_ms ? left.at_ms > right.at_ms : left.order > right.order;
  }

  Ms now_ms_ = 0;
  std::uint64_t planned_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<Entry> heap_;
  std::vector<Action> actions_;
  std::vector<std::uint32_t> free_;
};

// A node's clock, which runs at a rate of its own and began at another time.
class Clock {
 public:
  Clock() = default;
  // `error` in parts of 10,000: 100 is 1 % fast.
  Clock(Ms offset_ms, int error) : offset_ms_(offset_ms), rate_(10'000 + error) {}
  Ms local(Ms true_ms) const { return offset_ms_ + true_ms * rate_ / 10'000; }
  // The first true millisecond at which it shows so much.
  Ms when_shows(Ms local_ms) const {
    Ms at = (local_ms - offset_ms_) * 10'000 / rate_ - 1;
    if (at < 0) at = 0;
    while (local(at) < local_ms) ++at;
    return at;
  }

 private:
  Ms offset_ms_ = 0;
  Ms rate_ = 10'000;
};

}  // namespace elastic::simulation
