#include "src/net/lingering_connections.h"

#include <algorithm>
#include <span>
#include <utility>

namespace elastic::net {
namespace {

constexpr std::int64_t kPatienceMs = 1000;

}  // namespace

void LingeringConnections::part(std::unique_ptr<Stream> stream) {
  stream->finish();
  const std::size_t untaken = stream->untaken_bytes();
  if (streams_.empty()) timer_.start(kPatienceMs, [this] { close_late(); });
  keep({std::move(stream), 0, loop_.now_ms() + most_ms_, untaken});
}

// Keeps the stream for another kPatienceMs from now on.
void LingeringConnections::keep(Parting parting) {
  const std::uint64_t id = next_id_++;
  parting.until_ms = loop_.now_ms() + kPatienceMs;
  Stream& stream = *parting.stream;
  streams_.emplace(id, std::move(parting));
  stream.start({.on_data = [](std::span<const std::uint8_t>) {}, .on_end = [this, id] { gone(id); }});
}

// A peer that has closed its side may still read.
void LingeringConnections::gone(std::uint64_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second.stream->unsent_bytes() > 0) return;
  streams_.erase(found);
  if (!streams_.empty()) return;
  timer_.stop();
  if (on_empty_) on_empty_();
}

void LingeringConnections::close_late() {
  while (!streams_.empty() && streams_.begin()->second.until_ms <= loop_.now_ms()) {
    Parting late = std::move(streams_.begin()->second);
    streams_.erase(streams_.begin());
    const std::size_t before = std::exchange(late.untaken, late.stream->untaken_bytes());
    const bool gets_on = late.untaken > 0 && late.untaken < before;
    if (gets_on && loop_.now_ms() < late.at_most_until_ms) keep(std::move(late));
  }
  if (!streams_.empty()) {
    const std::int64_t left_ms = streams_.begin()->second.until_ms - loop_.now_ms();
    return timer_.start(std::max<std::int64_t>(left_ms, 0), [this] { close_late(); });
  }
  if (on_empty_) on_empty_();
}

}  // namespace elastic::net
