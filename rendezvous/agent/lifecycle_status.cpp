// A node's status, for /status and /metrics.
#include "rendezvous/agent/lifecycle.h"

namespace elastic::agent {

using status::Activity;

Activity Lifecycle::activity() const {
  switch (state_) {
    case State::kIdle: return news_ && !news_->message.what.empty() ? Activity::kStandby : Activity::kWaiting;
    case State::kPreparing: return waited_for() == Waited::kCheck ? Activity::kChecking : Activity::kPreparing;
    case State::kRunning: return Activity::kRunning;
    case State::kSucceeded: return Activity::kSucceeded;
    case State::kStopping:
    case State::kEnding: return Activity::kStopping;
    case State::kEnded: return Activity::kEnded;
  }
  return Activity::kEnded;
}

status::Node Lifecycle::status() const {
  status::Node node{
      .name = settings_.address, .activity = activity(), .hosts_coordinator = settings_.hosts_coordinator};
  if (state_ == State::kSucceeded) node.waits_for = "its workers have succeeded; waiting for other nodes";
  round_.report(node);
  return node;
}

}  // namespace elastic::agent
