#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/coordinator/attribution.h"
#include "rendezvous/coordinator/budget.h"
#include "rendezvous/coordinator/check_plan.h"
#include "rendezvous/coordinator/crash_loop.h"
#include "rendezvous/coordinator/job_statistics.h"
#include "rendezvous/coordinator/loss_budget.h"
#include "rendezvous/membership/ranks.h"
#include "rendezvous/membership/roster.h"
#include "rendezvous/membership/round_forming.h"
#include "rendezvous/membership/scale_up.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/json.h"
#include "src/status/snapshot.h"

namespace elastic::coordinator {

// What a coordinator is born with.
struct CoordinatorConfig {
  protocol::Term term = 1;                // that of every first coordinator; it rises above those that agents report
  protocol::Incarnation incarnation = 1;  // random: of the job, should it be a new one
  protocol::LeaseTimes lease = {};
  std::int64_t now_ms = 0;   // when its process began, by the clock of all further times
  std::uint32_t random = 0;  // for its term, should it take a job over
  bool is_claimed = false;   // nodes find it by a claim, and so no other of the job
};

// --- What happens to a coordinator. ----------------------------------------------------------------

// A node's session says something; the first message is NodeJoins.
struct MessageReceived {
  protocol::NodeId from = 0;
  protocol::AgentMessage message;
};
// A sign of life.
struct KeepAliveReceived {
  protocol::NodeId from = 0;
};
// The session is over, by a reset or its end.
struct SessionEnded {
  protocol::NodeId from = 0;
  std::string how;     // "its connection was reset"
  bool by_us = false;  // the coordinator could not act: no node is to blame
};
// An agent that introduces itself knows of an earlier coordinator. Comes before its welcome.
struct Introduced {
  protocol::Incarnation incarnation = 0;
  protocol::Term term = 0;
};
// A guardian's word: no process of this round is left on the node.
struct NodeEmptied {
  protocol::AgentId agent = 0;
  protocol::Incarnation incarnation = 0;
  protocol::RoundNumber round = 0;
};
// The time of next_deadline_ms() has come.
struct TimePassed {};
using Event = std::variant<MessageReceived, KeepAliveReceived, SessionEnded, Introduced, NodeEmptied, TimePassed>;

// --- What a coordinator wants done, in this order. --------------------------------------------------

struct Send {
  protocol::NodeId to = 0;
  protocol::CoordinatorMessage message;
};
// The session is of no use any more: to be closed. No SessionEnded comes for it.
struct Drop {
  protocol::NodeId session = 0;
  std::string reason;
};
// A decision and its reason, for the log and for --replay. `event` is a word for programs, and `fields` what they are
// told beside the text: an object, or null.
struct Note {
  std::string text;
  std::string_view event = "coordinator";
  Json fields = {};
};
// The events of notes that every node tells by itself, too, when it hears of them.
inline constexpr std::string_view kRoundFormed = "round_formed";
inline constexpr std::string_view kJobEnds = "job_ends";
// Those about a node that somebody may have to look at.
inline constexpr std::string_view kNodeLost = "node_lost";
inline constexpr std::string_view kNodeUnfit = "node_unfit";
inline constexpr std::string_view kNodeKeptOut = "node_kept_out";
// How the verdict begins of a job that was to be checked and no more, where a node or a link is not fit. Behind it
// stands what of each, with its name before it.
inline constexpr std::string_view kFoundUnfit = "the check has found what is not fit";
// The check of a round is over; what its phases have found, for a report.
struct CheckJudged {
  protocol::RoundNumber round = 0;
  std::vector<CheckNode> nodes;        // by node rank
  std::vector<CheckResults> results;   // by phase
  std::vector<std::int64_t> phase_ms;  // how long each took
  std::vector<CheckPlan::Unfit> unfit;
  protocol::CheckRules rules = {};
};
using Effect = std::variant<Send, Drop, Note, CheckJudged>;
using Effects = std::vector<Effect>;

// Decides for the whole job: who is in a round, when it stops, whether it is restarted, how the job ends.
//
//                  +--------------------- all stopped, restart paid for -----------------+
//                  v                                                                     |
//   kForming -- enough nodes --> kPreparing -- store open, check passed --> kRunning --> kStopping
//      |  ^                          |                                      |   failure, loss, leave,
//      |  |                          +------- the same --------------------------> scale up
//      |  +-- round re-formed                                               |
//      +-- join timeout --> kEnding <-- all succeeded ----------------------+
//                             |  ^---------------- all stopped, nothing left to spend, or told to end
//                             +-- all have heard --> kEnded
//
//   kRebuilding, in place of kForming, where agents report a round that an earlier coordinator formed.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorConfig config, std::unique_ptr<CheckPlan> check = no_check());

