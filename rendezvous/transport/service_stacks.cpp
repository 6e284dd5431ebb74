// Stacks of a job's workers: which job is meant, which nodes its desk asks, and who gets the answer.
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/transport/service.h"

namespace elastic::transport {

using namespace coordinator;

void Service::on_stacks_asked(const StacksAsked& event, ServiceEffects& out) {
  const auto refuse = [&](OrderAnswered answer) {
    out.push_back(StacksAnswered{{event.ticket}, answer.kind, std::move(answer.text)});
  };
  auto job = job_of(event.job);
  if (!job) return refuse(std::move(job.error()));
  StacksDesk& desk = stacks_.try_emplace(*job, *job).first->second;
  perform(*job, desk.asks(event.ticket, nodes_of(*job), now_ms_), out);
}

StacksDesk::Nodes Service::nodes_of(const std::string& job) const {
  return [this, job] {
    const Coordinator* coordinator = find(job);
    auto nodes = coordinator != nullptr ? nodes_with_stacks(coordinator->roster()) : std::vector<StacksDesk::Node>();
    if (nodes.size() == 1 && settings_.name_of_only_node) nodes.front().name = settings_.name_of_only_node();
    return nodes;
  };
}

void Service::perform(const std::string& job, StacksDesk::Step step, ServiceEffects& out) {
  for (const protocol::NodeId session : step.asked) {
    const auto found = connections_.find(session);
    if (found == connections_.end()) continue;
    protocol::ByteString bytes;
    found->second.session.send(step.wanted, bytes);
    if (!bytes.empty()) out.push_back(Write{session, std::move(bytes)});
  }
  if (!step.note.empty()) out.push_back(Log{job, std::move(step.note), kStacksCollected});
  if (!step.answered.empty()) {
    out.push_back(StacksAnswered{std::move(step.answered), OrderAnswered::Kind::kAccepted, std::move(step.document)});
  }
}

// Sessions that have ended, times that have come, and jobs that are over.
void Service::go_on_with_stacks(ServiceEffects& out) {
  for (const auto& [job, session] : std::exchange(gone_, {})) {
    const auto desk = stacks_.find(job);
    if (desk != stacks_.end()) perform(job, desk->second.has_gone(session, now_ms_), out);
  }
  for (auto at = stacks_.begin(); at != stacks_.end();) {
    auto& [job, desk] = *at;
    if (jobs_.contains(job)) {
      perform(job, desk.time_passes(nodes_of(job), now_ms_), out);
      ++at;
      continue;
    }
    if (!desk.tickets().empty()) {
      out.push_back(StacksAnswered{desk.tickets(), OrderAnswered::Kind::kUnknown, "the job has ended"});
    }
    at = stacks_.erase(at);
  }
}

}  // namespace elastic::transport
