#include "src/job/coordinator.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::job {

using namespace protocol;

Coordinator::Coordinator(JobSettings settings)
    : settings_(settings), budget_(settings.max_restarts) {
  ELASTIC_CHECK(settings.nodes >= 1 && settings.max_restarts >= 0);
}

std::vector<Send> Coordinator::on_message(NodeId from, const AgentMessage& message) {
  Sends out;
  if (state_ == State::kEnded) return out;
  std::visit([&](const auto& known) { on(from, known, out); }, message);
  return out;
}

void Coordinator::on(NodeId from, const NodeJoins& message, Sends& out) {
  ELASTIC_CHECK(message.local_world_size >= 1);
  // One who comes when the round has formed waits outside; scaling up is decided elsewhere.
  if (state_ != State::kForming) return;
  nodes_[from].shape = {message.local_world_size, message.role};
  if (static_cast<int>(nodes_.size()) == settings_.nodes) prepare_round(out);
}

void Coordinator::on(NodeId, const StoreIsOpen& message, Sends& out) {
  if (!is_current(message.round) || state_ != State::kPreparing) return;
  state_ = State::kRunning;
  tell_all(RunWorkers{round_, message.endpoint}, out);
}

void Coordinator::on(NodeId, const WorkerFailed& message, Sends& out) {
  if (!is_current(message.round)) return;
  stop_round({StopCause::kWorkerFailure, {}}, out);
}

void Coordinator::on(NodeId from, const WorkersSucceeded& message, Sends& out) {
  if (!is_current(message.round) || state_ != State::kRunning) return;
  nodes_.at(from).succeeded = true;
  const bool all = std::all_of(nodes_.begin(), nodes_.end(),
                               [](const auto& node) { return node.second.succeeded; });
  if (all) end({.outcome = Verdict::Outcome::kSucceeded, .reason = {}, .failures = {}}, out);
}

void Coordinator::on(NodeId, const NodeCannotRun& message, Sends& out) {
  if (!is_current(message.round)) return;
  stop_round({StopCause::kCannotRun, message.reason}, out);
}

void Coordinator::on(NodeId from, const NodeStopped& message, Sends& out) {
  if (!is_current(message.round)) return;
  Node& node = nodes_.at(from);
  if (node.stopped) return;
  node.stopped = true;
  failures_.insert(failures_.end(), message.failures.begin(), message.failures.end());
  const bool all = std::all_of(nodes_.begin(), nodes_.end(),
                               [](const auto& entry) { return entry.second.stopped; });
  if (all && state_ == State::kStopping) after_stop(out);
}

void Coordinator::on(NodeId, const NodeLeaves& message, Sends& out) {
  // One node is the whole job today; with more, the others will go on without it.
  stop_round({StopCause::kSignal, format("stopped by {}", signal_name(message.signal)),
              message.signal},
             out);
}

void Coordinator::prepare_round(Sends& out) {
  std::vector<membership::NodeShape> shapes;
  for (auto& [id, node] : nodes_) {
    node.succeeded = false;
    node.stopped = false;
    shapes.push_back(node.shape);
  }
  const std::vector<NodePlace> places = membership::assign_places(shapes);
  const std::string reason = failures_.empty() ? "" : failures_.front().text();
  state_ = State::kPreparing;
  stopping_.reset();
  failures_.clear();
  std::size_t next = 0;
  for (const auto& [id, node] : nodes_) {
    out.push_back(
        {id, PrepareRound{round_, budget_.used(), budget_.limit(), places[next++], reason}});
  }
}

void Coordinator::stop_round(Stopping cause, Sends& out) {
  if (state_ == State::kStopping) {
    // Decided already; only an order from outside outranks a failure, and nothing outranks that.
    if (cause.cause > stopping_->cause) stopping_ = std::move(cause);
    return;
  }
  if (state_ == State::kForming) {
    end({.outcome = Verdict::Outcome::kStopped, .reason = cause.reason, .signal = cause.signal,
         .failures = {}},
        out);
    return;
  }
  state_ = State::kStopping;
  stopping_ = std::move(cause);
  tell_all(StopWorkers{round_, RestartScope::kJob}, out);
}

void Coordinator::after_stop(Sends& out) {
  // The first failure is the cause; what ended after the stop was ordered is its consequence.
  std::stable_sort(failures_.begin(), failures_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.stopped_by_us, a.wall_ms) < std::pair(b.stopped_by_us, b.wall_ms);
  });
  if (stopping_->cause == StopCause::kWorkerFailure && budget_.spend()) {
    ++round_;
    prepare_round(out);
    return;
  }
  Verdict verdict{.outcome = Verdict::Outcome::kFailed, .reason = stopping_->reason,
                  .failures = std::move(failures_)};
  if (stopping_->cause == StopCause::kSignal) {
    verdict.outcome = Verdict::Outcome::kStopped;
    verdict.signal = stopping_->signal;
  }
  end(std::move(verdict), out);
}

void Coordinator::end(Verdict verdict, Sends& out) {
  verdict.round = round_;
  verdict.restarts_used = budget_.used();
  state_ = State::kEnded;
  tell_all(EndJob{std::move(verdict)}, out);
}

void Coordinator::tell_all(const CoordinatorMessage& message, Sends& out) const {
  for (const auto& [id, node] : nodes_) out.push_back({id, message});
}

bool Coordinator::is_current(RoundNumber round) const {
  return round == round_ && state_ != State::kForming;
}

}  // namespace elastic::job