  // What is older than the present round changes nothing.
  Effects on_event(const Event& event, std::int64_t now_ms);

  // When TimePassed is to be told, if at all.
  std::optional<std::int64_t> next_deadline_ms() const;

  const CoordinatorConfig& config() const { return config_; }
  protocol::Term term() const { return term_; }
  protocol::Incarnation incarnation() const { return incarnation_; }
  bool ended() const { return state_ == State::kEnded; }
  // Of a job that has ended; without one where another coordinator took over.
  const std::optional<protocol::Verdict>& verdict() const { return verdict_; }

  // What a node has told of the worker that failed first, for all others; empty: none has.
  const std::string& details() const { return details_; }

  enum class State : std::uint8_t { kForming, kRebuilding, kPreparing, kRunning, kStopping, kEnding, kEnded };
  State state() const { return state_; }
  // The last round that was prepared, if one was.
  std::optional<protocol::RoundNumber> round() const;
  std::size_t nodes() const { return roster_.size(); }
  // kPreparing: a phase of the check is awaited.
  bool is_checking() const { return state_ == State::kPreparing && check_phase_ < check_phases_; }
  // What is to be told of the job now, without its name; of its nodes so many by name. The check's figures are not
  // known here.
  status::Job status(std::int64_t now_ms, std::size_t most_members) const;
  // Workers that run may run on: not those of a round that may go on with another coordinator.
  bool grants_leases() const { return !rebuild_ || rebuild_->has_quorum; }
  // The session is of a node that is in the job, and its lease may be renewed.
  bool may_renew_lease(protocol::NodeId session) const;
  // Nobody is there, and no round was: as if there had never been anybody.
  bool is_empty() const { return state_ == State::kForming && !round_ && roster_.size() == 0 && held_.empty(); }

 private:
  using Node = membership::Node;
  using Standing = membership::Standing;

  // A newcomer that claims the rank of a node which is here: held until that has given a sign of life.
  struct Held {
    protocol::NodeId session = 0;
    protocol::NodeJoins join;
    protocol::AgentId incumbent = 0;
    std::uint64_t heard_of_it = 0;  // signs of life of the incumbent before it was asked
    std::int64_t until_ms = 0;
  };
  // Why the round is being stopped. Filled while it stops; what follows is decided when all have.
  struct Stopping {
    bool job_ends = false;  // by order, or because a node cannot run at all
    Outcome outcome = Outcome::kFailed;
    int signal = 0;
    std::string fatal;  // the verdict's reason where the job ends
    std::vector<LostNode> lost;
    std::vector<std::string> left;  // names of nodes that were told to go
    std::vector<protocol::WorkerFailure> failures;
    std::vector<std::pair<int, protocol::Crash>> crashes;  // by node rank: the first failure there
    bool worker_failed = false;
    std::string other;      // a reason that costs nothing: scaling up, an unfit node
    bool by_check = false;  // `other` is what the check has found
  };
  // What is known of the round that an earlier coordinator formed.
  struct Rebuild {
    std::uint64_t membership = 0;
    int node_count = 0;
    std::int64_t began_ms = 0;
    std::int64_t until_ms = 0;  // by then every lease that it gave is over, and who looks for us has found us
    bool stops = false;         // the round cannot go on
    // A node runs it, or is about to, under a lease: no later round can have been formed. Who is idle, stopping or
    // done may have missed one.
    bool is_latest = false;
    bool has_quorum = false;  // so many of its nodes have been here at once that no other coordinator can have as many
    bool waits = false;       // for that, and all have been told to stop
  };
  // What nodes that are in no round wait for.
  struct News {
    int here = 0;
    int least = 0;
    int most = 0;
    std::optional<std::int64_t> since_ms = {};
    std::optional<std::int64_t> until_ms = {};
    std::string what = {};
    std::string because = {};
    std::int64_t because_at_ms = 0;
    bool operator==(const News&) const = default;
  };
  // A node that has gone since the last round was formed, and is not back.
  struct Gone {
    protocol::AgentId agent = 0;
    std::string text;
    std::int64_t at_ms = 0;
  };
  // Where each node of the last round sat.
  struct Seat {
    protocol::AgentId agent = 0;
    int seat = 0;
    std::string address;
  };

  void on(const MessageReceived& event, Effects& out);
  void on(const KeepAliveReceived& event, Effects& out);
  void on(const SessionEnded& event, Effects& out);
  void on(const Introduced& event, Effects& out);
  void on(const NodeEmptied& event, Effects& out);
  void on(const TimePassed& event, Effects& out);

