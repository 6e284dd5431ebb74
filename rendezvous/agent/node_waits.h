#pragma once

#include <cstdint>
#include <optional>

#include "rendezvous/protocol/messages.h"
#include "src/base/waiting.h"

namespace elastic::agent {

// Since when a node waits, and what the coordinator has said that an idle node waits for. Times are milliseconds of the
// clock of Lifecycle::on_event.
class NodeWaits {
 public:
  // What a node waits for itself.
  enum class For {
    kNothing,
    kLogs,   // the log files of the round that is prepared
    kCheck,  // the check before training
    kEnd,    // processes that were told to end
    kDeath,  // processes that got SIGKILL
  };

  // Called after each event: what the node waits for now, and whether it is idle. No wait begins in the future, so that
  // `now_ms` is never less than in the call before.
  void follow(For what, bool idle, std::int64_t now_ms);
  // Since when the node waits for what follow() was last told.
  std::int64_t since_ms() const { return since_ms_; }

  // The coordinator says what an idle node waits for. Whatever times the message has, the wait begins by now and ends
  // not before now.
  void heard(const protocol::Awaiting& message, std::int64_t now_ms);
  // What the coordinator has said holds no longer: a round is prepared, or there is no session with it.
  void forget_news() { news_.reset(); }
  // The coordinator has said that the node is in no round although there is one.
  bool stands_by() const { return news_ && !news_->message.what.empty(); }
  // What an idle node waits for, in words. Before the coordinator says more, the `terms` of the job do.
  Waiting for_round(const protocol::JobTerms& terms) const;

 private:
  struct News {
    protocol::Awaiting message;
    std::int64_t since_ms = 0;
    std::optional<std::int64_t> until_ms;
    std::int64_t because_ms = 0;
  };

  For what_ = For::kNothing;
  bool was_idle_ = false;
  std::int64_t since_ms_ = 0;
  std::int64_t idle_since_ms_ = 0;
  std::optional<News> news_;
};

}  // namespace elastic::agent
