#include "rendezvous/coordinator/job_ending.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"

namespace elastic::coordinator {

using membership::Node;

void JobEnding::begin(protocol::JobResult job_result, std::int64_t now_ms) {
  job_result_ = std::move(job_result);
  heard_.clear();
  details_until_ms_ = now_ms + protocol::kDetailsMs;
}

void JobEnding::stay_until(std::int64_t until_ms) { not_before_ms_ = std::max(not_before_ms_, until_ms); }

void JobEnding::has_heard(protocol::AgentId node, const std::string& details) {
  // A node that has heard another job result before may have details of that one's failure.
  const bool has_failed = job_result_ && job_result_->outcome == Outcome::kFailed;
  if (details_.empty() && has_failed) details_ = details;
  if (details_from_ == node) details_from_.reset();
  heard_.insert(node);
}

void JobEnding::has_gone(const Node& node, const Slots& slots, std::int64_t back_by_ms) {
  if (heard_.erase(node.agent) > 0) return;
  if (is_where_it_failed(node, slots)) details_from_ = node.agent;
  // A node without workers has nothing to report: it need not have the job result.
  if (node.member_state() != membership::MemberState::kReady) stay_until(back_by_ms);
}

void JobEnding::check_invariants(const membership::Roster& roster) const {
  ELASTIC_CHECK(job_result_ || heard_.empty());
  for (const protocol::AgentId node : heard_) ELASTIC_CHECK(roster.nodes().contains(node));
}

bool JobEnding::is_where_it_failed(const Node& node, const Slots& slots) const {
  if (!job_result_ || job_result_->outcome != Outcome::kFailed) return false;
  const auto first = std::ranges::find(job_result_->failures, false, &protocol::WorkerFailure::stopped_by_us);
  return first != job_result_->failures.end() && first->node_rank == node.place.node_rank &&
         has_slot(slots, node.agent);
}

JobEnding::Decision JobEnding::decide(std::size_t nodes, std::int64_t caught_up_ms, std::int64_t now_ms) const {
  if (heard_.size() < nodes) return {};
  const std::int64_t until_ms = not_before_ms_ > 0 ? std::max(not_before_ms_, caught_up_ms) : now_ms;
  if (now_ms < until_ms) return {.look_again_ms = until_ms};
  if (details_from_ && now_ms < details_until_ms_) return {.look_again_ms = details_until_ms_};
  return {.is_over = true};
}

}  // namespace elastic::coordinator
