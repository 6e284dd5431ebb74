#include "rendezvous/coordinator/coordinator.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "rendezvous/coordinator/coordinator_notes.h"
#include "rendezvous/coordinator/hang_desk.h"
#include "rendezvous/coordinator/job_table.h"
#include "rendezvous/coordinator/transferred_state.h"
#include "rendezvous/discovery/duplicate_job.h"
#include "rendezvous/protocol/limits.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using membership::MemberState;

namespace {

JobPhase phase_of(Coordinator::State state, bool is_checking) {
  using State = Coordinator::State;
  switch (state) {
    case State::kForming: return JobPhase::kWaiting;
    case State::kRecovery: return JobPhase::kRecovery;
    case State::kPreparing: return is_checking ? JobPhase::kChecking : JobPhase::kPreparing;
    case State::kRunning: return JobPhase::kRunning;
    case State::kStopping:
    case State::kEnding:
    case State::kEnded: return JobPhase::kStopping;
  }
  return JobPhase::kWaiting;
}

bool is_of_round(const AgentMessage& message, std::optional<RoundNumber> round) {
  return std::visit(
      [&](const auto& known) {
        if constexpr (requires { known.round; }) return round == known.round;
        return false;
      },
      message);
}

// The message changes nothing about the round: it says how the workers do.
bool is_news(const AgentMessage& message) {
  return std::holds_alternative<NodeProgress>(message) || std::holds_alternative<NodeStacks>(message) ||
         std::holds_alternative<HangSigns>(message) || std::holds_alternative<NodeEvidence>(message) ||
         std::holds_alternative<LoaderSays>(message);
}

}  // namespace

Coordinator::Coordinator(CoordinatorConfig config, std::unique_ptr<health::CheckPlan> check)
    : config_(config),
      identity_({.term = config.term,
                 .incarnation = config.incarnation,
                 .random = config.random,
                 .birth_ms = config.birth_ms,
                 .least_birth_ms = config.least_birth_ms}),
      leader_(config.lease, config.own_agent, config.own_process),
      check_(std::move(check)),
      clock_(config.now_ms),
      statistics_(config.now_ms),
      forming_(config.now_ms, config.now_ms + config.lease.all_back_ms()),
      state_transfer_(std::make_unique<StateTransfer>()),
      loss_watch_(config.lease),
      hang_(std::make_unique<HangDesk>(config.random)) {}

Coordinator::Coordinator(Coordinator&&) noexcept = default;

Coordinator::~Coordinator() = default;

Effects Coordinator::on_event(const Event& event, std::int64_t now_ms) {
  Effects out;
  clock_.event_comes(now_ms);
  if (ended()) return out;
  // The leader lease may have ended while this process did not run. A job result is final: telling it needs no vote.
  if (const std::string why = has_result() ? "" : leader_.why_over(clock_.now_ms()); !why.empty()) {
    resign(why, out);
    return out;
  }
  clock_.notice_sleep(std::holds_alternative<TimePassed>(event) ? next_deadline_ms() : std::nullopt);
  std::visit([&](const auto& known) { run_cell_of(known, out); }, event);
  const bool renews = std::holds_alternative<KeepAliveReceived>(event) ||
                      (std::holds_alternative<LeaseAckReceived>(event) && leader_.may_act());
  const auto* said = std::get_if<MessageReceived>(&event);
  const bool changes_nothing = (renews || (said != nullptr && is_news(said->message))) && claims_.empty();
  const bool granted_leases = grants_leases();
  if (!changes_nothing) decide(out);
  ended() ? end_watch(HangDue{}, out) : run_cell_of(HangDue{}, out);
  const bool grants = std::holds_alternative<KeepAliveReceived>(event) || std::holds_alternative<Introduced>(event);
  if (grants || granted_leases != grants_leases()) leader_.grant(clock_.now_ms());
  if (!granted_leases && grants_leases()) answer_all(out);
  if (const auto* kept = std::get_if<KeepAliveReceived>(&event)) answer_keep_alive(kept->from, out);
  statistics_.enter(phase_of(state_, is_checking()), clock_.now_ms());
  if (!changes_nothing && roster_.check_is_due()) check_invariants();
  return out;
}

