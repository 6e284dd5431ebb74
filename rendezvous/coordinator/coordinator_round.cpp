// How rounds begin and end: forming, scaling up, stopping.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_refusals.h"
#include "rendezvous/coordinator/hang_desk.h"
#include "rendezvous/coordinator/transferred_state.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using membership::FormingDecision;
using membership::MemberState;

void Coordinator::form_if_due(Effects& out) {
  if (!settings_.are_known) return;
  if (!round_.has_formed() && roster_.size() == 0 && claims_.empty()) {
    // All nodes left before a round was formed: the next node may bring other terms.
    state_ = State::kEnded;
    return;
  }
  const membership::FormingRules rules = settings_.next_round();
  const int ready = static_cast<int>(roster_.count(MemberState::kReady));
  const int awaited = static_cast<int>(roster_.count(MemberState::kStopping) + roster_.count(MemberState::kLeaving) +
                                       roster_.count(MemberState::kLost));
  if (roster_.size() == 0 && !round_.stopping().left.empty()) {
    // Every node got a signal and has left: no node is there to get the job result.
    return end({.outcome = Outcome::kStopped, .reason = some_of(round_.stopping().left)}, out);
  }
  const FormingDecision decision = forming_.decide({.ready = ready,
                                                    .awaited = awaited,
                                                    .again = round_.has_formed(),
                                                    .previous_size = static_cast<int>(round_.slots().size())},
                                                   rules, clock_.now_ms());
  News news{.here = ready,
            .least = membership::least_size(rules),
            .most = rules.max_nodes,
            .since_ms = forming_.since_ms(),
            .until_ms = decision.look_again_ms,
            .names_gone = true};
  // An earlier coordinator of the job may have nodes that are cut off and still hold its leases. No coordinator can
  // know that it is the first, unless the job can have no further node and none of those that are here has met another
  // one.
  const bool is_first = settings_.is_most(decision.size) && !identity_.met_others();
  const std::int64_t not_before_ms =
      is_first ? config_.now_ms : std::max(forming_.first_not_before_ms(), clock_.caught_up_ms());
  switch (decision.kind) {
    case FormingDecision::Kind::kWait:
      clock_.look_again(decision.look_again_ms);
      return tell_what_is_awaited(std::move(news), out);
    case FormingDecision::Kind::kForm:
      if (!round_.has_formed() && clock_.now_ms() < not_before_ms) {
        clock_.look_again(not_before_ms);
        news.until_ms = not_before_ms;
        return tell_what_is_awaited(std::move(news), out);
      }
      if (const auto until_ms = leader_.peer_ports_awaited_until_ms(clock_.now_ms()))
        return clock_.look_again(until_ms);
      form(decision.size, out);
      return tell_who_stands_by(out);
    case FormingDecision::Kind::kGiveUp: {
      std::string reason = format("{} ({})", decision.reason, settings_.terms.nnodes_text());
      if (!round_.again().because.empty()) reason = format("{}; {}", round_.again().because, reason);
      return end({.outcome = Outcome::kFailed, .reason = std::move(reason)}, out);
    }
  }
}

void Coordinator::tell_what_is_awaited(News news, Effects& out) {
  const auto due =
      news_.news_due(std::move(news), roster_.count(MemberState::kReady), roster_.arrivals(), clock_.now_ms());
  clock_.look_again(due.look_again_ms);
  if (!due.message) return;
  for (const auto& [agent, node] : roster_.nodes()) {
    const bool is_told = node.member_state() == MemberState::kReady && node.arrival >= due.from_arrival;
    if (is_told) out.push_back(Send{*node.session, *due.message});
  }
}

void Coordinator::tell_who_stands_by(Effects& out) {
  const int size = static_cast<int>(round_.slots().size());
  const std::string nodes = counted(size, "node");
  const bool is_most = settings_.is_most(size);
  tell_what_is_awaited({.what = is_most ? format("standing by: the job has its maximum of {}", nodes)
                                        : format("standing by: the job runs with {}", nodes)},
                       out);
}

