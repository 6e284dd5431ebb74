// Which nodes are let into the job, how nodes come back to it, and how a coordinator that has just started learns of a
// round that runs already.
#include <algorithm>
#include <utility>

#include "rendezvous/coordinator/admission.h"
#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/coordinator_notes.h"
#include "rendezvous/coordinator/coordinator_refusals.h"
#include "rendezvous/coordinator/hang_desk.h"
#include "rendezvous/coordinator/transferred_state.h"
#include "rendezvous/protocol/term.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using membership::MemberState;

namespace {

using Activity = AgentFacts::Activity;

HostRecord record_of(const std::string& host, const RoundCheck& check, const LossBudget& losses, std::int64_t now_ms) {
  HostRecord record{.eviction = check.eviction_of(host)};
  if (const auto until_ms = losses.quarantined_until(host, now_ms)) record.quarantined_ms = *until_ms - now_ms;
  return record;
}

// The node's workers have succeeded in the round that runs, and the round went on without the node.
bool is_done_in(const Coordinator& job, const AgentFacts& facts) {
  return job.runs_workers() && facts.activity == Activity::kSucceeded && facts.incarnation == job.incarnation() &&
         facts.round == job.round();
}

}  // namespace

void Coordinator::on_introduced(const Introduced& event, Effects& out) {
  if (event.incarnation == 0 && event.term == 0) return;
  const Term term = identity_.term();
  // While the leader lease holds, no other coordinator can have been elected: the agent has met a candidate that was
  // not, because its voters were cut off from this coordinator. The nodes follow a coordinator that takes a higher term
  // only if they know by its own agent that it is in the same process.
  const bool leads = config_.own_agent && leader_.is_sole_leader(clock_.now_ms());
  const JobIdentity::Met met =
      identity_.meet(event, round_.has_formed() || recovery_.has_begun(), leads || is_recovering());
  // The job is older than this coordinator: what the agent is about to report comes before a round is formed.
  if (met == JobIdentity::Met::kJob) forming_.not_first_before(clock_.now_ms() + config_.lease.all_back_ms());
  if (met == JobIdentity::Met::kJob && tells_result()) {
    // Answers that are under way carry the previous incarnation: the job result is sent again with the new one.
    for (const auto& [agent, node] : roster_.nodes()) {
      if (node.session && !ending_.is_heard_by(agent))
        out.push_back(Send{*node.session, EndJob{*ending_.job_result()}});
    }
  }
  if (term != identity_.term() && !leader_.may_act()) {
    leader_.campaign(clock_.now_ms());
    ask_for_votes(out);
  }
  if (met != JobIdentity::Met::kLaterCoordinator) return;
  // The agents of this coordinator follow another one by now.
  out.push_back(Note{format("a coordinator of term {} has taken over from this one of term {}",
                            text_of_term(event.term), text_of_term(identity_.term()))});
  for (auto& [agent, node] : roster_.nodes()) {
    if (node.session) out.push_back(Drop{*node.session, "another coordinator has taken over"});
  }
  state_ = State::kEnded;
}

