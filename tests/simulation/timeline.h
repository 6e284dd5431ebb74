#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace elastic::simulation {

// Virtual milliseconds since the beginning of a simulation.
using Ms = std::int64_t;

// A function to be called once. A small one is stored inside the object: allocating memory for each took most of a
// simulation's time.
class Action {
 public:
  Action() = default;
  Action(std::nullptr_t) {}
  template <class Doing, class Kept = std::decay_t<Doing>>
  requires(!std::is_same_v<Kept, Action> && std::is_invocable_v<Kept&>) Action(Doing&& doing) : kind_(&kKind<Kept>) {
    if constexpr (fits<Kept>)
      new (room_) Kept(std::forward<Doing>(doing));
    else
      new (room_) Kept*(new Kept(std::forward<Doing>(doing)));
  }
  Action(Action&& other) noexcept { take(other); }
  Action& operator=(Action&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  ~Action() { drop(); }

  void operator()() { kind_->run(room_); }

 private:
  static constexpr std::size_t kRoom = 48;
  struct Kind {
    void (*run)(std::byte* room);
    void (*move)(std::byte* to, std::byte* from) noexcept;
    void (*drop)(std::byte* room) noexcept;
  };
  template <class Kept>
  static constexpr bool fits = sizeof(Kept) <= kRoom &&
                               alignof(Kept) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<Kept>;
  template <class Kept>
  static Kept& in(std::byte* room) {
    if constexpr (fits<Kept>)
      return *std::launder(reinterpret_cast<Kept*>(room));
    else
      return **std::launder(reinterpret_cast<Kept**>(room));
  }
  template <class Kept>
  static constexpr Kind kKind = {[](std::byte* room) { in<Kept>(room)(); },
                                 [](std::byte* to, std::byte* from) noexcept {
                                   if constexpr (fits<Kept>) {
                                     new (to) Kept(std::move(in<Kept>(from)));
                                     in<Kept>(from).~Kept();
                                   } else {
                                     new (to) Kept*(&in<Kept>(from));
                                   }
                                 },
                                 [](std::byte* room) noexcept {
                                   if constexpr (fits<Kept>)
                                     in<Kept>(room).~Kept();
                                   else
                                     delete &in<Kept>(room);
                                 }};

  void take(Action& other) noexcept {
    kind_ = std::exchange(other.kind_, nullptr);
    if (kind_ != nullptr) kind_->move(room_, other.room_);
  }
  void drop() noexcept {
    if (kind_ != nullptr) kind_->drop(room_);
    kind_ = nullptr;
  }

  const Kind* kind_ = nullptr;
  alignas(std::max_align_t) std::byte room_[kRoom];
};

// The actions that are planned, in the order of their time; actions of the same millisecond in the order in which they
// were planned.
class Timeline {
 public:
  Ms now_ms() const { return now_ms_; }
  void at(Ms when_ms, Action action);
  void after(Ms delay_ms, Action action) { at(now_ms_ + delay_ms, std::move(action)); }
  // Performs the next action; false if there is none.
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
  struct Later {
    bool operator()(const Entry& left, const Entry& right) const {
      return left.at_ms != right.at_ms ? left.at_ms > right.at_ms : left.order > right.order;
    }
  };

  Ms now_ms_ = 0;
  std::uint64_t planned_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<Entry> heap_;
  std::vector<Action> actions_;
  std::vector<std::uint32_t> free_;
};

// A node's clock, with a rate and an origin of its own.
class Clock {
 public:
  Clock() = default;
  // `error` is in parts of 10,000: with 100 the clock is 1 % fast.
  Clock(Ms offset_ms, int error) : offset_ms_(offset_ms), rate_(10'000 + error) {}
  Ms local(Ms true_ms) const { return offset_ms_ + true_ms * rate_ / 10'000; }
  // The first true millisecond at which the clock shows `local_ms`.
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
