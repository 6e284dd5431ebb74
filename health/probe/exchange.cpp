#include "health/probe/exchange.h"

#include <chrono>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "health/probe/blocks.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

using Steady = std::chrono::steady_clock;

constexpr int kRoundTrips = 20;
constexpr std::byte kPing{'p'};
constexpr std::byte kReady{'r'};
constexpr std::byte kMore{'m'};
constexpr std::byte kEnd{'e'};

std::int64_t wall_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

double ms_since(Steady::time_point start) {
  return std::chrono::duration<double, std::milli>(Steady::now() - start).count();
}

// One test over one connection.
class Exchange {
 public:
  Exchange(int socket, int rank, int peer, const ExchangeSettings& settings, const Deadline& deadline)
      : socket_(socket),
        rank_(rank),
        peer_(peer),
        settings_(settings),
        deadline_(deadline),
        out_(settings.bytes / sizeof(std::uint64_t)),
        in_(out_.size()) {}

  Attempt<ExchangeFigures> run() {
    const bool leads = rank_ < peer_;
    for (const bool asks : {leads, !leads}) {
      if (auto done = asks ? ask_clock() : tell_clock(); !done) return std::unexpected(done.error());
    }
    const Deadline enough(settings_.enough_ms);
    std::vector<double> measured_ms;
    for (int repetition = 0;; ++repetition) {
      fill_block(out_, rank_, repetition);
      const auto measured = static_cast<int>(measured_ms.size());
      const bool is_enough = measured >= settings_.repetitions || (measured > 0 && enough.has_passed());
      const Attempt<bool> goes_on = leads ? lead(is_enough) : follow();
      if (!goes_on) return std::unexpected(goes_on.error());
      if (!*goes_on) break;
      const Attempt<double> ms = exchange_blocks(repetition);
      if (!ms) return std::unexpected(ms.error());
      if (repetition > 0) measured_ms.push_back(*ms);
    }
    if (measured_ms.empty()) return std::unexpected("it ended the exchange before anything was measured");
    figures_.ms = middle_of(std::move(measured_ms));
    return figures_;
  }

 private:
  Attempt<void> transfer(std::span<const std::byte> out, std::span<std::byte> in) {
    if (auto done = health::transfer(socket_, out, socket_, in, deadline_); !done) {
      if (!done.error().why.empty()) return std::unexpected(std::move(done.error().why));
      return std::unexpected(format("the exchange did not end within {}", deadline_.span()));
    }
    return {};
  }
  Attempt<void> send_byte(std::byte byte) { return transfer({&byte, 1}, {}); }
  Attempt<std::byte> receive_byte() {
    std::byte byte{};
    if (auto done = transfer({}, {&byte, 1}); !done) return std::unexpected(done.error());
    return byte;
  }

  Attempt<void> ask_clock() {
    double least_us = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kRoundTrips; ++i) {
      const std::int64_t ours_ns = wall_clock_ns();
      const Steady::time_point start = Steady::now();
      std::int64_t theirs_ns = 0;
      auto done = send_byte(kPing);
      if (done) done = transfer({}, std::as_writable_bytes(std::span(&theirs_ns, 1)));
      if (!done) return done;
      const double us = ms_since(start) * 1e3;
      if (us >= least_us) continue;
      least_us = us;
      figures_.latency_us = us / 2;
      // This assumes that the answer was sent in the middle of the round trip, which is the more exact the shorter it
      // is.
      figures_.clock_ms = static_cast<double>(theirs_ns - ours_ns) / 1e6 - us / 2e3;
    }
    return {};
  }
  Attempt<void> tell_clock() {
    for (int i = 0; i < kRoundTrips; ++i) {
      if (auto ping = receive_byte(); !ping) return std::unexpected(ping.error());
      const std::int64_t now_ns = wall_clock_ns();
      if (auto done = transfer(std::as_bytes(std::span(&now_ns, 1)), {}); !done) return done;
    }
    return {};
  }

  // Returns whether there is one more exchange. The follower is ready only after it has verified the last one.
  Attempt<bool> lead(bool is_enough) {
    if (auto ready = receive_byte(); !ready) return std::unexpected(ready.error());
    if (auto done = send_byte(is_enough ? kEnd : kMore); !done) return std::unexpected(done.error());
    return !is_enough;
  }
  Attempt<bool> follow() {
    if (auto done = send_byte(kReady); !done) return std::unexpected(done.error());
    const Attempt<std::byte> word = receive_byte();
    if (!word) return std::unexpected(word.error());
    if (*word != kMore && *word != kEnd) return std::unexpected("it violates the protocol of the test");
    return *word == kMore;
  }

  Attempt<double> exchange_blocks(int repetition) {
    const Steady::time_point start = Steady::now();
    auto done = transfer(std::as_bytes(std::span(out_)), std::as_writable_bytes(std::span(in_)));
    if (!done) return std::unexpected(done.error());
    const double ms = ms_since(start);
    const std::size_t wrong = wrong_bytes(in_, peer_, repetition);
    if (wrong == 0) return ms;
    return std::unexpected(format("{} of the exchange arrived wrong", counted(wrong, "byte")));
  }

  int socket_;
  int rank_;
  int peer_;
  const ExchangeSettings& settings_;
  const Deadline& deadline_;
  Block out_;
  Block in_;
  ExchangeFigures figures_;
};

}  // namespace

Attempt<ExchangeFigures> exchange(int socket, int rank, int peer, const ExchangeSettings& settings,
                                  const Deadline& deadline) {
  ELASTIC_CHECK(rank != peer && settings.repetitions > 0 && settings.bytes % sizeof(std::uint64_t) == 0);
  return Exchange(socket, rank, peer, settings, deadline).run();
}

}  // namespace elastic::health
