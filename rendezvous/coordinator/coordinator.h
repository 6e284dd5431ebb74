#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "health/check/check_plan.h"
#include "rendezvous/coordinator/coordinator_events.h"
#include "rendezvous/coordinator/event_clock.h"
#include "rendezvous/coordinator/forming_wait.h"
#include "rendezvous/coordinator/job_ending.h"
#include "rendezvous/coordinator/job_identity.h"
#include "rendezvous/coordinator/job_settings.h"
#include "rendezvous/coordinator/job_statistics.h"
#include "rendezvous/coordinator/last_round.h"
#include "rendezvous/coordinator/loss_watch.h"
#include "rendezvous/coordinator/operator_orders.h"
#include "rendezvous/coordinator/rank_claims.h"
#include "rendezvous/coordinator/recovery.h"
#include "rendezvous/coordinator/round_check.h"
#include "rendezvous/coordinator/round_slots.h"
#include "rendezvous/coordinator/round_stop.h"
#include "rendezvous/coordinator/waiting_news.h"
#include "rendezvous/election/leader.h"
#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/messages.h"
#include "src/status/snapshot.h"

namespace elastic::coordinator {

class HangDesk;
class StateTransfer;
struct HangEnd;
struct HangNow;
struct TransferredHang;
struct TransferredParts;

// Decides for the whole job: who is in a round, when it stops, whether it is restarted, how the job ends. job_table.h
// has its states, and what it does on each event in each of them.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorConfig config, std::unique_ptr<health::CheckPlan> check = health::no_check());
  Coordinator(Coordinator&&) noexcept;
  ~Coordinator();

  // Messages about an older round than the present one change nothing.
  Effects on_event(const Event& event, std::int64_t now_ms);

  // When TimePassed is due, by the clock of CoordinatorConfig::now_ms; empty if no time is waited for.
  std::optional<std::int64_t> next_deadline_ms() const;

  const CoordinatorConfig& config() const { return config_; }
  protocol::Term term() const { return identity_.term(); }
  protocol::Incarnation incarnation() const { return identity_.incarnation(); }
  protocol::Fence fence() const { return identity_.fence(); }
  bool ended() const { return state_ == State::kEnded; }
  // The job has its result, or gets it when its round has stopped.
  bool is_ending() const { return tells_result() || round_.stopping().job_ends; }
  // The coordinator has resigned because its process leaves: no other coordinator of the job may begin here.
  bool has_transferred_leadership() const { return ending_.is_left_to_next_leader(); }
  // How the job ended, once it has; without a job result if another coordinator took the job over.
  const JobEnding& ending() const { return ending_; }
  enum class State : std::uint8_t { kForming, kRecovery, kPreparing, kRunning, kStopping, kEnding, kEnded };
  State state() const { return state_; }
  // The last that was formed; empty: none was.
  std::optional<protocol::RoundNumber> round() const { return round_.number(); }
  const membership::Roster& roster() const { return roster_; }
  bool runs_workers() const { return state_ == State::kRunning; }
  // The job is in kPreparing, and nodes are being checked.
  bool is_checking() const { return is_preparing() && check_.is_running(); }
  // The job's status without its name and the figures of the check. At most `most_members` nodes are listed by name.
  status::Job status(std::int64_t now_ms, std::size_t most_members,
                     const std::function<std::string(protocol::NodeId session)>& address_of = {}) const;
  // Nodes may keep their workers running: this coordinator may go on with their round.
  bool grants_leases() const { return recovery_.grants_leases(); }
  const election::Leader& leader() const { return leader_; }  // for tests
  const HangDesk& hang() const { return *hang_; }
  // The gossip for a process that may take itself for the job's first coordinator. Empty while this one is a candidate
  // or ends, and where its own node is not in the job. The caller adds the port.
  std::optional<protocol::Gossip> gossip() const;
  // The nodes of the last round that may lead the job after this coordinator.
  std::vector<protocol::NextLeader> next_leaders() const;
  // The event comes before the agent's welcome: the agent has met another coordinator, or votes count, and its welcome
  // is a lease.
  bool must_hear(const Introduced& event) const {
    return event.incarnation != 0 || event.term > 0 || leader_.grant_for(false);
  }
  // For how long the welcome of an agent is a lease, in milliseconds: 0: it is none. Empty: without limit.
  std::optional<std::int64_t> welcome_lease_ms() const { return leader_.granted_ms(); }
  // Was elected, or needs no election.
  bool may_act() const { return leader_.may_act(); }
  // It was elected, or has begun the job, and another one may be elected after it. `now_ms`: the process may have
  // slept, and the votes be over.
  bool leads_by_votes(std::int64_t now_ms) const {
    return leader_.leads_by_votes() && leader_.why_over(now_ms).empty();
  }
  // No node is in the job and no round was formed: the job can be forgotten.
  bool is_empty() const {
    return !round_.has_formed() && !has_result() && !ended() && roster_.size() == 0 && claims_.empty();
  }

