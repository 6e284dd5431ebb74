#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace elastic::election {

// The time until which a coordinator may act for its jobs: grant leases, form and run rounds, end a job. A coordinator
// that no other one can replace (on the endpoint's host, or in a job of one node) may always act. One that has the
// votes of a quorum may act until a time by its own clock, and no other coordinator acts before that time. Times are
// milliseconds of a clock that goes on while the machine is suspended.
class Authority {
 public:
  static constexpr Authority always() { return Authority(kAlways); }
  static constexpr Authority none() { return Authority(kNone); }
  static constexpr Authority until(std::int64_t end_ms) { return Authority(end_ms); }

  bool holds(std::int64_t now_ms) const { return now_ms < end_ms_; }
  // When it ends; empty if it does not end.
  std::optional<std::int64_t> ends_ms() const { return end_ms_ == kAlways ? std::nullopt : std::optional(end_ms_); }
  // How long a lease that is granted now may last by another node's clock, which may run slower by 1 %; empty if there
  // is no limit.
  std::optional<std::int64_t> good_for_ms(std::int64_t now_ms) const {
    if (end_ms_ == kAlways) return {};
    const std::int64_t left_ms = holds(now_ms) ? end_ms_ - now_ms : 0;
    return left_ms - (left_ms + 99) / 100;
  }

  bool operator==(const Authority&) const = default;

 private:
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  explicit constexpr Authority(std::int64_t end_ms) : end_ms_(end_ms) {}

  std::int64_t end_ms_;
};

}  // namespace elastic::election
