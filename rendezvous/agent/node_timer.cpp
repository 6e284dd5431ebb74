#include "rendezvous/agent/node_timer.h"

#include <algorithm>

#include "src/base/check.h"

namespace elastic::agent {

void NodeTimer::follow(const Effects& effects, std::int64_t now_ms) {
  for (const Effect& effect : effects) {
    if (const auto* started = std::get_if<StartTimer>(&effect)) {
      ELASTIC_CHECK(started->delay_ms >= 0);
      until_ms_ = now_ms + started->delay_ms;
    }
    if (std::holds_alternative<StopTimer>(effect)) until_ms_.reset();
  }
}

void NodeTimer::pause(std::int64_t now_ms, Effects& out) {
  if (!until_ms_) return;
  rest_ms_ = std::max<std::int64_t>(*until_ms_ - now_ms, 0);
  out.push_back(StopTimer{});
}

void NodeTimer::resume(Effects& out) {
  if (rest_ms_) out.push_back(StartTimer{*rest_ms_});
  rest_ms_.reset();
}

void NodeTimer::shorten(std::int64_t longest_ms, std::int64_t now_ms, Effects& out) const {
  if (until_ms_) out.push_back(StartTimer{std::clamp<std::int64_t>(*until_ms_ - now_ms, 0, longest_ms)});
}

}  // namespace elastic::agent