 private:
  friend struct JobTable;
  friend struct CoordinatorBreaker;  // for tests
  using Node = membership::Node;
  // An event that may change the round was handled: what follows from it is decided.
  struct EventHandled {};
  // Comes last: what is due of the watch for hangs.
  struct HangDue {};
  template <class Event, class... More>
  void run_cell_of(const Event& event, More&... more);

  // --- The cells of the table. ---
  void on_message(const MessageReceived& event, Effects& out);
  void on_keep_alive(const KeepAliveReceived& event, Effects& out);
  void on_session_ended(const SessionEnded& event, Effects& out);
  void on_introduced(const Introduced& event, Effects& out);
  void on_node_emptied(const NodeEmptied& event, Effects& out);
  void on_node_emptied_in_recovery(const NodeEmptied& event, Effects& out);
  void on_operator_order(const OperatorOrder& event, Effects& out);
  void on_time_passed(const TimePassed& event, Effects& out);
  void on_lease_ack(const LeaseAckReceived& event, Effects& out);
  void on_own_agent_ended(const OwnAgentEnded& event, Effects& out);
  void on_own_agent_elsewhere(const OwnAgentElsewhere& event, Effects& out);
  void on_host_leaves(const HostLeaves& event, Effects& out);
  void on_peer_port_tried(const PeerPortTried& event, Effects& out);
  void on_coordinator_gossiped(const CoordinatorGossiped& event, Effects& out);
  void on_store_is_open(const protocol::StoreIsOpen& message, Node& node, Effects& out);
  void on_worker_failed(const protocol::WorkerFailed& message, Node& node, Effects& out);
  void on_worker_failed_stopping(const protocol::WorkerFailed& message, Node& node, Effects& out);
  void on_workers_succeeded(const protocol::WorkersSucceeded& message, Node& node, Effects& out);
  void on_node_cannot_run(const protocol::NodeCannotRun& message, Node& node, Effects& out);
  void on_node_cannot_stop(const protocol::NodeCannotRun& message, Node& node, Effects& out);
  void on_node_cannot_stop_forming(const protocol::NodeCannotRun& message, Node& node, Effects& out);
  void note_that_it_stays(const protocol::NodeCannotRun& message, Node& node, Effects& out);
  void on_node_stopped(const protocol::NodeStopped& message, Node& node, Effects& out);
  void on_node_leaves(const protocol::NodeLeaves& message, Node& node, Effects& out);
  void on_node_leaves_in_recovery(const protocol::NodeLeaves& message, Node& node, Effects& out);
  void on_check_done(const protocol::CheckDone& message, Node& node, Effects& out);
  void on_job_result_heard(const protocol::JobResultHeard& message, Node& node, Effects& out);
  void on_round_heard(const protocol::RoundHeard& message, Node& node, Effects& out);
  void on_node_progress(const protocol::NodeProgress& message, Node& node, Effects& out);
  void on_hang_signs(const protocol::HangSigns& message, Node& node, Effects& out);
  void on_node_evidence(const protocol::NodeEvidence& message, Node& node, Effects& out);
  void on_loader_says(const protocol::LoaderSays& message, Node& node, Effects& out);
  void go_on_forming(const EventHandled&, Effects& out) { form_if_due(out); }
  void go_on_recovery(const EventHandled&, Effects& out);
  void go_on_preparing(const EventHandled&, Effects& out) { tell_who_stands_by(out); }
  void go_on_running(const EventHandled&, Effects& out);
  void go_on_stopping(const EventHandled&, Effects& out);
  void go_on_ending(const EventHandled&, Effects& out) { dismiss_if_all_heard(out); }
  void watch_hang(const HangDue&, Effects& out);
  void hand_stuck_on(const HangDue&, Effects& out);
  void hand_stuck_in_preparing(const HangDue&, Effects& out);
  void end_watch(const HangDue&, Effects&);

  void check_invariants() const;  // after each event: coordinator_invariants.cpp
  void count_votes(Effects& out);
  void ask_for_votes(Effects& out) const;
  void answer_keep_alive(protocol::NodeId session, Effects& out) const;
  void answer_all(Effects& out) const;
  std::vector<election::NextLeaderCandidate> candidates(const std::vector<protocol::AgentId>& members) const;
  std::string why_it_cannot(const Node& node, const std::string& reason) const;

