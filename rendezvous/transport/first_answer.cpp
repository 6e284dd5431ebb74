#include "rendezvous/transport/first_answer.h"

#include <utility>

#include "src/base/limits.h"

namespace elastic::transport {
namespace {

constexpr std::int64_t kSilenceMs = 1'000;
// How long the server behind an entry that may be stale has to answer.
constexpr std::int64_t kFirstBytesMs = 2'500;

}  // namespace

void FirstAnswer::doubt(std::function<void()> on_silent) {
  frame_ = std::make_unique<protocol::FrameReader>();
  first_bytes_.start(kFirstBytesMs, std::move(on_silent));
}

void FirstAnswer::probe_if_silent(const Target& target, std::function<void(std::span<const std::uint8_t>)> on_store) {
  silence_.start(kSilenceMs, [this, target, on_store = std::move(on_store)] {
    probe_ = std::make_unique<StoreProbe>(loop_, target.address, target.port,
                                          [on_store] { on_store(StoreProbe::kFirstBytes); });
  });
}

std::optional<std::string> FirstAnswer::stranger_in(std::span<const std::uint8_t> bytes) {
  stop_probing();
  if (!frame_) return {};
  protocol::Bytes rest = bytes;
  const auto step = frame_->next(rest, limits::kAgentHelloBytes);
  if (step == protocol::FrameReader::Step::kStranger) return frame_->stranger();
  if (step != protocol::FrameReader::Step::kNeedMore) {
    believe();
    has_come_ = true;
  }
  return {};
}

void FirstAnswer::believe() {
  frame_.reset();
  first_bytes_.stop();
  has_come_ = false;
}

void FirstAnswer::stop_probing() {
  silence_.stop();
  probe_.reset();
}

}  // namespace elastic::transport