template <class Event, class... More>
void Coordinator::run_cell_of(const Event& event, More&... more) {
  if (ended()) return;
  const auto& row = std::get<JobRow<Event, More&...>>(JobTable::kRows);
  run_cell(row.cells, static_cast<std::size_t>(state_), *this, event, more...);
}

bool Coordinator::is_in_round() const { return JobTable::kInRound.has(state_); }

std::optional<std::int64_t> Coordinator::next_deadline_ms() const {
  if (ended()) return {};
  std::optional<std::int64_t> next;
  for (const auto due_ms : {loss_watch_.next_ms(), clock_.look_again_ms(), claims_.deadline_ms(),
                            leader_.look_again_ms(clock_.now_ms()), hang_->next_ms()}) {
    if (due_ms && (!next || *due_ms < *next)) next = due_ms;
  }
  return next;
}

// The answer to a keep-alive is a lease. A node that is not in the job, or not yet again, gets none.
void Coordinator::answer_keep_alive(NodeId session, Effects& out) const {
  const Node* node = ended() ? nullptr : roster_.of_session(session);
  if (node == nullptr) return;
  const auto grant = leader_.grant_for(grants_leases() || node->member_state() == MemberState::kReady);
  if (grant) out.push_back(AnswerKeepAlive{session, *grant});
}

// This coordinator may go on with the round: keep-alives that wait for their leases are answered.
void Coordinator::answer_all(Effects& out) const {
  std::vector<NodeId> sessions;
  for (const auto& [agent, node] : roster_.nodes()) {
    if (node.session) sessions.push_back(*node.session);
  }
  std::ranges::sort(sessions);
  for (const NodeId session : sessions) answer_keep_alive(session, out);
}

std::optional<Gossip> Coordinator::gossip() const {
  if (!leader_.leads_by_votes() || tells_result()) return {};
  std::string_view all;
  if (config_.own_agent) {
    const auto own = roster_.nodes().find(*config_.own_agent);
    if (own != roster_.nodes().end()) all = own->second.addresses;
  } else if (config_.own_process) {
    all = config_.own_process->addresses;
  }
  if (all.empty()) return {};
  std::string addresses(all.substr(0, limits::kGossipedBytes));
  if (addresses.size() < all.size()) addresses.resize(addresses.rfind(' '));
  return Gossip{std::move(addresses), 0, identity_.fence().birth_ms, round_.number()};
}

std::vector<NextLeader> Coordinator::next_leaders() const {
  std::vector<AgentId> members;
  for (const Slot& slot : round_.slots()) {
    if (roster_.nodes().contains(slot.agent)) members.push_back(slot.agent);
  }
  return leader_.next_leaders(candidates(members));
}

// These members of a round, by node rank, as they may lead the job after this coordinator.
std::vector<election::NextLeaderCandidate> Coordinator::candidates(const std::vector<AgentId>& members) const {
  std::vector<election::NextLeaderCandidate> nodes;
  for (const AgentId agent : members) {
    const Node& node = roster_.at(agent);
    nodes.push_back(
        {.node = {.agent = agent, .addresses = node.addresses, .port = node.peer_port}, .group = node.group});
  }
  return nodes;
}

// --- Events. ---------------------------------------------------------------------------------------

void Coordinator::on_message(const MessageReceived& event, Effects& out) {
  Node* node = roster_.of_session(event.from);
  if (node == nullptr) {
    // A session has to join first; messages of a session that was dropped are ignored.
    const auto* joins = std::get_if<NodeJoins>(&event.message);
    const auto* leaves = std::get_if<NodeLeaves>(&event.message);
    if (!claims_.is_waiting(event.from)) {
      if (joins != nullptr) join(event.from, *joins, out);
    } else if (leaves != nullptr) {
      claims_.withdraw(event.from);
      let_go(event.from, *leaves, out);
    } else if (is_of_round(event.message, round_.number()) && !is_news(event.message)) {
      claims_.withdraw(event.from);
      out.push_back(
          Drop{event.from, "its state has changed while it waited for its rank: it joins once more with that"});
    }
    return;
  }
  node->is_heard(clock_.now_ms());
  std::visit([&](const auto& known) { run_cell_of(known, *node, out); }, event.message);
}