void Coordinator::join(NodeId session, const NodeJoins& message, Effects& out) {
  if (const std::string problem = nonsense(message); !problem.empty()) {
    out.push_back(Note{format("{} was rejected: {}", message.address, problem)});
    out.push_back(Send{session, Rejected{Rejected::Why::kTermsDiffer, problem, {}}});
    return;
  }
  Node* const known = roster_.find(message.agent);
  if (known != nullptr && message.session < known->joined_by) {
    // The kernel goes on to deliver what was written to a connection after its agent has given it up and closed it.
    out.push_back(Drop{session, "its agent has opened another session since"});
    return;
  }
  if (known != nullptr && known->session) {
    // The agent has noticed earlier than this coordinator that its connection is dead.
    out.push_back(Drop{*known->session, "its agent has opened another session"});
    lose(*known, "it lost its connection and has reconnected", out);
  }
  if (!settings_.are_known) take_settings(message);
  identity_.hear_of_birth(message.facts, round_.has_formed());
  // The host was not known when its node was lost.
  if (recovery_.was_missed(message.facts)) charge(newcomer(message), out);
  if (begins_recovery(message, out)) {
    if (tells_result()) return admit(session, message, out);  // the node brought the job result itself
  }
  settings_.budgets.error_files_wait |= message.facts.error_files_wait;
  if (const auto rejected = why_refused(message)) {
    out.push_back(Note{format("{} was rejected: {}", message.address, rejected->reason)});
    out.push_back(Send{session, *rejected});
    return;
  }
  if (waits_for_rank(session, message, out)) return;
  if (auto differences = rules_that_differ(message, settings_.rules)) out.push_back(*std::move(differences));
  if (auto differences = hang_rules_that_differ(message, settings_.rules)) out.push_back(*std::move(differences));
  admit(session, message, out);
  // The node's last session may have ended before the order was read.
  if (orders_.has_drained(message.agent)) out.push_back(Send{session, LeaveJob{}});
  if (leader_.next_round() && roster_.of_session(session) != nullptr) {
    out.push_back(Send{session, *leader_.next_round()});
  }
}

void Coordinator::take_settings(const NodeJoins& message) {
  settings_ = settings_of(message);
  hang_->follow(settings_.rules);
  leader_.follow(settings_.counts_votes(), round_.has_formed(), clock_.now_ms());
  forming_.restart_clock(clock_.now_ms());
}

std::optional<Rejected> Coordinator::why_refused(const NodeJoins& message) const {
  const AgentFacts& facts = message.facts;
  const bool was_in_job = facts.incarnation == identity_.incarnation();
  const bool is_known = roster_.nodes().contains(message.agent);
  const std::string host = newcomer(message).identity();
  const Applicant applicant{.was_in_job = was_in_job,
                            .comes_back = (is_known && was_in_job && round_.number() == facts.round) ||
                                          is_being_taken_over(facts) || is_done_in(*this, facts),
                            .host = record_of(host, check_, settings_.budgets.losses, clock_.now_ms())};
  return refusal(message, applicant, settings_, roster_.size(), tells_result());
}

// A newcomer does not get the rank of a node that is alive, but replaces one that is dead.
bool Coordinator::waits_for_rank(NodeId session, const NodeJoins& message, Effects& out) {
  if (message.node_rank && is_being_taken_over(message.facts)) {
    // Newcomers have asked for the rank before the node came back that has it in the round that runs.
    const std::string reason =
        format("rank {} belongs to a node of the running round; give each node a rank of its own", *message.node_rank);
    for (const AgentId agent : newcomers_with_claim(roster_, *message.node_rank)) {
      const Node& node = roster_.at(agent);
      out.push_back(Send{*node.session, Rejected{Rejected::Why::kRankTaken, reason, {}}});
      forget(node);
    }
    return false;
  }
  const RankClaims::Answer answer = claims_.claim(session, message, roster_, clock_.now_ms());
  if (answer.refusal) out.push_back(Send{session, *answer.refusal});
  if (answer.asked != nullptr) {
    out.push_back(Note{format("{} asks for rank {} of {}: checking whether that node is alive", message.address,
                              *message.node_rank, answer.asked->name())});
    out.push_back(Send{*answer.asked->session, AreYouThere{}});
  }
  return answer.refusal || answer.asked != nullptr;
}

