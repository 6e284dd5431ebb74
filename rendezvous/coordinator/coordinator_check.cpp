// The check before a round's workers run: its phases, and which nodes are excluded for its results.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_notes.h"
#include "rendezvous/coordinator/coordinator_refusals.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using membership::Node;
using membership::Standing;

namespace {

// What is wrong with each node, or link, that the check has found unfit; a note for each of the nodes.
std::vector<std::string> flaws_of(const std::vector<health::CheckPlan::Unfit>& unfit, const Seats& seats,
                                  const membership::Roster& roster, Effects& out) {
  std::vector<std::string> flaws;
  for (const health::CheckPlan::Unfit& found : unfit) {
    const Node& node = roster.at(seats.at(static_cast<std::size_t>(found.node_rank)).agent);
    flaws.push_back(format("{}: {}", node.name(), found.why));
    if (found.kind == health::CheckPlan::Unfit::Kind::kLink) continue;
    out.push_back(node_is_unfit(node, format("{} is unfit: {}", node.name(), found.why), found.why));
  }
  return flaws;
}

}  // namespace

// All nodes are checked before a round that follows a hang for which the links between them may be why.
health::CheckRules Coordinator::check_rules() const {
  health::CheckRules rules = settings_.check;
  if (hang_.suspects_links()) rules.when = health::CheckRules::When::kAlways;
  return rules;
}

void Coordinator::send_check_orders(RoundCheck::Orders orders, Effects& out) {
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    const Node& node = roster_.at(seats_[rank].agent);
    out.push_back(Send{*node.session, RunCheck{*round_, check_.phase(), std::move(orders[rank])}});
  }
}

void Coordinator::end_check_phase(Effects& out) {
  RoundCheck::Orders orders = check_.next_phase(nodes_to_check(seats_, roster_, check_rules()), check_rules(), now_ms_);
  if (check_.is_running()) return send_check_orders(std::move(orders), out);
  CheckJudged judged = check_.judge(*round_, nodes_to_check(seats_, roster_, check_rules()), check_rules());
  const std::vector<health::CheckPlan::Unfit> unfit = judged.unfit;
  out.push_back(std::move(judged));
  if (settings_.check.only) {
    const std::vector<std::string> flaws = flaws_of(unfit, seats_, roster_, out);
    stopping_.job_ends = true;  // it was started with --check-only
    stopping_.outcome = unfit.empty() ? Outcome::kSucceeded : Outcome::kFailed;
    if (!unfit.empty()) stopping_.fatal = format("{}: {}", kFoundUnfit, some_of(flaws));
    return stop_round(out);
  }
  for (const Seat& seat : seats_) roster_.at(seat.agent).passed_check = true;
  for (const health::CheckPlan::Unfit& found : unfit) leave_out(found, out);
  if (stopping_.other.empty()) return run_if_ready(out);
  stop_round(out);
}

void Coordinator::leave_out(const health::CheckPlan::Unfit& found, Effects& out) {
  Node& node = roster_.at(seats_.at(static_cast<std::size_t>(found.node_rank)).agent);
  UnfitNode unfit = consequence_of(found, node.name(), check_rules());
  if (!unfit.leaves) {
    if (!unfit.note.empty()) out.push_back(Note{std::move(unfit.note)});
    return;
  }
  node.passed_check = false;
  node.unfit = std::move(unfit.told);
  if (unfit.excludes_host) check_.exclude_host(node.identity(), Exclusion::kUnfit);
  out.push_back(node_is_unfit(node, std::move(unfit.note), found.why));
  stopping_.by_check = true;
  stopping_.other = std::move(unfit.because);
}

// Rejects the nodes that the check has found unfit, once they have stopped.
void Coordinator::turn_away_excluded(Effects& out) {
  std::vector<Node*> unfit;
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.standing() == Standing::kReady && !node.unfit.empty()) unfit.push_back(&node);
  }
  for (Node* node : unfit) {
    out.push_back(Send{*node->session, is_excluded(node->unfit)});
    // The way to the agent in this process loses nothing: that one looks for no other coordinator.
    if (node->agent == config_.own_agent) mandate_.died(node->agent, now_ms_);
    forget(*node);
  }
}

}  // namespace elastic::coordinator