void Coordinator::on_keep_alive(const KeepAliveReceived& event, Effects&) {
  if (Node* node = roster_.of_session(event.from)) node->is_heard(clock_.now_ms());
}

void Coordinator::on_session_ended(const SessionEnded& event, Effects& out) {
  claims_.withdraw(event.from);
  if (Node* node = roster_.of_session(event.from)) lose(*node, event.how, out);
}

void Coordinator::on_lease_ack(const LeaseAckReceived& event, Effects& out) {
  const Node* node = roster_.of_session(event.from);
  if (node == nullptr) return;
  leader_.acknowledges(node->agent, event.voter_state, event.since_ms, clock_.now_ms());
  run_if_ready(out);
}

void Coordinator::on_own_agent_ended(const OwnAgentEnded&, Effects& out) {
  if (config_.own_agent) leader_.died(*config_.own_agent, clock_.now_ms());
  run_if_ready(out);
}

// After a split vote one of two candidates is to resign at once, so that its voters find the other. It is the one of
// the lower term: each may have the vote of the other's node, and both must not resign.
void Coordinator::on_own_agent_elsewhere(const OwnAgentElsewhere& event, Effects& out) {
  if (event.term > identity_.term() && leader_.lacks_votes(clock_.now_ms()))
    resign("the agent of its own node has found another one", out);
}

void Coordinator::on_host_leaves(const HostLeaves& event, Effects& out) {
  const std::string text = format("the elastic-run beside it received {} and leaves", signal_name(event.signal));
  host_leaves("", text, {.signal = event.signal}, out);
}

void Coordinator::on_peer_port_tried(const PeerPortTried& event, Effects&) {
  leader_.peer_port_tried(event.agent, !event.address.empty());
  Node* node = roster_.find(event.agent);
  if (node == nullptr || event.address.empty()) return;
  // The other nodes are to try this address first, too.
  std::vector<std::string> addresses = split(node->addresses, ' ');
  const auto found = std::ranges::find(addresses, event.address);
  if (found == addresses.end()) return;
  std::rotate(addresses.begin(), found, found + 1);
  node->addresses = elastic::join(addresses, " ");
}

// Two hosts may both begin a job of this name: an endpoint's host that has come back empty, or each of the hosts that a
// name leads to.
void Coordinator::on_coordinator_gossiped(const CoordinatorGossiped& event, Effects& out) {
  if (!settings_.counts_votes()) return;
  const discovery::Duplicate duplicate =
      discovery::judge_duplicate_job({identity_.incarnation(), identity_.fence().birth_ms, round_.number()},
                                     {event.incarnation, event.birth_ms, event.round});
  if (duplicate == discovery::Duplicate::kGoesOn) return;
  if (duplicate == discovery::Duplicate::kGivesWay || !leader_.may_act()) {
    return resign(format("the job already has a coordinator at {}", event.where), out);
  }
  round_.stopping().fails(
      format("a job of this name with more rounds ({}, this one has {}) has its coordinator at {}: "
             "this one ends",
             *event.round + 1, *round_.number() + 1, event.where));
  return is_in_round() ? stop_round(out) : end(round_.stopping().job_result(), out);
}

void Coordinator::on_node_emptied(const NodeEmptied& event, Effects& out) {
  if (event.incarnation != identity_.incarnation() || event.round != round_.number()) return;
  Node* node = roster_.find(event.agent);
  if (node == nullptr) return;
  if (node->session && node->member_state() != MemberState::kReady) {
    // The guardian's message has overtaken the end of its agent's session.
    const std::string how = "its guardian reports that its agent has ended";
    out.push_back(Drop{*node->session, how});
    lose(*node, how, out);
    node = roster_.find(event.agent);
  }
  if (node == nullptr || node->member_state() != MemberState::kLost) return;
  out.push_back(Note{format("the guardian of {} reports that no process of the round is left", node->name())});
  leader_.died(event.agent, clock_.now_ms());
  forget(*node);
}

