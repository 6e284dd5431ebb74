// What a node waits for, in words for the user.

#include <algorithm>

#include "rendezvous/agent/lifecycle.h"
#include "src/base/limits.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::agent {

namespace {

// Two messages that put the beginning of a wait less far apart speak of the same wait.
constexpr std::int64_t kSameWaitMs = 1000;

}  // namespace

std::optional<Waiting> Lifecycle::waiting() const {
  const Waited waited = waited_for();
  if (waited == Waited::kNothing) return {};
  const bool preparing = waited == Waited::kLogs || waited == Waited::kCheck;
  Waiting out = preparing ? preparation_.waiting().value() : sweep_.waiting(why_stopping(), round_.who_is_left());
  out.since_ms = waited_since_ms_;
  if (waited != Waited::kCheck) out.until_ms = timer_.until_ms();
  if (waited == Waited::kEnd) leaving_.explain(out);
  return out;
}

void Lifecycle::on(const protocol::Awaiting& message, std::int64_t now_ms, Effects&) {
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

std::optional<Waiting> Lifecycle::waiting_for_round() const {
  if (state_ != State::kIdle) return {};
  if (news_ && !news_->message.what.empty()) {
    return Waiting{.what = printable(news_->message.what), .since_ms = idle_since_ms_, .until_ms = news_->until_ms};
  }
  if (news_) {
    const protocol::Awaiting& nodes = news_->message;
    const bool enough = nodes.here >= nodes.least;
    return Waiting{
        .what = enough ? format("{} of {} nodes present", nodes.here, nodes.most)
                       : format("{} node{} present, {} needed", nodes.here, nodes.here == 1 ? "" : "s", nodes.least),
        .since_ms = news_->since_ms,
        .until_ms = news_->until_ms,
        .at_end = enough ? "starting" : "giving up",
        .because = printable(nodes.because),
        .because_ms = news_->because_ms,
        .for_others = true};
  }
  const protocol::JobTerms& terms = settings_.terms;
  return Waiting{
      .what = format("waiting for the next round of {} nodes",
                     terms.min_nodes == terms.max_nodes ? format("{}", terms.min_nodes)
                                                        : format("{} to {}", terms.min_nodes, terms.max_nodes)),
      .since_ms = idle_since_ms_,
      .for_others = true};
}

Lifecycle::Waited Lifecycle::waited_for() const {
  if (state_ == State::kPreparing && preparation_.awaits_logs()) return Waited::kLogs;
  if (state_ == State::kPreparing && preparation_.checks()) return Waited::kCheck;
  const bool sweeping = state_ == State::kStopping || (state_ == State::kEnding && !nothing_left_);
  if (!sweeping || lingers_ != Lingers::kNot || awaiting_background_) return Waited::kNothing;
  return sweep_.has_killed() ? Waited::kDeath : Waited::kEnd;
}

std::string Lifecycle::why_stopping() const {
  if (leaving_.told()) return format("stopping on {}", signal_name(leaving_.signal()));
  if (round_.cause() != nullptr) return format("rank {} failed", round_.cause()->rank);
  return state_ == State::kEnding ? "all workers have ended" : "stopping";
}

}  // namespace elastic::agent
