#include "src/net/partings.h"

#include <algorithm>
#include <span>
#include <utility>

namespace elastic::net {
namespace {

constexpr std::int64_t kPatienceMs = 1000;

}  // namespace

void Partings::part(std::unique_ptr<Stream> stream) {
  const std::uint64_t id = next_id_++;
  stream->finish();
  stream->start({.on_data = [](std::span<const std::uint8_t>) {}, .on_end = [this, id] { gone(id); }});
  if (streams_.empty()) timer_.start(kPatienceMs, [this] { close_late(); });
  streams_.emplace(id, Parting{std::move(stream), loop_.now_ms() + kPatienceMs});
}

// Who says no more may still listen.
void Partings::gone(std::uint64_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second.stream->unsent_bytes() > 0) return;
  streams_.erase(found);
  if (!streams_.empty()) return;
  timer_.stop();
  if (on_empty_) on_empty_();
}

void Partings::close_late() {
  while (!streams_.empty() && streams_.begin()->second.until_ms <= loop_.now_ms()) streams_.erase(streams_.begin());
  if (!streams_.empty()) {
    const std::int64_t left_ms = streams_.begin()->second.until_ms - loop_.now_ms();
    return timer_.start(std::max<std::int64_t>(left_ms, 0), [this] { close_late(); });
  }
  if (on_empty_) on_empty_();
}

}  // namespace elastic::net