void Coordinator::on_node_emptied_in_recovery(const NodeEmptied& event, Effects& out) {
  if (event.incarnation != identity_.incarnation() || event.round != round_.number()) return;
  const Node* node = roster_.find(event.agent);
  if (node == nullptr || !node->session) recovery_.is_empty(event.agent);
  on_node_emptied(event, out);
}

void Coordinator::on_time_passed(const TimePassed&, Effects& out) {
  for (const AgentId agent : loss_watch_.silent_agents(roster_, clock_.now_ms())) {
    Node& node = roster_.at(agent);
    const std::string how = format("it sent nothing for {} ms", clock_.now_ms() - node.last_heard_ms);
    out.push_back(Drop{*node.session, how});
    lose(node, how, out);
  }
}

void Coordinator::on_operator_order(const OperatorOrder& event, Effects& out) {
  OperatorOrders::Ruling ruling = orders_.judge(event, {.roster = roster_,
                                                        .next_round = settings_.next_round(),
                                                        .has_workers = is_in_round(),
                                                        .job_ends = is_ending(),
                                                        .may_transfer_leadership = may_transfer_leadership()});
  out.push_back(operator_has_ordered(event, ruling.answer));
  out.push_back(std::move(ruling.answer));
  if (ruling.leaves) out.push_back(Send{*roster_.at(*ruling.leaves).session, LeaveJob{event.from}});
  if (!ruling.stops) return;
  round_.stopping().operator_stops();
  return is_in_round() ? stop_round(out) : end(round_.stopping().job_result(), out);
}

void Coordinator::on_store_is_open(const StoreIsOpen& message, Node& node, Effects& out) {
  if (!is_current(node, message.round) || node.place.node_rank != 0) return;
  round_.open_store(message.endpoint);
  run_if_ready(out);
}

void Coordinator::on_worker_failed(const WorkerFailed& message, Node& node, Effects& out) {
  if (!is_current(node, message.round)) return;
  // No restart is charged yet: the worker may have failed because a node died, which is not known here so far. It may
  // even end well.
  round_.stopping().worker_failed |= !message.is_uncertain;
  if (message.is_uncertain && !recovery_.stops()) round_.stopping().stopped_for = message.failure.rank;
  stop_round(out);
}

void Coordinator::on_worker_failed_stopping(const WorkerFailed& message, Node& node, Effects&) {
  if (is_current(node, message.round)) round_.stopping().worker_failed |= !message.is_uncertain;
}

void Coordinator::on_workers_succeeded(const WorkersSucceeded& message, Node& node, Effects&) {
  if (!is_current(node, message.round)) return;
  node.succeeded = true;  // the message may have crossed StopWorkers, so the node may be stopping already
  if (node.member_state() == MemberState::kMember) roster_.move(node, MemberState::kDone);
}

// Why the job fails where the node cannot go on with its round.
std::string Coordinator::why_it_cannot(const Node& node, const std::string& reason) const {
  return settings_.terms.max_nodes == 1 ? reason : format("{}: {}", node.name(), reason);
}

void Coordinator::note_that_it_stays(const NodeCannotRun& message, Node& node, Effects& out) {
  if (!message.may_stay || !is_current(node, message.round)) return;
  if (!node.unhealthy.empty() || round_.stopping().job_ends) return;
  out.push_back(Note{format("{} stays, since the job cannot do without it: {}", node.name(), message.reason)});
}

void Coordinator::on_node_cannot_run(const NodeCannotRun& message, Node& node, Effects& out) {
  if (message.may_stay) return note_that_it_stays(message, node, out);
  if (!is_current(node, message.round)) return;
  round_.stopping().fails(why_it_cannot(node, message.reason));
  stop_round(out);
}

