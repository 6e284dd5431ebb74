// What a node does and waits for: for /status and /metrics, and in words for the user.
#include <algorithm>

#include "rendezvous/agent/lifecycle.h"
#include "src/base/text.h"

namespace elastic::agent {

using For = NodeWaits::For;

NodeActivity Lifecycle::activity() const {
  switch (state_) {
    case State::kIdle: return waits_.stands_by() ? NodeActivity::kStandby : NodeActivity::kWaiting;
    case State::kPreparing: return waits_for() == For::kCheck ? NodeActivity::kChecking : NodeActivity::kPreparing;
    case State::kRunning: return NodeActivity::kRunning;
    case State::kSucceeded: return NodeActivity::kSucceeded;
    case State::kStopping:
    case State::kEnding: return NodeActivity::kStopping;
    case State::kEnded: return NodeActivity::kEnded;
  }
  return NodeActivity::kEnded;
}

status::Node Lifecycle::status() const {
  status::Node node{
      .name = settings_.address, .activity = activity(), .hosts_coordinator = settings_.hosts_coordinator};
  if (node.activity == NodeActivity::kSucceeded) node.waits_for = "its workers have succeeded; waiting for other nodes";
  round_.report(node);
  return node;
}

std::optional<Waiting> Lifecycle::waiting() const {
  const For what = waits_for();
  if (what == For::kNothing) return {};
  const bool preparing = what == For::kLogs || what == For::kCheck;
  Waiting out = preparing ? preparation_.waiting().value() : kill_ladder_.waiting(why_stopping(), round_.who_is_left());
  out.since_ms = waits_.since_ms();
  if (what != For::kCheck) out.until_ms = timer_.until_ms();
  if (what == For::kEnd) leaving_.explain(out);
  return out;
}

std::optional<Waiting> Lifecycle::waiting_for_round() const {
  if (!is_idle()) return {};
  return waits_.for_round(settings_.terms);
}

void Lifecycle::note_awaited(const protocol::Awaiting& message, Effects&) { waits_.heard(message, now_ms_); }

// Progress is worth nothing later: without a session the link drops it.
void Lifecycle::progress_made(const ProgressMade& event, Effects& out) {
  if (event.progress.round == round_.number()) out.push_back(ToCoordinator{event.progress});
}

void Lifecycle::loader_said(const LoaderSaid& event, Effects& out) {
  if (event.says.round == round_.number()) out.push_back(ToCoordinator{event.says});
}

// How the round has ended elsewhere may be told when this node's workers are gone already.
void Lifecycle::hear_loader(const protocol::LoaderTold& message, Effects& out) {
  if (message.round == round_.number()) out.push_back(HearLoader{message});
}

void Lifecycle::collect_stacks(const protocol::StacksWanted& message, Effects& out) {
  status::Node node;
  round_.report(node);
  if (std::ranges::any_of(node.workers, &status::Worker::running)) {
    return out.push_back(CollectStacks{message.collection});
  }
  out.push_back(ToCoordinator{
      protocol::NodeStacks{.collection = message.collection, .groups = "", .problem = "it has no workers now"}});
}

// Like progress, stacks are worth nothing later.
void Lifecycle::stacks_collected(const StacksCollected& event, Effects& out) {
  out.push_back(ToCoordinator{event.told});
}

NodeWaits::For Lifecycle::waits_for() const {
  if (state_ == State::kPreparing) {
    if (preparation_.awaits_logs()) return For::kLogs;
    return preparation_.checks() ? For::kCheck : For::kNothing;
  }
  if (!ends_processes() || awaits_ != Awaits::kNothing) return For::kNothing;
  return kill_ladder_.has_killed() ? For::kDeath : For::kEnd;
}

std::string Lifecycle::why_stopping() const {
  if (leaving_.has_come()) return format("stopping on {}", leaving_.name());
  if (round_.cause() != nullptr) return format("rank {} failed", round_.cause()->rank);
  if (const auto spared = early_.spared()) return format("rank {} has written an error file", base_rank() + *spared);
  return job_result_ ? "all workers have ended" : "stopping";
}

}  // namespace elastic::agent
