// The check before a round's workers run: its phases, and which nodes are excluded for its results.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_notes.h"
#include "rendezvous/coordinator/coordinator_refusals.h"
#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using membership::Node;
using membership::Standing;

std::vector<CheckNode> Coordinator::nodes_to_check() const {
  std::vector<CheckNode> nodes;
  for (const Seat& seat : seats_) {
    const Node& node = roster_.nodes().at(seat.agent);
    nodes.push_back({node.address, node.shape.local_world_size, node.passed_check, node.addresses, node.group});
  }
  return nodes;
}

void Coordinator::begin_check_phase(Effects& out) {
  std::vector<std::string> orders = check_->orders(check_phase_, nodes_to_check(), check_results_, check_rules_);
  ELASTIC_CHECK(orders.size() == seats_.size());
  check_results_.emplace_back(seats_.size());
  check_phase_began_ms_ = now_ms_;
  reported_ = 0;
  for (std::size_t rank = 0; rank < seats_.size(); ++rank) {
    Node& node = *roster_.find(seats_[rank].agent);
    node.reported = false;
    out.push_back(Send{*node.session, RunCheck{*round_, check_phase_, std::move(orders[rank])}});
  }
}

void Coordinator::end_check_phase(Effects& out) {
  ++check_phase_;
  check_phase_ms_.push_back(now_ms_ - check_phase_began_ms_);
  if (check_phase_ < check_phases_) return begin_check_phase(out);
  const std::vector<CheckPlan::Unfit> unfit = check_->unfit(nodes_to_check(), check_results_);
  out.push_back(CheckJudged{*round_, nodes_to_check(), check_results_, check_phase_ms_, unfit, check_rules_});
  if (check_rules_.only) return end_with_check(unfit, out);
  for (const Seat& seat : seats_) roster_.find(seat.agent)->passed_check = true;
  for (const CheckPlan::Unfit& found : unfit) leave_out(found, out);
  if (stopping_.other.empty()) return run_if_ready(out);
  stop_round(out);
}

// Ends a job that was started with --check-only.
void Coordinator::end_with_check(const std::vector<CheckPlan::Unfit>& unfit, Effects& out) {
  std::vector<std::string> flaws;
  for (const CheckPlan::Unfit& found : unfit) {
    const Node& node = *roster_.find(seats_.at(static_cast<std::size_t>(found.node_rank)).agent);
    flaws.push_back(format("{}: {}", node.name(), found.why));
    if (found.kind != CheckPlan::Unfit::Kind::kLink)
      out.push_back(node_is_unfit(node, format("{} is unfit: {}", node.name(), found.why), found.why));
  }
  stopping_.job_ends = true;
  stopping_.outcome = unfit.empty() ? Outcome::kSucceeded : Outcome::kFailed;
  if (!unfit.empty()) stopping_.fatal = format("{}: {}", kFoundUnfit, some_of(flaws));
  stop_round(out);
}

void Coordinator::leave_out(const CheckPlan::Unfit& found, Effects& out) {
  using Kind = CheckPlan::Unfit::Kind;
  Node& node = *roster_.find(seats_.at(static_cast<std::size_t>(found.node_rank)).agent);
  if (found.kind == Kind::kLink) return;
  if (found.kind == Kind::kStraggler && !check_rules_.excludes_stragglers) {
    out.push_back(Note{format("{} is a straggler, but stays in the job: {}", node.name(), found.why)});
    return;
  }
  node.passed_check = false;
  // These are DLRover's own lines, which tools grep for.
  node.unfit =
      found.kind == Kind::kStraggler
          ? format("The node is a straggler and exits: {}", found.why)
          : format("This node failed the node-check procedure(mat-mul + comm) before training{}: {}",
                   found.kind == Kind::kUndetermined ? ", and whether it is at fault is undetermined" : "", found.why);
  // An undetermined node may be good, and may try again.
  if (found.kind != Kind::kUndetermined && excluded_.size() < limits::kNodesPerJob) excluded_.insert(node.identity());
  out.push_back(node_is_unfit(node, format("{} is excluded: {}", node.name(), found.why), found.why));
  stopping_.by_check = true;
  stopping_.other =
      format("{} is {}: {}", node.name(), found.kind == Kind::kStraggler ? "a straggler" : "unfit", found.why);
}

void Coordinator::forget_who_passed(const std::vector<WorkerFailure>& failures) {
  using When = CheckRules::When;
  if (!has_run_) return;
  if (check_rules_.when == When::kAlways) {
    for (auto& [agent, node] : roster_.nodes()) node.passed_check = false;
  }
  if (check_rules_.when != When::kSuspect) return;
  const auto first = std::ranges::find(failures, false, &WorkerFailure::stopped_by_us);
  if (first == failures.end()) return;
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.seat == first->node_rank) node.passed_check = false;
  }
}

// Rejects the nodes that the check has found unfit, once they have stopped.
void Coordinator::turn_away_excluded(Effects& out) {
  std::vector<Node*> unfit;
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.standing() == Standing::kReady && !node.unfit.empty()) unfit.push_back(&node);
  }
  for (Node* node : unfit) {
    out.push_back(Send{*node->session, is_excluded(node->unfit)});
    forget(*node);
  }
}

}  // namespace elastic::coordinator