void Coordinator::on_node_cannot_stop(const NodeCannotRun& message, Node& node, Effects& out) {
  if (!is_current(node, message.round)) return;
  if (can_leave_out(node, message.may_stay)) return leave_out_stuck(node, message.reason, out);
  on_node_cannot_run(message, node, out);
}

// The node came back while the next round was forming, and cannot end its workers.
void Coordinator::on_node_cannot_stop_forming(const NodeCannotRun& message, Node& node, Effects& out) {
  if (!is_current(node, message.round)) return;
  if (can_leave_out(node, message.may_stay)) return leave_out_stuck(node, message.reason, out);
  if (message.may_stay) return note_that_it_stays(message, node, out);
  end({.outcome = Outcome::kFailed, .reason = why_it_cannot(node, message.reason)}, out);
}

void Coordinator::on_node_stopped(const NodeStopped& message, Node& node, Effects& out) {
  if (!is_current(node, message.round)) return;
  const bool is_to_stop = node.member_state() != MemberState::kMember && node.member_state() != MemberState::kDone;
  if (!is_to_stop && !node.leaves_later) return;
  round_.stopping().add_failures(node, message.failures, settings_.terms.max_nodes > 1);
  if (message.false_alarm) round_.stopping().false_alarm = message.false_alarm;
  node.training_ports = message.training_ports;
  if (message.crash) round_.stopping().crashes.emplace_back(node.place.node_rank, *message.crash);
  has_stopped(node, out);
}

void Coordinator::on_node_leaves(const NodeLeaves& message, Node& node, Effects& out) {
  if (!leader_.may_act()) {  // the node leaves when a coordinator is elected
    node.leaves_later = message;
    return;
  }
  if (message.signal == 0) {  // its workers have succeeded, and its exit barrier has timed out
    if (node.member_state() != MemberState::kDone && node.member_state() != MemberState::kStopping) return;
    if (node.hosts_coordinator || waits_for_host()) {
      node.leaves_later = message;
      return;
    }
    return let_go_done(node, out);
  }
  const std::string text =
      message.ordered
          ? format("{} was drained by {}", node.name(), message.by_scheduler ? "the scheduler" : "an operator")
          : format("{} received {} and leaves", node.name(), signal_name(message.signal));
  if (node.hosts_coordinator) return host_leaves(node.name(), text, message, out);
  if (node.member_state() == MemberState::kLeaving) return;
  out.push_back(Note{text});
  node.leaves = message;
  if (can_do_without(node)) return roster_.move(node, MemberState::kLeaving);
  // A node that is not in the round is no reason to end it.
  if (node.slot || !is_in_round()) round_.stopping().left.push_back(text);
  news_.has_gone(node.agent, text, clock_.now_ms());
  const bool has_nothing = node.member_state() == MemberState::kReady;
  roster_.move(node, MemberState::kLeaving);
  if (has_nothing) return has_stopped(node, out);
  if (is_in_round()) stop_round(out);
}

void Coordinator::on_node_leaves_in_recovery(const NodeLeaves& message, Node& node, Effects& out) {
  // The coordinator's own node leaves when another one can be elected again.
  if (node.hosts_coordinator && settings_.counts_votes() && message.signal == SIGTERM) {
    node.leaves_later = message;
    return;
  }
  on_node_leaves(message, node, out);
}

void Coordinator::on_check_done(const CheckDone& message, Node& node, Effects& out) {
  if (!is_current(node, message.round)) return;
  if (check_.answer(node.place.node_rank, message.phase, message.result)) end_check_phase(out);
}

void Coordinator::on_round_heard(const RoundHeard& message, Node& node, Effects& out) {
  if (message.round != round_.number()) return;
  leader_.hears(node.agent);
  run_if_ready(out);
}

