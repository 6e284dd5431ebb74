// How nodes are lost, and how the job or this coordinator ends.
#include <algorithm>
#include <csignal>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_notes.h"
#include "rendezvous/coordinator/coordinator_refusals.h"
#include "rendezvous/protocol/term.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using membership::MemberState;
using membership::Node;

namespace {

std::string done_and_leaves(const Node& node) { return format("{} leaves: its workers have succeeded", node.name()); }

}  // namespace

void Coordinator::lose(Node& node, const std::string& how, Effects& out) {
  roster_.set_session(node, {});
  const MemberState member_state = node.member_state();
  if (member_state != MemberState::kLeaving) {
    news_.has_gone(node.agent, format("{} was lost: {}", node.name(), how), clock_.now_ms());
  }
  const bool only_waits = member_state == MemberState::kReady || tells_result();
  // A waiting node has no lease that would have to expire, and may reconnect in a moment.
  if (member_state == MemberState::kReady) forming_.may_be_back_by(clock_.now_ms() + config_.lease.all_back_ms());
  if (only_waits || can_do_without(node)) {
    out.push_back(Note{format("{} has disconnected: {}", node.name(), how)});
    ending_.has_gone(node, round_.slots(), clock_.now_ms() + config_.lease.all_back_ms());
    return forget(node);
  }
  Note lost = node_is_lost(node, how);
  // No operator has to look at a node that got a signal to leave.
  if (member_state == MemberState::kLeaving) lost = {.text = std::move(lost.text)};
  out.push_back(std::move(lost));
  if (member_state != MemberState::kLeaving) {
    const bool is_first_of_host = round_.stopping().lose(node, how);
    // A candidate needs every vote: it quarantines no host.
    const bool is_charged = leader_.may_act();
    if (is_charged) settings_.budgets.losses.count_loss();
    if (is_charged && is_first_of_host) charge(node, out);
  }
  node.passed_check = false;
  roster_.move(node, MemberState::kLost);
  loss_watch_.begin_lease(node.agent, node.last_heard_ms + config_.lease.ends_ms());
  if (is_in_round()) stop_round(out);
}

// Charges a loss to the node's host, which is quarantined if it has lost too many nodes.
void Coordinator::charge(const Node& node, Effects& out) {
  if (const auto until_ms = settings_.budgets.losses.charge(node.identity(), clock_.now_ms())) {
    out.push_back(node_is_quarantined(node, *until_ms - clock_.now_ms()));
  }
}

void Coordinator::forget(const Node& node) {
  loss_watch_.forget(node.agent);
  leader_.forget(node.agent);
  roster_.erase(node.agent);
}

void Coordinator::look_at_leases(Effects& out) {
  for (const AgentId agent : loss_watch_.leases_over(clock_.now_ms())) {
    const Node& node = roster_.at(agent);
    out.push_back(Note{format("the lease of {} has expired", node.name())});
    forget(node);
  }
}

void Coordinator::end(JobResult job_result, Effects& out) {
  job_result.round = round_.number().value_or(0);
  if (job_result.term == 0) job_result.term = identity_.term();  // else an earlier coordinator has given it
  job_result.restarts_used = settings_.budgets.restarts.used();
  out.push_back(job_has_ended(job_result));
  state_ = State::kEnding;
  ending_.begin(job_result, clock_.now_ms());
  for (const NodeId session : claims_.dismiss_all()) out.push_back(Send{session, job_is_ending()});
  if (const auto last_ms = loss_watch_.last_lease_ms()) {
    ending_.stay_until(std::max(clock_.now_ms(), *last_ms) + LeaseTimes::kKillMs);
  }
  for (const AgentId agent : loss_watch_.lost_nodes()) forget(roster_.at(agent));
  for (const auto& [agent, node] : roster_.nodes()) out.push_back(Send{*node.session, EndJob{job_result}});
  dismiss_if_all_heard(out);
}

// Another node can be elected in place of this coordinator, which leads by votes.
bool Coordinator::another_may_lead() const {
  return std::ranges::any_of(roster_.nodes(), [&](const auto& entry) {
    const Node& node = entry.second;
    const bool stays = node.session && node.slot && node.member_state() != MemberState::kLeaving;
    return stays && leader_.may_transfer_to(node.agent, node.offers_peer_port(), clock_.now_ms());
  });
}