// Whether any was settled.
bool Coordinator::settle_claims(Effects& out) {
  std::size_t position = 0;
  bool any = false;
  while (const auto settled = claims_.settle(position, roster_, clock_.now_ms())) {
    any = true;
    if (settled->refusal) {
      out.push_back(Note{settled->refusal->reason, kRankTaken});
      const Node& holder = roster_.at(settled->holder);
      if (!is_in_round()) news_.has_gone(holder.agent, asked_for_rank(settled->message, holder), clock_.now_ms());
      out.push_back(Send{settled->session, *settled->refusal});
      continue;
    }
    if (settled->holder_is_silent) {
      Node& holder = roster_.at(settled->holder);
      const std::string how =
          format("it did not answer when another node claimed its rank {}", *settled->message.node_rank);
      out.push_back(Drop{*holder.session, how});
      lose(holder, how, out);
    }
    join(settled->session, settled->message, out);
  }
  return any;
}

void Coordinator::admit(NodeId session, const NodeJoins& message, Effects& out) {
  loss_watch_.watch(clock_.now_ms());
  news_.is_back(message.agent);
  if (Node* known = roster_.find(message.agent)) {
    loss_watch_.forget(known->agent);
    roster_.set_session(*known, session);
    known->is_heard(clock_.now_ms());
    known->joined_by = message.session;
    known->training_ports = message.training_ports;
    known->leaves_later.reset();
    try_peer_port(*known, out);
    known->belongs = known->belongs || message.facts.incarnation == identity_.incarnation();
    return came_back(*known, message, out);
  }
  const AgentFacts& facts = message.facts;
  const bool is_of_round = is_being_taken_over(facts);
  const bool is_done = is_done_in(*this, facts);
  Node node;
  node.agent = message.agent;
  node.session = session;
  node.shape = {message.local_world_size, message.role};
  node.address = message.address;
  node.addresses = message.addresses;
  node.group = message.group;
  node.peer_port = message.peer_port;
  node.training_ports = message.training_ports;
  node.claimed_rank = message.node_rank;
  node.hosts_coordinator = message.hosts_coordinator;
  node.arrival = roster_.arrivals();
  node.last_heard_ms = clock_.now_ms();
  node.joined_by = message.session;
  node.belongs = facts.incarnation == identity_.incarnation();
  if (is_of_round) {
    node.slot = facts.place.node_rank;
    node.place = facts.place;
    if (!has_slot(round_.slots(), node.agent)) {
      round_.add({node.agent, *node.slot, node.address});
    }
  } else if (facts.incarnation != 0) {
    const auto slot = std::ranges::find(round_.slots(), message.agent, &Slot::agent);
    if (slot != round_.slots().end()) node.slot = slot->slot;
  }
  try_peer_port(node, out);
  if (is_done) {
    node.place = facts.place;
    node.succeeded = true;
    roster_.add(std::move(node), MemberState::kDone);
    return;
  }
  forming_.newcomer_joins(clock_.now_ms());
  Node& added = roster_.add(std::move(node), MemberState::kReady);
  if (tells_result()) {
    out.push_back(Send{session, EndJob{*ending_.job_result()}});
    return;
  }
  if (is_of_round) came_back(added, message, out);
}

void Coordinator::try_peer_port(const Node& node, Effects& out) {
  if (node.offers_peer_port() && leader_.is_to_try(node.agent, clock_.now_ms()))
    out.push_back(TryPeerPort{node.agent, node.addresses, node.peer_port});
}

// The node was in the present round, and has reported the state of its workers.
void Coordinator::came_back(Node& node, const NodeJoins& message, Effects& out) {
  const AgentFacts& facts = message.facts;
  if (facts.activity == Activity::kIdle || facts.round != round_.number()) {
    if (facts.round == round_.number()) {
      round_.stopping().add_failures(node, facts.failures, settings_.terms.max_nodes > 1);
      if (facts.false_alarm) round_.stopping().false_alarm = facts.false_alarm;
    }
    is_ready(node, out);
    if (is_recovering()) stop_round(out);
    return;
  }
  node.succeeded = facts.activity == Activity::kSucceeded;
  roster_.move(node, node.succeeded ? MemberState::kDone : MemberState::kMember);
  if (is_recovering()) recovery_.comes_back(facts.activity);
  const bool may_go_on = is_recovering() && !recovery_.stops() &&
                         (facts.activity == Activity::kRunning || facts.activity == Activity::kSucceeded);
  if (may_go_on) return;
  tell_to_stop(node, out);
  if (is_recovering()) stop_round(out);
}

