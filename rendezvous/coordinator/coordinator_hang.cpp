// How a round that runs is watched for a hang.
#include <algorithm>
#include <memory>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_notes.h"
#include "rendezvous/coordinator/hang_desk.h"
#include "rendezvous/coordinator/transferred_state.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;

namespace {

// A node that was started again on the host, or is a standby there, is in no further round either.
void leave_out_standbys(membership::Roster& roster, const std::string& host, const std::string& why) {
  for (auto& [agent, node] : roster.nodes()) {
    const bool is_standby = node.member_state() == membership::MemberState::kReady && node.identity() == host;
    if (is_standby && node.unhealthy.empty()) node.unhealthy = why;
  }
}

}  // namespace

// A round that is stopped makes no progress.
void Coordinator::on_node_progress(const NodeProgress& message, Node& node, Effects& out) {
  if (!is_current(node, message.round)) return;
  node.progress = message;
  node.progress_ms = clock_.now_ms();
  hang_->on_progress(node, message, hang_now(), out);
}

void Coordinator::on_hang_signs(const HangSigns& message, Node& node, Effects& out) {
  if (!is_current(node, message.round)) return;
  hang_->on_signs(node, message, hang_now(), out);
}

void Coordinator::on_node_evidence(const NodeEvidence& message, Node& node, Effects& out) {
  if (!is_current(node, message.round)) return;
  hang_->on_evidence(node, message, hang_now(), out);
}

void Coordinator::watch_hang(const HangDue&, Effects& out) {
  const HangNow now = hang_now();
  if (hang_->round() != round_.number()) {
    if (hang_->round()) hang_->round_ends(clock_.now_ms());
    hang_->round_runs(*round_.number(), now, out);
  }
  hang_->on_time(now, out);
  const std::unique_ptr<const HangEnd> end = hang_->take_end();
  if (end) leave_out_for_hang(*end, out);
  if (hang_->has_news(clock_.now_ms()) || end)
    spread_state(state_transfer_->give(identity_.term(), transferred_parts()), out);
  if (end) end_hang(*end, out);
}

// A coordinator that takes the round over goes on from this state. Nodes that have stopped get it, too: they would
// report the round.
void Coordinator::spread_state(const Transferred& transferred, Effects& out) {
  const KeepState keep{*round_.number(), transferred};
  for (const auto& [agent, node] : roster_.nodes()) {
    if (node.session && node.slot) out.push_back(Send{*node.session, keep});
  }
}

void Coordinator::end_watch(const HangDue&, Effects&) {
  if (hang_->round()) hang_->round_ends(clock_.now_ms());
}

// Tells the nodes which of them are out because their workers cannot be ended. A candidate keeps what it knows for now:
// another one that is elected in its place may know more.
void Coordinator::hand_stuck_on(const HangDue& due, Effects& out) {
  end_watch(due, out);
  const auto due_ms = hang_->stuck_due_ms();
  if (!due_ms) return;
  if (*due_ms > clock_.now_ms()) return clock_.look_again(*due_ms);
  hang_->has_handed_stuck(clock_.now_ms());
  spread_state(state_transfer_->give_hang(identity_.term(), transferred_parts()), out);
}

void Coordinator::hand_stuck_in_preparing(const HangDue& due, Effects& out) {
  end_watch(due, out);
  if (hang_->stuck_due_ms()) hang_->has_handed_stuck(clock_.now_ms());  // PrepareRound had it
}

HangNow Coordinator::hang_now() const {
  return {roster_, clock_.now_ms(), membership::least_size(settings_.next_round())};
}

// Nodes that are at fault are in no further round of the job.
void Coordinator::leave_out_for_hang(const HangEnd& end, Effects& out) {
  for (const auto& [agent, why] : end.out) {
    Node& node = roster_.at(agent);
    node.passed_check = false;
    node.unhealthy = format("the job hung, and this node is at fault: {}", why);
    check_.evict_host(node.identity(), Eviction::kHung);
    leave_out_standbys(roster_, node.identity(), node.unhealthy);
    out.push_back(node_is_unhealthy(node, format("{} is out of the job, which hung: {}", node.name(), why), why));
  }
}

// Leaves out the nodes that the coordinator before left out of the round that is taken over. It has noted that.
void Coordinator::leave_out_as_before(const TransferredHang& hang) {
  for (const Slot& slot : round_.slots()) {
    Node* node = roster_.find(slot.agent);
    if (node == nullptr || std::ranges::find(hang.out, slot.slot) == hang.out.end()) continue;
    node->unhealthy = "the job hung, and this node is out for that";
    check_.evict_host(node->identity(), Eviction::kHung);
  }
}

// --hang=restart: the round is stopped, and what follows is decided when all its nodes have stopped.
void Coordinator::end_hang(const HangEnd& end, Effects& out) {
  round_.stopping().hang = end.because;
  round_.stopping().aborts = end.aborts;
  round_.stopping().dumps = end.dumps;
  if (!end.fatal.empty()) round_.stopping().fails(end.fatal);
  stop_round(out);
  hang_->round_ends(clock_.now_ms());
}

// In a round that ends for a hang, or has ended for it while the node was away, a process that cannot be ended costs
// only its node if others are left: one, or, if the node may stay, as many as the job needs.
bool Coordinator::can_leave_out(const Node& node, bool may_stay) const {
  if (!hang_->ends(*round_.number()) || round_.stopping().job_ends) return false;
  const auto others = std::ranges::count_if(roster_.nodes(), [&](const auto& entry) {
    return entry.first != node.agent && entry.second.unhealthy.empty() && entry.second.session;
  });
  return others >= (may_stay ? hang_now().least : 1);
}

void Coordinator::leave_out_stuck(Node& node, const std::string& why, Effects& out) {
  if (!node.unhealthy.empty()) return;  // the node is out as the one at fault
  node.passed_check = false;
  node.unhealthy = format("the job hung, and this node cannot end its workers: {}", why);
  check_.evict_host(node.identity(), Eviction::kHung);
  hang_->leave_out(*round_.number(), node.place.node_rank);
  leave_out_standbys(roster_, node.identity(), node.unhealthy);
  out.push_back(node_is_unhealthy(node, format("{} is out of the job, which hung: {}", node.name(), why), why));
}

}  // namespace elastic::coordinator