void Coordinator::form(int size, Effects& out) {
  const std::vector<RoundMember> members = choose_round(roster_, round_.slots(), size);
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.member_state() == MemberState::kReady) node.slot.reset();
  }
  const bool is_first = !round_.has_formed();
  if (is_first && identity_.begins_anew()) {
    out.push_back(
        Note{"a node of an earlier start of the job was here, and has reported no round of it: it begins anew"});
  }
  statistics_.round_began(round_.again().cause, round_.has_run());
  round_.form(identity_.term());
  if (settings_.first_size == 0) settings_.first_size = size;
  std::vector<AgentId> agents;
  for (const RoundMember& member : members) {
    Node& node = roster_.at(member.agent);
    node.slot = member.slot;
    agents.push_back(member.agent);
    round_.add({member.agent, member.slot, node.address});
  }
  const std::uint64_t digest = membership_digest(identity_.incarnation(), *round_.number(), agents);
  state_ = State::kPreparing;
  news_.round_has_formed();
  out.push_back(Note{format("round {} has formed with {} {}, world size {}{}", *round_.number(), size,
                            size == 1 ? "node" : "nodes", members.front().place.world_size,
                            round_.again().because.empty() ? "" : format(", because {}", round_.again().because)),
                     kRoundFormed});
  if (is_first) do_without_next_leaders(agents, out);
  const std::string admitted = addresses_of(members, roster_);
  const bool refusal_is_proof = settings_.rules.failover_evidence == JobRules::Evidence::kRefusal;
  const auto begun = leader_.begin_round({identity_.term(), *round_.number(), digest, size}, candidates(agents));
  const Transferred transferred = state_transfer_->give(identity_.term(), transferred_parts());
  const membership::AgreedPort training_port = membership::agree_on_port(ports_of(members, roster_));
  if (!training_port.why_none.empty()) out.push_back(Note{training_port.why_none, kNoTrainingPort});
  for (const RoundMember& member : members) {
    Node& node = roster_.at(member.agent);
    node.place = member.place;
    node.succeeded = false;
    node.leaves_later.reset();
    node.belongs = true;
    roster_.move(node, MemberState::kMember);
    out.push_back(Send{*node.session, PrepareRound{.round = *round_.number(),
                                                   .restart_count = settings_.budgets.restarts.used(),
                                                   .max_restarts = settings_.budgets.restarts.limit(),
                                                   .place = node.place,
                                                   .reason = round_.again().because,
                                                   .losses = settings_.budgets.losses.losses(),
                                                   .membership = digest,
                                                   .charged = round_.again().charged,
                                                   .admits = member.place.node_rank == 0 ? admitted : "",
                                                   .fence = identity_.fence(),
                                                   .transferred = transferred,
                                                   .before = begun.before,
                                                   .host_rank = begun.host_rank,
                                                   .next_leaders = begun.leaders,
                                                   .refusal_is_proof = refusal_is_proof,
                                                   .error_files_wait = settings_.budgets.error_files_wait,
                                                   .training_port = training_port.first}});
  }
  if (const auto& next = leader_.next_round()) {
    for (const auto& [agent, node] : roster_.nodes()) {
      if (node.session && node.member_state() == MemberState::kReady) out.push_back(Send{*node.session, *next});
    }
  }
  send_check_orders(
      check_.begin(nodes_to_check(round_.slots(), roster_, check_rules()), check_rules(), clock_.now_ms()), out);
}

// If nodes can connect to no coordinator but this one, no other can be elected, and nothing is gained by needing their
// votes. No round has run yet, so that no node has another rule.
void Coordinator::do_without_next_leaders(const std::vector<AgentId>& members, Effects& out) {
  if (!leader_.has_no_next_leader(members)) return;
  std::vector<std::string> tried;
  for (const AgentId agent : members) {
    const Node& node = roster_.at(agent);
    if (agent != config_.own_agent && node.peer_port != 0)
      tried.push_back(format("{} at port {}", node.name(), node.peer_port));
  }
  settings_.rules.failover = JobRules::Failover::kUnreachable;  // also under a coordinator that is back
  leader_.follow(settings_.counts_votes(), false, clock_.now_ms());
  out.push_back(
      Note{format("this job ends if its coordinator's node is lost: no other node can be reached from here at the port "
                  "where it would take over ({}). Open these ports between the nodes, one number on all of them with "
                  "--rdzv-conf=coordinator_port=N; failover=off is the same without this warning",
                  tried.empty() ? "none has one" : some_of(tried)),
           kNoNextLeader});
}

void Coordinator::run_if_ready(Effects& out) {
  if (!is_preparing() || !round_.store()) return;
  if (check_.is_running() || !leader_.run(clock_.now_ms())) return;
  state_ = State::kRunning;
  round_.run();
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.member_state() == MemberState::kMember)
      out.push_back(Send{*node.session, RunWorkers{*round_.number(), *round_.store()}});
  }
}