// --- A coordinator that takes over a job that runs. ---------------------------------------------------

// Takes over the round or the job result that the agent reports, and returns true, if this coordinator did not know it.
bool Coordinator::begins_recovery(const NodeJoins& message, Effects& out) {
  const AgentFacts& facts = message.facts;
  // A job result is final, however late it arrives, unless the job has begun another round since.
  const bool is_over = facts.job_result && !tells_result() && !round_.is_after(*facts.job_result);
  const bool may = is_over || (!round_.has_formed() && !has_result() && !ended()) || is_recovering();
  if (!may || facts.incarnation == 0 || facts.incarnation != identity_.incarnation()) return false;
  if (!round_.has_formed() && message.terms != settings_.terms) adopt_terms(message, out);
  const bool is_new = !facts.job_result && (!round_.has_formed() || recovery_.is_later(facts));
  if (facts.job_result) {
    settings_.budgets.restarts.set_used(std::max(settings_.budgets.restarts.used(), facts.job_result->restarts_used));
  } else if (is_new) {
    // A round that was prepared, and given up when another coordinator was elected, may have counted more restarts.
    settings_.budgets.restarts.set_used(facts.restart_count);
  }
  settings_.budgets.losses.set_losses(std::max(settings_.budgets.losses.losses(), facts.losses));
  if (facts.job_result) {
    take_over_job_result(*facts.job_result, out);
    return true;
  }
  if (is_new) take_over_round(facts, out);
  if (is_being_taken_over(facts)) {
    recovery_.is_reported(facts);
    inherit(facts.transferred, out);
  }
  return is_new || is_recovering();
}

// The node brings the state that the coordinator before has transferred.
void Coordinator::inherit(const Transferred& transferred, Effects& out) {
  using Taken = StateTransfer::Taken;
  const bool error_files_wait = settings_.budgets.error_files_wait;
  const Taken taken = state_transfer_->adopt_state(transferred, transferred_parts());
  if (taken == Taken::kUnreadable) {
    out.push_back(Note{"what the coordinator before has handed over cannot be read: going on without it"});
  }
  settings_.budgets.error_files_wait |= error_files_wait;
  // All nodes of a round bring the same: only the first of them costs a look at every node.
  if (taken != Taken::kNew) return;
  leader_.follow(settings_.counts_votes(), round_.has_formed(), clock_.now_ms());
  // The round was ending for a hang. Its nodes are told so, and failures there meanwhile are a consequence.
  if (hang_->was_ending(*round_.number()) != nullptr)
    round_.stopping().hang = "the job hung, and its coordinator was lost while the round ended";
  // Nodes that found this coordinator earlier may be on hosts that are not let in.
  std::vector<Node*> newcomers;
  for (auto& [agent, node] : roster_.nodes()) {
    if (!node.belongs && node.session) newcomers.push_back(&node);
  }
  for (Node* node : newcomers) {
    auto rejected = refusal(record_of(node->identity(), check_, settings_.budgets.losses, clock_.now_ms()));
    if (!rejected) continue;
    out.push_back(Send{*node->session, *std::move(rejected)});
    forget(*node);
  }
}

// The job had ended before this coordinator took it over.
void Coordinator::take_over_job_result(const JobResult& job_result, Effects& out) {
  out.push_back(Note{"an agent reports the verdict of an earlier coordinator"});
  ending_.stay_for_other_nodes(config_.now_ms + config_.lease.all_back_ms());
  // Nodes that were in no round of the job are rejected like those that come later: the job result is not about them.
  std::vector<Node*> fresh;
  for (auto& [agent, node] : roster_.nodes()) {
    if (!node.belongs) fresh.push_back(&node);
  }
  for (Node* node : fresh) {
    if (node->session) out.push_back(Send{*node->session, job_is_ending()});
    forget(*node);
  }
  round_.was_last(job_result.round);
  end(job_result, out);
}