  void on(Node& node, const protocol::NodeJoins& message, Effects& out);
  void on(Node& node, const protocol::StoreIsOpen& message, Effects& out);
  void on(Node& node, const protocol::WorkerFailed& message, Effects& out);
  void on(Node& node, const protocol::WorkersSucceeded& message, Effects& out);
  void on(Node& node, const protocol::NodeCannotRun& message, Effects& out);
  void on(Node& node, const protocol::NodeStopped& message, Effects& out);
  void on(Node& node, const protocol::NodeLeaves& message, Effects& out);
  void on(Node& node, const protocol::CheckDone& message, Effects& out);
  void on(Node& node, const protocol::VerdictHeard& message, Effects& out);

  // coordinator_joining.cpp: who is let in.
  void join(protocol::NodeId session, const protocol::NodeJoins& message, Effects& out);
  void take_terms(const protocol::NodeJoins& message);
  std::optional<protocol::Rejected> refusal(const protocol::NodeJoins& message) const;
  bool is_done_here(const protocol::AgentFacts& facts) const;
  bool held_for_rank(protocol::NodeId session, const protocol::NodeJoins& message, Effects& out);
  void held_leaves(protocol::NodeId session, const protocol::NodeLeaves& message, Effects& out);
  void turn_away_claimants(int rank, Effects& out);
  void settle_held(Effects& out);
  void admit(protocol::NodeId session, const protocol::NodeJoins& message, Effects& out);
  void came_back(Node& node, const protocol::NodeJoins& message, Effects& out);
  bool begins_rebuilding(const protocol::NodeJoins& message, Effects& out);
  void take_over_verdict(const protocol::Verdict& verdict, Effects& out);
  void take_over_round(const protocol::AgentFacts& facts, Effects& out);
  void blame_if_missed(const protocol::NodeJoins& message, Effects& out);
  void adopt_terms(const protocol::NodeJoins& message, Effects& out);
  bool reports_round(const protocol::AgentFacts& facts) const;
  void finish_rebuilding(Effects& out);

  // coordinator_quorum.cpp: how many nodes of a round are enough to go on.
  std::vector<int> back_again() const;
  bool half_is_enough(const std::vector<int>& ranks) const;
  void look_for_quorum();
  void wait_for_quorum(Effects& out);

  // coordinator_round.cpp, coordinator_ending.cpp: rounds, losses, the end.
  void decide(Effects& out);
  void form_if_due(Effects& out);
  void tell_what_is_awaited(News news, Effects& out);
  void tell_who_stands_by(Effects& out);
  void form(int size, Effects& out);
  void run_if_ready(Effects& out);
  std::vector<CheckNode> nodes_to_check() const;
  void begin_check_phase(Effects& out);
  void end_check_phase(Effects& out);
  void end_with_check(const std::vector<CheckPlan::Unfit>& unfit, Effects& out);
  void leave_out(const CheckPlan::Unfit& found, Effects& out);
  // Who is to be checked again before the next round.
  void forget_who_passed(const std::vector<protocol::WorkerFailure>& failures);
  void turn_away_excluded(Effects& out);
  void scale_up_if_due(Effects& out);
  void stop_round(Effects& out);
  void tell_to_stop(Node& node, Effects& out);
  void conclude_round(Effects& out);
  void has_stopped(Node& node, Effects& out);
  void let_go(protocol::NodeId session, int signal, Effects& out);
  void end_with_host(const Node& node, int signal, Effects& out);
  void take_failures(const Node& node, const std::vector<protocol::WorkerFailure>& failures);
  void lose(Node& node, const std::string& how, Effects& out, bool by_us = false);
  // Charges a loss to the node's host, which is kept out from then on if it was lost too often.
  void blame(const Node& node, Effects& out);
  void forget(Node& node);
  void has_gone(const Node& node, const std::string& text);
  void look_for_silent(Effects& out);
  void end(protocol::Verdict verdict, Effects& out);
  void dismiss_if_all_heard(Effects& out);
  void wait_for_witnesses(std::int64_t until_ms);
  // The worker that failed first was the node's.
  bool is_where_it_failed(const Node& node) const;
  bool is_in_round() const;
  // Every node of the round has stopped, and had succeeded before it was told to.
  bool all_have_succeeded() const;
  // coordinator_status.cpp: what is told of the job.
  status::Phase phase() const;
  status::Place place_of(const Node& node) const;
  void count_failures(const Stopping& ended);
  // The attempt before the one that has ended failed alike: why the job ends; empty where it did not.
  std::string why_deterministic(const Stopping& ended);
  void notice_sleep(const Event& event);
  void look_at_leases(Effects& out);
  // Before it, workers of a job that an earlier coordinator ran may live, unless all nodes that it may have are here.
  std::int64_t first_round_not_before_ms(int size) const;
  // The round can be brought to its end without the node.
  bool can_do_without(const Node& node) const;
  // The node has a part in the last round, and this is its number.
  bool is_current(const Node& node, protocol::RoundNumber round) const;
  std::size_t in_round() const;
  std::size_t not_yet_stopped() const;
  void look_again(std::optional<std::int64_t> when_ms);

  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  // Nothing has come for so long, and a wake-up that was asked for is late by so much: we were asleep. What has come
  // meanwhile is read within so long.
  static constexpr std::int64_t kAsleepMs = 500;
  static constexpr std::int64_t kLateMs = 50;
  static constexpr std::int64_t kCatchUpMs = 250;