void Coordinator::scale_up_if_due(Effects& out) {
  const int standby = static_cast<int>(roster_.count(MemberState::kReady));
  if (standby == 0) return;
  // When the workers of one node have succeeded the job is about to end: no round is restarted for newcomers.
  if (roster_.count(MemberState::kMember) < round_.slots().size()) return;
  const int size = static_cast<int>(roster_.count(MemberState::kMember) + roster_.count(MemberState::kDone));
  const membership::FormingRules rules = settings_.next_round();
  const auto decision =
      membership::decide_scale_up(size, standby, forming_.last_join_ms(), rules, settings_.scale_up, clock_.now_ms());
  if (!decision.grow_now) return clock_.look_again(decision.look_again_ms);
  round_.stopping().other = format("{} more {}", standby, standby == 1 ? "node has joined" : "nodes have joined");
  stop_round(out);
}

void Coordinator::stop_round(Effects& out) {
  if (state_ == State::kStopping) return;
  leader_.abandon();
  if (is_recovering()) {
    recovery_.stop();
  } else {
    state_ = State::kStopping;
  }
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.member_state() == MemberState::kMember || node.member_state() == MemberState::kDone)
      tell_to_stop(node, out);
  }
}

void Coordinator::tell_to_stop(Node& node, Effects& out) {
  roster_.move(node, MemberState::kStopping);
  out.push_back(Send{*node.session, StopWorkers{.round = *round_.number(),
                                                .hangs = hang_->ends(*round_.number()),
                                                .aborts = round_.stopping().aborts.contains(node.agent),
                                                .dumps = round_.stopping().dumps}});
}

void Coordinator::has_stopped(Node& node, Effects& out) {
  if (node.member_state() != MemberState::kLeaving) return is_ready(node, out);
  let_go(*node.session, node.leaves, out);
  orders_.has_left(node.agent);
  leader_.died(node.agent, clock_.now_ms());  // as good as dead: it looks for no other coordinator
  forget(node);
}

// No process of the round is left on the node. A node that is out leaves, at the latest when the round has ended.
void Coordinator::is_ready(Node& node, Effects& out) {
  roster_.move(node, MemberState::kReady);
  if (state_ == State::kForming && !node.unhealthy.empty()) turn_away_evicted(out);
}

// The node was told to leave, and the job goes on without it.
void Coordinator::let_go(NodeId session, const NodeLeaves& leaves, Effects& out) {
  JobResult job_result{.outcome = Outcome::kStopped,
                       .reason = why_it_left(leaves),
                       .round = round_.number().value_or(0),
                       .term = identity_.term(),
                       .restarts_used = settings_.budgets.restarts.used(),
                       .signal = leaves.signal};
  out.push_back(Send{session, EndJob{std::move(job_result)}});
  out.push_back(Send{session, Dismiss{}});
}

// Why the round ended is known now: each of its nodes has answered, or is lost.
void Coordinator::conclude_round(Effects& out) {
  std::vector<std::string> left = round_.stopping().left;
  Conclusion ended = conclude(round_.take_stop(),
                              {.all_succeeded = have_all_succeeded(round_.slots(), roster_),
                               .has_run = round_.has_run(),
                               .is_check_only = settings_.check.only,
                               .crash_loop = settings_.rules.crash_loop},
                              settings_.budgets);
  for (status::Failure& failure : ended.counted) {
    failure.round = round_.number().value_or(0);
    statistics_.failed(std::move(failure), clock_.now_ms());
  }
  if (ended.again) {
    round_.ends_for(*std::move(ended.again));
    statistics_.work_lost(round_.again().cause, clock_.now_ms());
  }
  if (ended.job_result) return end(*std::move(ended.job_result), out);
  if (round_.has_run()) {
    CheckedAgain again = checked_again(ended.failures, settings_.check);
    again.all = again.all || hang_->suspects_links();
    for (auto& [agent, node] : roster_.nodes()) node.passed_check = node.passed_check && !again.contains(node.slot);
  }
  round_.stopping().left = std::move(left);
  state_ = State::kForming;
  forming_.begin(clock_.now_ms());
  turn_away_evicted(out);
  form_if_due(out);
}

}  // namespace elastic::coordinator
