#include "rendezvous/coordinator/waiting_news.h"

#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::coordinator {

namespace {

// How long a change is held back before nodes are told of it.
constexpr std::int64_t kHeldBackMs = 1000;
// So many nodes that have gone are remembered: more than some_of() names, since some of them come back.
constexpr std::size_t kGoneKept = 8;

}  // namespace

void WaitingNews::has_gone(protocol::AgentId node, std::string text, std::int64_t now_ms) {
  is_back(node);
  if (gone_.size() < kGoneKept) gone_.push_back({node, std::move(text), now_ms});
}

void WaitingNews::is_back(protocol::AgentId node) {
  std::erase_if(gone_, [&](const Gone& gone) { return gone.node == node; });
}

void WaitingNews::round_has_formed() {
  told_.reset();
  tell_at_ms_.reset();
  gone_.clear();
}

WaitingNews::Due WaitingNews::news_due(News news, std::size_t waiting, std::uint64_t arrivals, std::int64_t now_ms) {
  Told next{.news = std::move(news)};
  if (next.news.names_gone && !gone_.empty()) {
    std::vector<std::string> names;
    for (const Gone& gone : gone_) names.push_back(gone.text);
    next.because = some_of(names);
    next.because_at_ms = gone_.back().at_ms;
  }
  const bool is_known = next == told_;
  if (waiting == 0 || (is_known && arrivals == told_arrivals_)) {
    tell_at_ms_.reset();
    return {};
  }
  if (!tell_at_ms_) tell_at_ms_ = now_ms + kHeldBackMs;
  if (now_ms < *tell_at_ms_) return {.look_again_ms = tell_at_ms_};
  tell_at_ms_.reset();
  protocol::Awaiting message{.here = next.news.here,
                             .least = next.news.least,
                             .most = next.news.most,
                             .what = next.news.what,
                             .because = next.because};
  if (!next.because.empty()) message.because_ms = now_ms - next.because_at_ms;
  if (next.news.since_ms) message.for_ms = now_ms - *next.news.since_ms;
  if (next.news.until_ms) message.left_ms = *next.news.until_ms - now_ms;
  Due due{.message = std::move(message), .from_arrival = is_known ? told_arrivals_ : 0};
  told_ = std::move(next);
  told_arrivals_ = arrivals;
  return due;
}

void WaitingNews::check_invariants(std::uint64_t arrivals) const {
  ELASTIC_CHECK(gone_.size() <= kGoneKept);
  ELASTIC_CHECK(told_arrivals_ <= arrivals);
}

}  // namespace elastic::coordinator
