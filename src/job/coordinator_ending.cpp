// How nodes are lost, and how the job ends.
#include <algorithm>
#include <utility>

#include "src/base/text.h"
#include "src/job/coordinator.h"

namespace elastic::job {

using namespace protocol;

void Coordinator::lose(Node& node, const std::string& how, Effects& out) {
  roster_.set_session(node, {});
  const Standing standing = node.standing();
  const bool only_waits = standing == Standing::kReady || state_ == State::kEnding;
  if (only_waits || can_do_without(node)) {
    out.push_back(Note{format("{} is gone: {}", node.name(), how)});
    if (state_ == State::kEnding && node.reported) --heard_verdict_;
    // It may come back for the verdict, which nobody could tell it when we are gone.
    if (standing != Standing::kReady && !(state_ == State::kEnding && node.reported)) wait_for_witnesses(now_ms_ + birth_.lease.over_ms());
    return forget(node);
  }
  out.push_back(Note{format("{} is lost: {}", node.name(), how)});
  if (standing != Standing::kLeaving) {
    stopping_.lost.push_back({node.place.node_rank, node.address, how});
    if (const auto until_ms = losses_.lose(node.identity(), now_ms_)) {
      out.push_back(Note{format("{} is kept out for {} s: it was lost too often", node.name(), (*until_ms - now_ms_) / 1000)});
    }
  }
  node.passed_check = false;
  node.lease_over_ms = node.last_heard_ms + birth_.lease.over_ms();
  roster_.move(node, Standing::kLost);
  leases_.emplace(node.lease_over_ms, node.agent);
  if (is_in_round()) stop_round(out);
}

void Coordinator::forget(Node& node) {
  leases_.erase({node.lease_over_ms, node.agent});
  roster_.erase(node.agent);
}

void Coordinator::look_for_silent(Effects& out) {
  const std::int64_t timeout_ms = birth_.lease.loss_timeout_ms;
  if (now_ms_ - silence_check_ms_ > birth_.lease.renewal_ms()) {
    // We have been asleep ourselves: what nodes have sent meanwhile is to be read first.
    silence_check_ms_ = now_ms_ + birth_.lease.renewal_ms();
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
    const std::string how = format("nothing was heard of it for {} ms", now_ms_ - node->last_heard_ms);
    out.push_back(Drop{*node->session, how});
    lose(*node, how, out);
  }
}

void Coordinator::end(Verdict verdict, Effects& out) {
  verdict.round = round_.value_or(0);
  verdict.restarts_used = budget_.used();
  out.push_back(Note{format("the job has {}{}", verdict.outcome == Verdict::Outcome::kSucceeded ? "succeeded"
                                                : verdict.outcome == Verdict::Outcome::kFailed  ? "failed"
                                                                                                : "been stopped",
                            verdict.reason.empty() ? "" : format(": {}", verdict.reason))});
  state_ = State::kEnding;
  verdict_ = verdict;
  heard_verdict_ = 0;
  for (const Held& held : held_) {
    out.push_back(Send{held.session, Rejected{Rejected::Why::kJobEnding, "the job is ending", 1000}});
  }
  held_.clear();
  if (!leases_.empty()) wait_for_witnesses(leases_.rbegin()->first);
  while (!leases_.empty()) forget(*roster_.find(leases_.begin()->second));
  for (auto& [agent, node] : roster_.nodes()) {
    node.reported = false;
    out.push_back(Send{*node.session, EndJob{verdict}});
  }
  dismiss_if_all_heard(out);
}

// Nodes that have lost their session just now may yet ask how the job has ended: so long the end waits for them.
void Coordinator::wait_for_witnesses(std::int64_t until_ms) {
  ending_not_before_ms_ = std::max(ending_not_before_ms_, until_ms);
}

void Coordinator::dismiss_if_all_heard(Effects& out) {
  if (heard_verdict_ < roster_.size()) return;
  if (now_ms_ < ending_not_before_ms_) return look_again(ending_not_before_ms_);
  state_ = State::kEnded;
  for (auto& [agent, node] : roster_.nodes()) out.push_back(Send{*node.session, Dismiss{}});
}

}  // namespace elastic::job