// Words of the node of group rank 0 go to all other nodes, and theirs go to that node.
void Coordinator::on_loader_says(const LoaderSays& message, Node& node, Effects& out) {
  if (!is_current(node, message.round)) return;
  const bool leads = node.place.node_rank == 0;
  for (const auto& [agent, other] : roster_.nodes()) {
    if (!other.session || !other.slot || (other.place.node_rank == 0) == leads) continue;
    out.push_back(Send{*other.session, LoaderTold{*round_.number(), node.place.node_rank, message.word}});
  }
}

void Coordinator::on_job_result_heard(const JobResultHeard& message, Node& node, Effects&) {
  ending_.has_heard(node.agent, message.details);
}

// --- Decisions after each event. -------------------------------------------------------------------

void Coordinator::decide(Effects& out) {
  clock_.wait_for_nothing();
  count_votes(out);
  look_at_leases(out);
  settle_claims(out);
  run_cell_of(EventHandled{}, out);
  // A node that had to go may have held the rank that another one waits for.
  if (!ended() && settle_claims(out)) run_cell_of(EventHandled{}, out);
}

void Coordinator::go_on_running(const EventHandled&, Effects& out) {
  if (roster_.count(MemberState::kMember) == 0) return end({.outcome = Outcome::kSucceeded}, out);
  let_done_nodes_leave(out);
  if (!runs_workers()) return;
  scale_up_if_due(out);
  if (runs_workers()) tell_who_stands_by(out);
}

void Coordinator::go_on_stopping(const EventHandled&, Effects& out) {
  let_done_nodes_leave(out);
  news_.drop_change();
  if (roster_.count(MemberState::kStopping) + roster_.count(MemberState::kLeaving) == 0) conclude_round(out);
}

void Coordinator::count_votes(Effects& out) {
  if (leader_.may_act()) return;
  const bool has_voters = std::ranges::any_of(
      roster_.nodes(), [](const auto& entry) { return entry.second.session && entry.second.belongs; });
  const election::Leader::Count count = leader_.count_votes(has_voters, clock_.now_ms());
  if (count.asks) ask_for_votes(out);
  if (!count.others_may_run_until_ms) return;
  out.push_back(Note{"enough nodes of the last round support this coordinator: it acts from now on"});
  recovery_.elected(*count.others_may_run_until_ms, clock_.now_ms());
  take_leaves(out);
}

// Asks each node at once, by an answer to its last keep-alive.
void Coordinator::ask_for_votes(Effects& out) const {
  for (const auto& [agent, node] : roster_.nodes()) {
    const auto question = leader_.grant_for(false);
    if (node.session && question) out.push_back(AnswerKeepAlive{*node.session, *question});
  }
}

// Handles the NodeLeaves that had to wait, of nodes that got a signal.
void Coordinator::take_leaves(Effects& out) {
  std::vector<AgentId> leavers;
  for (const auto& [agent, node] : roster_.nodes()) {
    if (node.leaves_later && node.leaves_later->signal != 0 && node.session) leavers.push_back(agent);
  }
  for (const AgentId agent : leavers) {
    Node* node = roster_.find(agent);
    if (node != nullptr && node->session) run_cell_of(*std::exchange(node->leaves_later, std::nullopt), *node, out);
  }
}

// --- Helpers. --------------------------------------------------------------------------------------

// The round can be completed without the node.
bool Coordinator::can_do_without(const Node& node) const {
  // A node whose workers have succeeded is not needed any more, unless it serves the round's store.
  const bool has_left = node.leaves_later && node.leaves_later->signal == 0;
  const bool is_needed = node.place.node_rank == 0 || !runs_workers();
  return node.member_state() == MemberState::kDone && (has_left || !is_needed);
}

// The node is in the last round, and that has this number.
bool Coordinator::is_current(const Node& node, RoundNumber round) const {
  return round_.number() == round && node.member_state() != MemberState::kReady &&
         node.member_state() != MemberState::kLost;
}

TransferredParts Coordinator::transferred_parts() {
  return {settings_, check_, *hang_, clock_.now_ms(), config_.unix_ms(clock_.now_ms())};
}

}  // namespace elastic::coordinator
