// The check before a round's workers run: its phases, and which nodes are evicted for its results.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_notes.h"
#include "rendezvous/coordinator/coordinator_refusals.h"
#include "rendezvous/coordinator/hang_desk.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using membership::MemberState;
using membership::Node;

namespace {

// What is wrong with each unhealthy node or link. Adds a note for each of these nodes.
std::vector<std::string> flaws_of(const std::vector<health::CheckPlan::Unhealthy>& unhealthy, const Slots& slots,
                                  const membership::Roster& roster, Effects& out) {
  std::vector<std::string> flaws;
  for (const health::CheckPlan::Unhealthy& found : unhealthy) {
    const Node& node = roster.at(slots.at(static_cast<std::size_t>(found.node_rank)).agent);
    flaws.push_back(format("{}: {}", node.name(), found.why));
    if (found.kind == health::CheckPlan::Unhealthy::Kind::kLink) continue;
    out.push_back(node_is_unhealthy(node, format("{} is unfit: {}", node.name(), found.why), found.why));
  }
  return flaws;
}

}  // namespace

// All nodes are checked before the round that follows a hang which the links between them may have caused.
health::CheckRules Coordinator::check_rules() const {
  health::CheckRules rules = settings_.check;
  if (hang_->suspects_links()) rules.when = health::CheckRules::When::kAlways;
  return rules;
}

void Coordinator::send_check_orders(RoundCheck::Orders orders, Effects& out) {
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    const Node& node = roster_.at(round_.slots()[rank].agent);
    out.push_back(Send{*node.session, RunCheck{*round_.number(), check_.phase(), std::move(orders[rank])}});
  }
}

void Coordinator::end_check_phase(Effects& out) {
  RoundCheck::Orders orders =
      check_.next_phase(nodes_to_check(round_.slots(), roster_, check_rules()), check_rules(), clock_.now_ms());
  if (check_.is_running()) return send_check_orders(std::move(orders), out);
  CheckJudged judged =
      check_.judge(*round_.number(), nodes_to_check(round_.slots(), roster_, check_rules()), check_rules());
  const std::vector<health::CheckPlan::Unhealthy> unhealthy = judged.unhealthy;
  out.push_back(std::move(judged));
  if (settings_.check.only) {
    const std::vector<std::string> flaws = flaws_of(unhealthy, round_.slots(), roster_, out);
    round_.stopping().job_ends = true;  // the job was started with --check-only
    round_.stopping().outcome = unhealthy.empty() ? Outcome::kSucceeded : Outcome::kFailed;
    if (!unhealthy.empty()) round_.stopping().fatal = format("{}: {}", kFoundUnhealthy, some_of(flaws));
    return stop_round(out);
  }
  for (const Slot& slot : round_.slots()) roster_.at(slot.agent).passed_check = true;
  for (const health::CheckPlan::Unhealthy& found : unhealthy) leave_out(found, out);
  if (round_.stopping().other.empty()) return run_if_ready(out);
  stop_round(out);
}

void Coordinator::leave_out(const health::CheckPlan::Unhealthy& found, Effects& out) {
  Node& node = roster_.at(round_.slots().at(static_cast<std::size_t>(found.node_rank)).agent);
  UnhealthyNode unhealthy = consequence_of(found, node.name(), check_rules());
  if (!unhealthy.leaves) {
    if (!unhealthy.note.empty()) out.push_back(Note{std::move(unhealthy.note)});
    return;
  }
  node.passed_check = false;
  node.unhealthy = std::move(unhealthy.told);
  if (unhealthy.evicts_host) check_.evict_host(node.identity(), Eviction::kUnhealthy);
  out.push_back(node_is_unhealthy(node, std::move(unhealthy.note), found.why));
  round_.stopping().by_check = true;
  round_.stopping().other = std::move(unhealthy.because);
}

// Rejects the nodes that the check has found unhealthy, once they have stopped.
void Coordinator::turn_away_evicted(Effects& out) {
  std::vector<Node*> unhealthy;
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.member_state() == MemberState::kReady && !node.unhealthy.empty()) unhealthy.push_back(&node);
  }
  for (Node* node : unhealthy) {
    out.push_back(Send{*node->session, is_evicted(node->unhealthy)});
    // The agent in this process is certain to get the rejection, and looks for no other coordinator.
    if (node->agent == config_.own_agent) leader_.died(node->agent, clock_.now_ms());
    forget(*node);
  }
}

}  // namespace elastic::coordinator