void Coordinator::take_over_round(const AgentFacts& facts, Effects& out) {
  out.push_back(Note{format("round {} runs already: taking it over from the reports of its {} nodes", facts.round,
                            facts.place.node_count)});
  if (round_.has_formed()) {
    // Nodes that reported an older round do not know that it is over.
    std::vector<Node*> older;
    for (auto& [agent, node] : roster_.nodes()) {
      node.slot.reset();
      if (node.member_state() != MemberState::kReady) older.push_back(&node);
    }
    for (Node* node : older) {
      std::string reason = format("its workers belong to round {}, which is over", *round_.number());
      if (node->session) {
        out.push_back(Send{*node->session, Rejected{Rejected::Why::kRoundWentOn, std::move(reason), 0}});
      }
      forget(*node);
    }
  }
  if (!round_.has_formed()) leader_.campaign(clock_.now_ms());
  round_.take_over(facts.round);
  recovery_.begin(facts, config_.lease, clock_.now_ms());
  state_ = State::kRecovery;
}

// The job's terms are those of the nodes that were in it, not those of newcomers that found this coordinator earlier.
void Coordinator::adopt_terms(const NodeJoins& message, Effects& out) {
  std::vector<Node*> newcomers;
  for (auto& [agent, node] : roster_.nodes()) newcomers.push_back(&node);
  for (Node* node : newcomers) {
    out.push_back(Send{*node->session, terms_differ(settings_.terms, message.terms)});
    forget(*node);
  }
  take_settings(message);
}

void Coordinator::go_on_recovery(const EventHandled&, Effects& out) {
  using Kind = Recovery::Decision::Kind;
  const TransferredHang* const hang = hang_->was_ending(*round_.number());
  const Recovery::Decision decision = recovery_.decide({.slots = round_.slots(),
                                                        .roster = roster_,
                                                        .counts_votes = settings_.counts_votes(),
                                                        .needs_election = !leader_.may_act(),
                                                        .job_ends = round_.stopping().job_ends && leader_.may_act(),
                                                        .out = hang != nullptr ? hang->out : std::vector<int>{},
                                                        .caught_up_ms = clock_.caught_up_ms(),
                                                        .now_ms = clock_.now_ms()});
  if (decision.kind == Kind::kWaits) {
    news_.drop_change();
    return clock_.look_again(decision.until_ms);
  }
  if (decision.kind == Kind::kFails) {
    // Nodes whose leases are over come once more when their workers are gone.
    ending_.stay_for_other_nodes(clock_.now_ms() + LeaseTimes::kFindMs);
    return end({.outcome = Outcome::kFailed, .reason = decision.why}, out);
  }
  if (settings_.first_size == 0) settings_.first_size = decision.node_count;
  round_.sort_slots();
  for (const int rank : decision.missed) {
    const std::string how = "it did not reconnect after the coordinator was lost";
    round_.stopping().lost.push_back({rank, "", how});
    out.push_back(node_is_missed(rank, how));
    settings_.budgets.losses.count_loss();
  }
  state_ = State::kRunning;
  if (hang != nullptr) {
    leave_out_as_before(*hang);
    // The last coordinator has charged the hang.
    const int hangs = hang->charges.used;
    if (hangs > settings_.rules.hang_restarts.value_or(0))
      round_.stopping().fails(format("the job has hung {}, more than hang_restarts allows", counted(hangs, "time")));
    stop_round(out);
  } else if (decision.kind == Kind::kGoesOn) {
    out.push_back(Note{format("all {} nodes of round {} have reconnected: training goes on", round_.slots().size(),
                              *round_.number())});
  } else {
    stop_round(out);
  }
  take_leaves(out);
  if (!ended()) decide(out);
}

}  // namespace elastic::coordinator