  // coordinator_joining.cpp: which nodes are let in.
  void join(protocol::NodeId session, const protocol::NodeJoins& message, Effects& out);
  void take_settings(const protocol::NodeJoins& message);
  std::optional<protocol::Rejected> why_refused(const protocol::NodeJoins& message) const;
  bool waits_for_rank(protocol::NodeId session, const protocol::NodeJoins& message, Effects& out);
  bool settle_claims(Effects& out);
  void admit(protocol::NodeId session, const protocol::NodeJoins& message, Effects& out);
  void came_back(Node& node, const protocol::NodeJoins& message, Effects& out);
  bool begins_recovery(const protocol::NodeJoins& message, Effects& out);
  void take_over_job_result(const protocol::JobResult& job_result, Effects& out);
  void take_over_round(const protocol::AgentFacts& facts, Effects& out);
  void adopt_terms(const protocol::NodeJoins& message, Effects& out);
  void inherit(const protocol::Transferred& transferred, Effects& out);
  void try_peer_port(const Node& node, Effects& out);
  void do_without_next_leaders(const std::vector<protocol::AgentId>& members, Effects& out);

  // coordinator_round.cpp, coordinator_ending.cpp: rounds, losses, the end.
  void decide(Effects& out);
  void form_if_due(Effects& out);
  void tell_what_is_awaited(News news, Effects& out);
  void tell_who_stands_by(Effects& out);
  void form(int size, Effects& out);
  void run_if_ready(Effects& out);
  health::CheckRules check_rules() const;
  void send_check_orders(RoundCheck::Orders orders, Effects& out);
  void end_check_phase(Effects& out);
  void leave_out(const health::CheckPlan::Unhealthy& found, Effects& out);
  void turn_away_evicted(Effects& out);
  void scale_up_if_due(Effects& out);
  void stop_round(Effects& out);
  void tell_to_stop(Node& node, Effects& out);
  void take_leaves(Effects& out);
  void conclude_round(Effects& out);
  void has_stopped(Node& node, Effects& out);
  void is_ready(Node& node, Effects& out);
  void let_go(protocol::NodeId session, const protocol::NodeLeaves& leaves, Effects& out);
  void lose(Node& node, const std::string& how, Effects& out);
  void charge(const Node& node, Effects& out);
  void forget(const Node& node);
  void end(protocol::JobResult job_result, Effects& out);
  bool may_transfer_leadership() const;
  bool another_may_lead() const;
  void host_leaves(const std::string& name, const std::string& text, const protocol::NodeLeaves& leaves, Effects& out);
  bool may_go_on_without_host() const;
  bool waits_for_host() const;
  void let_done_nodes_leave(Effects& out);
  void let_go_done(const membership::Node& node, Effects& out);
  void resign(const std::string& why, Effects& out, bool transfers_leadership = false);
  void dismiss_if_all_heard(Effects& out);
  bool has_result() const { return ending_.job_result().has_value(); }
  // There is a job result, and nodes are still told.
  bool tells_result() const { return has_result() && !ended(); }
  bool is_recovering() const { return recovery_.has_begun() && !has_result() && !ended(); }
  // The node has been in the round that is being taken over.
  bool is_being_taken_over(const protocol::AgentFacts& facts) const {
    return is_recovering() && recovery_.is_of_round(facts);
  }
  // A round is on, or being taken over.
  bool is_in_round() const;
  bool is_preparing() const { return state_ == State::kPreparing; }
  void look_at_leases(Effects& out);
  bool can_do_without(const Node& node) const;
  bool is_current(const Node& node, protocol::RoundNumber round) const;
  TransferredParts transferred_parts();

  // coordinator_hang.cpp: a round that makes no progress.
  HangNow hang_now() const;
  void leave_out_for_hang(const HangEnd& end, Effects& out);
  void leave_out_as_before(const TransferredHang& hang);
  void end_hang(const HangEnd& end, Effects& out);
  void spread_state(const protocol::Transferred& transferred, Effects& out);
  bool can_leave_out(const Node& node, bool may_stay) const;
  void leave_out_stuck(Node& node, const std::string& why, Effects& out);

  CoordinatorConfig config_;
  JobIdentity identity_;
  election::Leader leader_;
  RoundCheck check_;
  EventClock clock_;
  State state_ = State::kForming;
  membership::Roster roster_;

  JobSettings settings_;
  LastRound round_;
  JobStatistics statistics_;
  FormingWait forming_;
  WaitingNews news_;
  Recovery recovery_;
  std::unique_ptr<StateTransfer> state_transfer_;
  RankClaims claims_;
  LossWatch loss_watch_;
  JobEnding ending_;
  OperatorOrders orders_;
  std::unique_ptr<HangDesk> hang_;
};

// As --replay names them.
constexpr auto names_of(Coordinator::State) {
  return std::array{"forming", "rebuilding", "preparing", "running", "stopping", "ending", "ended"};
}

}  // namespace elastic::coordinator
