// How nodes are lost, and how the job ends.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_notes.h"
#include "rendezvous/coordinator/coordinator_refusals.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;

void Coordinator::lose(Node& node, const std::string& how, Effects& out, bool by_us) {
  roster_.set_session(node, {});
  const Standing standing = node.standing();
  if (standing != Standing::kLeaving) {
    news_.has_gone(node.agent, format("{} was lost: {}", node.name(), how), now_ms_);
  }
  const bool only_waits = standing == Standing::kReady || state_ == State::kEnding;
  // A waiting node has no lease that would have to expire, and may reconnect in a moment.
  if (standing == Standing::kReady) back_by_ms_ = now_ms_ + config_.lease.all_back_ms();
  if (only_waits || can_do_without(node)) {
    out.push_back(Note{format("{} has disconnected: {}", node.name(), how)});
    ending_.has_gone(node, seats_, now_ms_ + config_.lease.all_back_ms());
    return forget(node);
  }
  Note lost = node_is_lost(node, how);
  // No operator has to look at a node that got a signal to leave, or whose session the coordinator ended itself.
  if (standing == Standing::kLeaving || by_us) lost = {.text = std::move(lost.text)};
  out.push_back(std::move(lost));
  if (standing != Standing::kLeaving) {
    // A host that dies takes all its agents with it, and is charged with one loss.
    const bool goes_with_another = std::ranges::any_of(
        stopping_.lost, [&](const LostNode& other) { return !other.address.empty() && other.address == node.address; });
    stopping_.lost.push_back({node.place.node_rank, node.address, how});
    if (!by_us) losses_.lose_unknown();
    if (!by_us && !goes_with_another) blame(node, out);
  }
  node.passed_check = false;
  node.lease_until_ms = node.last_heard_ms + config_.lease.ends_ms();
  node.lease_has_ended = false;
  roster_.move(node, Standing::kLost);
  leases_.emplace(node.lease_until_ms, node.agent);
  if (is_in_round()) stop_round(out);
}

void Coordinator::blame(const Node& node, Effects& out) {
  if (const auto until_ms = losses_.blame(node.identity(), now_ms_)) {
    out.push_back(node_is_kept_out(node, *until_ms - now_ms_));
  }
}

void Coordinator::forget(const Node& node) {
  leases_.erase({node.lease_until_ms, node.agent});
  roster_.erase(node.agent);
}

void Coordinator::look_at_leases(Effects& out) {
  while (!leases_.empty() && leases_.begin()->first <= now_ms_) {
    Node& node = *roster_.find(leases_.begin()->second);
    if (node.lease_has_ended) {
      out.push_back(Note{format("the lease of {} has expired", node.name())});
      forget(node);
      continue;
    }
    leases_.erase(leases_.begin());
    node.lease_has_ended = true;
    node.lease_until_ms = now_ms_ + LeaseTimes::kKillMs;
    leases_.emplace(node.lease_until_ms, node.agent);
  }
}

void Coordinator::look_for_silent(Effects& out) {
  const std::int64_t timeout_ms = config_.lease.loss_timeout_ms;
  if (now_ms_ - silence_check_ms_ > config_.lease.renewal_ms()) {
    // This process has not run for a while: what nodes have sent in the meantime is read first.
    silence_check_ms_ = now_ms_ + config_.lease.renewal_ms();
    return;
  }
  silence_check_ms_ = kNever;
  std::vector<Node*> silent;
  for (auto& [agent, node] : roster_.nodes()) {
    if (!node.session || node.hosts_coordinator) continue;
    if (node.last_heard_ms + timeout_ms <= now_ms_) {
      silent.push_back(&node);
    } else {
      silence_check_ms_ = std::min(silence_check_ms_, node.last_heard_ms + timeout_ms);
    }
  }
  for (Node* node : silent) {
    const std::string how = format("it sent nothing for {} ms", now_ms_ - node->last_heard_ms);
    out.push_back(Drop{*node->session, how});
    lose(*node, how, out);
  }
}

void Coordinator::end(Verdict verdict, Effects& out) {
  verdict.round = round_.value_or(0);
  verdict.restarts_used = budget_.used();
  out.push_back(job_has_ended(verdict));
  state_ = State::kEnding;
  ending_.begin(verdict, now_ms_);
  for (const NodeId session : claims_.dismiss_all()) out.push_back(Send{session, job_is_ending()});
  if (!leases_.empty()) ending_.stay_until(std::max(now_ms_, leases_.rbegin()->first) + LeaseTimes::kKillMs);
  while (!leases_.empty()) forget(*roster_.find(leases_.begin()->second));
  for (const auto& [agent, node] : roster_.nodes()) out.push_back(Send{*node.session, EndJob{verdict}});
  dismiss_if_all_heard(out);
}

void Coordinator::dismiss_if_all_heard(Effects& out) {
  const JobEnding::Decision decision = ending_.decide(roster_.size(), caught_up_ms_, now_ms_);
  look_again(decision.look_again_ms);
  if (!decision.is_over) return;
  state_ = State::kEnded;
  for (const auto& [agent, node] : roster_.nodes()) out.push_back(Send{*node.session, Dismiss{ending_.details()}});
}

}  // namespace elastic::coordinator
