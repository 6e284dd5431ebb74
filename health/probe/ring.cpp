#include "health/probe/ring.h"

#include <chrono>
#include <expected>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "health/probe/blocks.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::byte kReady{'r'};
constexpr std::byte kMore{'m'};
constexpr std::byte kEnd{'e'};

// A result, or that of an all-gather that failed.
template <class T>
using Done = std::expected<T, RingResult>;

class Ring {
 public:
  Ring(int previous, int next, const RingOrder& order, const RingSettings& settings, const Deadline& deadline)
      : previous_(previous),
        next_(next),
        order_(order),
        settings_(settings),
        deadline_(deadline),
        out_(settings.bytes / sizeof(std::uint64_t)),
        in_(out_.size()) {}

  Done<double> run() {
    const Deadline enough(settings_.enough_ms);
    std::vector<double> measured_ms;
    for (int repetition = 0;; ++repetition) {
      fill_block(out_, order_.place, repetition);
      const auto measured = static_cast<int>(measured_ms.size());
      const bool is_enough = measured >= settings_.repetitions || (measured > 0 && enough.has_passed());
      const Done<bool> goes_on = agree(is_enough);
      if (!goes_on) return std::unexpected(goes_on.error());
      if (!*goes_on) break;
      const Done<double> ms = gather(repetition);
      if (!ms) return std::unexpected(ms.error());
      if (repetition > 0) measured_ms.push_back(*ms);
    }
    if (measured_ms.empty()) return does_not_keep_to_it();
    return middle_of(std::move(measured_ms));
  }

 private:
  static std::unexpected<RingResult> by_others(const PairOrder& who, const std::string& why) {
    return std::unexpected(RingResult{.why_not = format("node {}: {}", who.with, why), .for_others = true});
  }
  std::unexpected<RingResult> does_not_keep_to_it() const {
    return std::unexpected(
        RingResult{.why_not = format("node {} violates the protocol of the test", order_.previous.with)});
  }

  Done<void> pass(std::span<const std::byte> out, std::span<std::byte> in) {
    using Where = TransferFailure::Where;
    const auto done = transfer(next_, out, previous_, in, deadline_);
    if (done) return {};
    const TransferFailure& failure = done.error();
    if (failure.where == Where::kSending) return by_others(order_.next, failure.why);
    if (failure.where == Where::kReceiving) return by_others(order_.previous, failure.why);
    return by_others(in.empty() ? order_.next : order_.previous,
                     format("it did not do its part within {}", deadline_.span()));
  }
  Done<void> send_byte(std::byte byte) { return pass({&byte, 1}, {}); }
  Done<std::byte> receive_byte() {
    std::byte byte{};
    if (auto done = pass({}, {&byte, 1}); !done) return std::unexpected(done.error());
    return byte;
  }

  // Returns whether there is one more all-gather. Only the leader decides; `is_enough` of the other members is ignored.
  Done<bool> agree(bool is_enough) {
    const bool leads = order_.place == 0;
    if (leads) {
      if (auto done = send_byte(kReady); !done) return std::unexpected(done.error());
    }
    const Done<std::byte> ready = receive_byte();
    if (!ready) return std::unexpected(ready.error());
    if (*ready != kReady) return does_not_keep_to_it();
    if (!leads) {
      if (auto done = send_byte(kReady); !done) return std::unexpected(done.error());
    }
    const Done<std::byte> word = leads ? (is_enough ? kEnd : kMore) : receive_byte();
    if (!word) return std::unexpected(word.error());
    if (*word != kMore && *word != kEnd) return does_not_keep_to_it();
    if (order_.place + 1 < order_.members) {
      if (auto done = send_byte(*word); !done) return std::unexpected(done.error());
    }
    return *word == kMore;
  }

  Done<double> gather(int repetition) {
    const Steady::time_point start = Steady::now();
    double ms = 0;
    for (int step = 1; step < order_.members; ++step) {
      auto done = pass(std::as_bytes(std::span(out_)), std::as_writable_bytes(std::span(in_)));
      if (!done) return std::unexpected(done.error());
      ms = std::chrono::duration<double, std::milli>(Steady::now() - start).count();
      if (repetition == 0 || step + 1 == order_.members) {
        const int of = (order_.place - step + order_.members) % order_.members;
        if (const std::size_t wrong = wrong_bytes(in_, of, repetition); wrong > 0) return came_out_wrong(wrong);
      }
      std::swap(out_, in_);
    }
    return ms;
  }
  std::unexpected<RingResult> came_out_wrong(std::size_t bytes) const {
    return std::unexpected(
        RingResult{.why_not = format("{} from node {} arrived wrong", counted(bytes, "byte"), order_.previous.with)});
  }

  int previous_;
  int next_;
  const RingOrder& order_;
  const RingSettings& settings_;
  const Deadline& deadline_;
  Block out_;
  Block in_;
};

}  // namespace

RingResult all_gather(int previous, int next, const RingOrder& order, const RingSettings& settings,
                      const Deadline& deadline) {
  ELASTIC_CHECK(order.members > 1 && order.place >= 0 && order.place < order.members);
  ELASTIC_CHECK(settings.repetitions > 0 && settings.bytes % sizeof(std::uint64_t) == 0);
  const Done<double> ms = Ring(previous, next, order, settings, deadline).run();
  return ms ? RingResult{.ms = *ms} : ms.error();
}

}  // namespace elastic::health