  CoordinatorConfig config_;
  protocol::Term term_;
  protocol::Incarnation incarnation_;
  bool others_were_met_ = false;  // an agent that comes here without a round has been with another coordinator
  std::unique_ptr<CheckPlan> check_;
  std::int64_t now_ms_ = 0;  // of the event that is being taken
  State state_ = State::kForming;
  membership::Roster roster_;
  std::uint64_t arrivals_ = 0;

  bool has_terms_ = false;  // the first node has brought them
  protocol::JobTerms terms_;
  protocol::JobRules rules_;
  protocol::CheckRules check_rules_;
  membership::FormingRules forming_rules_;
  membership::ScaleUp scale_up_;
  RestartBudget budget_{0};
  LossBudget losses_{LossRules{}};
  CrashLoop crash_loop_;

  std::optional<protocol::RoundNumber> round_;  // the last that was prepared
  std::vector<Seat> seats_;                     // of the last round
  int first_size_ = 0;
  std::uint64_t membership_ = 0;
  std::string again_because_;  // why the round before ended
  status::Cause again_cause_ = status::Cause::kFirst;
  bool charged_ = false;
  JobStatistics statistics_;
  std::optional<protocol::StoreEndpoint> store_;
  std::uint32_t check_phase_ = 0;
  std::uint32_t check_phases_ = 0;
  std::vector<CheckResults> check_results_;   // by phase
  std::vector<std::int64_t> check_phase_ms_;  // of those that are over
  std::int64_t check_phase_began_ms_ = 0;
  bool has_run_ = false;            // the last round's workers were ordered to run
  std::size_t reported_ = 0;        // nodes that have answered the phase
  std::set<std::string> excluded_;  // hosts of nodes that are unfit

  std::int64_t event_ms_;          // of the last event
  std::int64_t caught_up_ms_ = 0;  // by then all is read that has come while we were asleep
  std::int64_t forming_since_ms_ = 0;
  std::optional<std::int64_t> enough_since_ms_;
  bool was_below_min_ = false;
  std::int64_t last_join_ms_ = 0;
  std::vector<Gone> gone_;
  std::int64_t back_by_ms_ = 0;      // a node that only waited and has lost its session has found us again by then
  std::optional<News> told_news_;    // last, to the nodes that are in no round
  std::uint64_t told_arrivals_ = 0;  // of whom these had come
  std::optional<std::int64_t> news_at_ms_;  // when something of it will be told that they have not heard
  Stopping stopping_;
  std::optional<Rebuild> rebuild_;
  std::set<int> missed_;  // ranks that did not come back when the job was taken over, to be blamed when known
  protocol::RoundNumber missed_round_ = 0;
  std::vector<Held> held_;
  std::set<std::pair<std::int64_t, protocol::AgentId>> leases_;  // of lost nodes, by lease_until_ms
  std::int64_t silence_check_ms_ = 0;
  std::optional<std::int64_t> look_again_ms_;
  std::optional<protocol::Verdict> verdict_;
  std::string details_;  // the first that a node has told
  // Who has lost its session before it could tell them, and how long it is waited for.
  std::optional<protocol::AgentId> details_from_;
  std::int64_t details_until_ms_ = 0;
  std::size_t heard_verdict_ = 0;
  std::int64_t ending_not_before_ms_ = 0;
};

// A node's round of which these are the members, told to all of them, so that their reports can be compared.
std::uint64_t membership_digest(protocol::Incarnation incarnation, protocol::RoundNumber round,
                                const std::vector<protocol::AgentId>& agents);

}  // namespace elastic::coordinator