// The job can go on under a coordinator in another process when the node in this one leaves.
bool Coordinator::may_transfer_leadership() const {
  using OnLeave = JobRules::OnLeave;
  if (is_recovering() || is_ending() || settings_.rules.on_leave == OnLeave::kEnd) return false;
  if (!another_may_lead()) return false;
  const int others = orders_.others(*config_.own_agent, roster_);
  return settings_.rules.on_leave == OnLeave::kWait || membership::round_size(others, settings_.next_round()) > 0;
}

// The job ends with the process that hosts its coordinator, unless another one can be elected.
void Coordinator::host_leaves(const std::string& name, const std::string& text, const NodeLeaves& leaves,
                              Effects& out) {
  if (leaves.signal == SIGTERM && may_transfer_leadership()) return resign(text, out, true);
  round_.stopping().host_leaves(name, leaves);
  return is_in_round() ? stop_round(out) : end(round_.stopping().job_result(), out);
}

// A node that still trains can host a coordinator that finishes the round. That one declares every node of the round
// lost that does not come to it: all must still be here.
bool Coordinator::may_go_on_without_host() const {
  if (!another_may_lead()) return false;
  const auto& nodes = roster_.nodes();
  const bool are_all_here = std::ranges::all_of(round_.slots(), [&](const Slot& slot) {
    const auto found = nodes.find(slot.agent);
    return found != nodes.end() && found->second.session.has_value();
  });
  return are_all_here && std::ranges::any_of(nodes, [](const auto& entry) {
           return entry.second.member_state() == MemberState::kMember && entry.second.peer_port != 0;
         });
}

// The node in this process is done, and the leadership is transferred when it has waited long enough. Other nodes that
// are done go with it to the next leader.
bool Coordinator::waits_for_host() const {
  if (!config_.own_agent || state_ == State::kStopping) return false;
  const auto own = roster_.nodes().find(*config_.own_agent);
  if (own == roster_.nodes().end() || own->second.member_state() != MemberState::kDone) return false;
  return own->second.place.node_rank != 0 && may_go_on_without_host();
}

// Lets nodes go that are done and have waited for long enough.
void Coordinator::let_done_nodes_leave(Effects& out) {
  std::vector<AgentId> leavers;
  for (const auto& [agent, node] : roster_.nodes()) {
    if (node.leaves_later && node.leaves_later->signal == 0 && node.session) leavers.push_back(agent);
  }
  if (leavers.empty()) return;
  const auto host = std::ranges::find_if(leavers, [&](AgentId agent) { return roster_.at(agent).hosts_coordinator; });
  if (host != leavers.end()) {
    Node& node = roster_.at(*host);
    if (may_go_on_without_host()) return resign(done_and_leaves(node), out, true);
    node.leaves_later.reset();  // the node stays, and asks again
    leavers.erase(host);
  } else if (waits_for_host()) {
    return;
  }
  for (const AgentId agent : leavers) let_go_done(roster_.at(agent), out);
}

void Coordinator::let_go_done(const Node& node, Effects& out) {
  out.push_back(Note{done_and_leaves(node)});
  out.push_back(Send{*node.session, Dismiss{}});
  leader_.died(node.agent, clock_.now_ms());  // as good as dead: it looks for no other coordinator
  forget(node);
}

// This coordinator never acts again. The next one, even in the same process, is another object.
void Coordinator::resign(const std::string& why, Effects& out, bool transfers_leadership) {
  out.push_back(Note{format("this coordinator of term {} {}: {}", text_of_term(identity_.term()),
                            transfers_leadership ? "hands over to another node" : "resigns", why)});
  for (const auto& [agent, node] : roster_.nodes()) {
    if (!node.session) continue;
    out.push_back(Send{*node.session, Resigned{why, transfers_leadership}});
    out.push_back(Drop{*node.session, why});
  }
  state_ = State::kEnded;
  if (transfers_leadership) ending_.leave_to_next_leader();
}

void Coordinator::dismiss_if_all_heard(Effects& out) {
  const JobEnding::Decision decision = ending_.decide(roster_.size(), clock_.caught_up_ms(), clock_.now_ms());
  clock_.look_again(decision.look_again_ms);
  if (!decision.is_over) return;
  state_ = State::kEnded;
  for (const auto& [agent, node] : roster_.nodes()) out.push_back(Send{*node.session, Dismiss{ending_.details()}});
}

}  // namespace elastic::coordinator
