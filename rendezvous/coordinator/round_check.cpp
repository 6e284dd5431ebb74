#include "rendezvous/coordinator/round_check.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using health::CheckRules;

RoundCheck::Orders RoundCheck::begin(const std::vector<health::CheckNode>& nodes, const health::CheckRules& rules,
                                     std::int64_t now_ms) {
  phase_ = 0;
  results_.clear();
  phase_ms_.clear();
  const bool is_checked = rules.when != health::CheckRules::When::kNever;
  phases_ = is_checked ? static_cast<std::uint32_t>(plan_->phases(nodes, rules)) : 0;
  return begin_phase(nodes, rules, now_ms);
}

RoundCheck::Orders RoundCheck::begin_phase(const std::vector<health::CheckNode>& nodes, const health::CheckRules& rules,
                                           std::int64_t now_ms) {
  if (!is_running()) return {};
  Orders orders = plan_->orders(phase_, nodes, results_, rules);
  ELASTIC_CHECK(orders.size() == nodes.size());
  results_.emplace_back(nodes.size());
  has_answered_.assign(nodes.size(), false);
  answers_ = 0;
  phase_began_ms_ = now_ms;
  return orders;
}

bool RoundCheck::answer(int node_rank, std::uint32_t phase, const std::string& result) {
  const auto rank = static_cast<std::size_t>(node_rank);
  if (!is_running() || phase != phase_ || has_answered_.at(rank)) return false;
  has_answered_[rank] = true;
  results_.back().at(rank) = result;
  return ++answers_ == has_answered_.size();
}

RoundCheck::Orders RoundCheck::next_phase(const std::vector<health::CheckNode>& nodes, const health::CheckRules& rules,
                                          std::int64_t now_ms) {
  ELASTIC_CHECK(is_running() && answers_ == nodes.size());
  ++phase_;
  phase_ms_.push_back(now_ms - phase_began_ms_);
  return begin_phase(nodes, rules, now_ms);
}

CheckJudged RoundCheck::judge(protocol::RoundNumber round, const std::vector<health::CheckNode>& nodes,
                              const health::CheckRules& rules) const {
  ELASTIC_CHECK(!is_running());
  return {round, nodes, results_, phase_ms_, plan_->unhealthy(nodes, results_), rules};
}

void RoundCheck::check_invariants() const {
  ELASTIC_CHECK(phase_ <= phases_);
  ELASTIC_CHECK(phase_ms_.size() == phase_);
  ELASTIC_CHECK(results_.size() == std::min(phase_ + 1, phases_));
  ELASTIC_CHECK(evicted_.size() <= limits::kNodesPerJob);
  if (!is_running()) return;
  // A phase ends with its last answer.
  ELASTIC_CHECK(results_.back().size() == nodes());
  const auto answered = static_cast<std::size_t>(std::ranges::count(has_answered_, true));
  ELASTIC_CHECK(answers_ == answered && answers_ < nodes());
}

void RoundCheck::evict_host(const std::string& host, Eviction why) {
  if (evicted_.size() < limits::kNodesPerJob) evicted_.emplace(host, why);
}

std::optional<Eviction> RoundCheck::eviction_of(const std::string& host) const {
  const auto found = evicted_.find(host);
  if (found == evicted_.end()) return {};
  return found->second;
}

std::vector<health::CheckNode> nodes_to_check(const Slots& slots, const membership::Roster& roster,
                                              const health::CheckRules& rules) {
  std::vector<health::CheckNode> nodes;
  if (rules.when == health::CheckRules::When::kNever) return nodes;
  for (const Slot& slot : slots) {
    const membership::Node& node = roster.at(slot.agent);
    nodes.push_back({node.address, node.shape.local_world_size, node.passed_check, node.addresses, node.group});
  }
  return nodes;
}

UnhealthyNode consequence_of(const health::CheckPlan::Unhealthy& found, const std::string& name,
                             const health::CheckRules& rules) {
  using Kind = health::CheckPlan::Unhealthy::Kind;
  const bool is_straggler = found.kind == Kind::kStraggler;
  if (found.kind == Kind::kLink) return {};
  if (is_straggler && !rules.excludes_stragglers) {
    return {.note = format("{} is a straggler, but stays in the job: {}", name, found.why)};
  }
  const char* doubt = found.kind == Kind::kUndetermined ? ", and whether it is at fault is undetermined" : "";
  return {.leaves = true,
          .evicts_host = found.kind != Kind::kUndetermined,
          .note = format("{} is excluded: {}", name, found.why),
          // These are DLRover's own lines, which tools grep for.
          .told = is_straggler
                      ? format("The node is a straggler and exits: {}", found.why)
                      : format("This node failed the node-check procedure(mat-mul + comm) before training{}: {}", doubt,
                               found.why),
          .because = format("{} is {}: {}", name, is_straggler ? "a straggler" : "unfit", found.why)};
}

CheckedAgain checked_again(const std::vector<protocol::WorkerFailure>& failures, const health::CheckRules& rules) {
  using When = health::CheckRules::When;
  if (rules.when == When::kAlways) return {.all = true};
  if (rules.when != When::kSuspect) return {};
  const auto first = std::ranges::find(failures, false, &protocol::WorkerFailure::stopped_by_us);
  if (first == failures.end()) return {};
  return {.slot = first->node_rank};
}

}  // namespace elastic::coordinator
