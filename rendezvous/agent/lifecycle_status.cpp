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
  if (round_.membership == 0) return node;  // no round yet
  node.round = round_.round;
  node.node_rank = round_.place.node_rank;
  node.node_count = round_.place.node_count;
  node.world_size = round_.place.world_size;
  node.restart_count = round_.restart_count;
  node.max_restarts = round_.max_restarts;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const int local_rank = static_cast<int>(i);
    node.workers.push_back({.local_rank = local_rank,
                            .rank = round_.place.base_rank + local_rank,
                            .pid = workers_[i].pid,
                            .running = workers_[i].pid != 0 && !workers_[i].exited});
  }
  return node;
}

}  // namespace elastic::agent
