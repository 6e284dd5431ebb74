#include "rendezvous/agent/node_waits.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::agent {

namespace {

// Two messages whose waits began less far apart speak of the same wait.
constexpr std::int64_t kSameWaitMs = 1000;

}  // namespace

void NodeWaits::follow(For what, bool idle, std::int64_t now_ms) {
  if (std::exchange(was_idle_, idle) != idle) idle_since_ms_ = now_ms;
  if (std::exchange(what_, what) != what) since_ms_ = now_ms;
  ELASTIC_CHECK(idle_since_ms_ <= now_ms && since_ms_ <= now_ms);
  ELASTIC_CHECK(!news_ || (news_->since_ms <= now_ms && news_->because_ms <= now_ms));
}

void NodeWaits::heard(const protocol::Awaiting& message, std::int64_t now_ms) {
  const auto bounded = [](std::int64_t ms) {
    return std::clamp<std::int64_t>(ms, 0, limits::kMaxTimeoutSeconds * 1000);
  };
  std::int64_t since_ms = now_ms - bounded(message.for_ms);
  // A message that was longer on its way than the one before does not begin the wait anew.
  if (news_ && std::max(news_->since_ms, since_ms) - std::min(news_->since_ms, since_ms) < kSameWaitMs) {
    since_ms = news_->since_ms;
  }
  news_ = News{
      .message = message, .since_ms = since_ms, .until_ms = {}, .because_ms = now_ms - bounded(message.because_ms)};
  if (message.left_ms) news_->until_ms = now_ms + bounded(*message.left_ms);
}

Waiting NodeWaits::for_round(const protocol::JobTerms& terms) const {
  if (stands_by()) {
    const std::string what = printable(news_->message.what);
    return {
        .what = what, .since_ms = idle_since_ms_, .until_ms = news_->until_ms, .advice = what, .advice_at_once = true};
  }
  if (news_) {
    const protocol::Awaiting& nodes = news_->message;
    const bool enough = nodes.here >= nodes.least;
    return {.what = enough
                        ? format("{} of {} nodes present", nodes.here, nodes.most)
                        : format("{} node{} present, {} needed", nodes.here, nodes.here == 1 ? "" : "s", nodes.least),
            .since_ms = news_->since_ms,
            .until_ms = news_->until_ms,
            .at_end = enough ? "starting" : "giving up",
            .because = printable(nodes.because),
            .because_ms = news_->because_ms,
            .for_others = true};
  }
  return {.what = format("waiting for the next round of {} nodes",
                         terms.min_nodes == terms.max_nodes ? format("{}", terms.min_nodes)
                                                            : format("{} to {}", terms.min_nodes, terms.max_nodes)),
          .since_ms = idle_since_ms_,
          .for_others = true};
}

}  // namespace elastic::agent
