#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "health/check/check_plan.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/json.h"

// What a coordinator is started with, the events that it gets, and the effects that it returns.
namespace elastic::coordinator {

struct CoordinatorConfig {
  protocol::Term term = 1;                // the coordinator raises it above the terms that agents report
  protocol::Incarnation incarnation = 1;  // a random number that names the job if it is a new one
  protocol::LeaseTimes lease = {};
  std::int64_t now_ms = 0;   // when its process began; all further times are of the same clock
  std::uint32_t random = 0;  // its collections are numbered from there; part of its term if it takes a running job over
  std::int64_t made_ms = 0;  // when this coordinator was made, by the clock of now_ms
  // made_ms as Unix time in milliseconds: the birth of the incarnation that the coordinator begins.
  std::int64_t birth_ms = 0;
  // The least birth of the coordinator's rounds, also of those of an incarnation that it takes over: an earlier
  // incarnation of the job has ended in this process. 0: none has.
  std::int64_t least_birth_ms = 0;
  // The Unix time at which that clock showed `at_ms`.
  std::int64_t unix_ms(std::int64_t at_ms) const { return birth_ms + (at_ms - made_ms); }
  std::optional<protocol::AgentId> own_agent = {};  // the agent in its process; empty: it is on none of the nodes
  // With an empty own_agent: where its process listens, if that is known, with an agent number of its own.
  std::optional<protocol::NextLeader> own_process = {};
};

// --- Events. ---------------------------------------------------------------------------------------

// A message has come over a node's session. The first one is NodeJoins.
struct MessageReceived {
  protocol::NodeId from = 0;
  protocol::AgentMessage message;
};
struct KeepAliveReceived {
  protocol::NodeId from = 0;
};
// A node votes for this coordinator by a lease ack (docs/failover.md). The vote counts from when the lease grant was
// sent that it acknowledges. With the first one in a session comes the voter state.
struct LeaseAckReceived {
  protocol::NodeId from = 0;
  std::int64_t since_ms = 0;
  std::optional<protocol::VoterState> voter_state = {};
};
// A node's session has ended: its connection was reset or closed.
struct SessionEnded {
  protocol::NodeId from = 0;
  std::string how;  // "its connection was reset"
};
// An agent introduces itself, which has met an earlier coordinator of the job, or none (0 and 0). Given to a
// coordinator that must_hear() it, before the agent's welcome.
struct Introduced {
  protocol::Incarnation incarnation = 0;
  protocol::Term term = 0;
};
// The guardian of a node (its outer process) reports that no process of this round is left there.
struct NodeEmptied {
  protocol::AgentId agent = 0;
  protocol::Incarnation incarnation = 0;
  protocol::RoundNumber round = 0;
};
// An operator's order (elastic-run --drain and --stop), which OrderAnswered answers.
struct OperatorOrder {
  enum class Kind : std::uint8_t { kDrain, kStop };
  Kind kind = Kind::kDrain;
  std::string node = {};  // kDrain: the rank, the name or an address of the node that is to leave
  std::string from = {};  // the operator's address; empty: not known
};
// The deadline that next_deadline_ms() gave has passed.
struct TimePassed {};
// The agent in the coordinator's process has ended in order: it looks for no other coordinator. The process goes on.
struct OwnAgentEnded {};
// The agent in the coordinator's process has found another coordinator, or votes for another candidate.
struct OwnAgentElsewhere {
  protocol::Term term = 0;  // of that coordinator or candidate
};
// A signal tells the process to end, after OwnAgentEnded.
struct HostLeaves {
  int signal = 0;
};
// The result of TryPeerPort.
struct PeerPortTried {
  protocol::AgentId agent = 0;
  std::string address = {};  // the one of the agent's addresses that has answered; empty: none has
};
// Another process gossips that it is the coordinator of a job of this name.
struct CoordinatorGossiped {
  protocol::Incarnation incarnation = 0;
  std::int64_t birth_ms = 0;                        // of that incarnation
  std::optional<protocol::RoundNumber> round = {};  // its last one; empty: it has formed none
  std::string where = {};                           // for people: "10.0.0.6:41233"
};
struct Event
    : std::variant<MessageReceived, KeepAliveReceived, SessionEnded, Introduced, NodeEmptied, OperatorOrder, TimePassed,
                   LeaseAckReceived, OwnAgentEnded, OwnAgentElsewhere, PeerPortTried, CoordinatorGossiped, HostLeaves> {
  using variant::variant;
  Event(const Event& other);
  Event(Event&& other) noexcept;
  Event& operator=(const Event& other);
  Event& operator=(Event&& other) noexcept;
  ~Event();
};

// --- Effects, to be performed in their order. -------------------------------------------------------

struct Send {
  protocol::NodeId to = 0;
  protocol::CoordinatorMessage message;
};
// The session is to be closed. No SessionEnded comes for it.
struct Drop {
  protocol::NodeId session = 0;
  std::string reason;
};
// The answer to the node's last keep-alive, if that has not had its lease yet.
struct AnswerKeepAlive {
  protocol::NodeId to = 0;
  protocol::Grant grant;
};
// The coordinator's process is to connect to the node's peer port, once. PeerPortTried answers.
struct TryPeerPort {
  protocol::AgentId agent = 0;
  std::string addresses;  // NodeJoins::addresses
  std::uint16_t port = 0;
};
// A decision and its reason, for the log and for --replay. `event` is its name in the event stream (docs/observing.md).
// `fields` is what programs get beside the text: an object, or null.
struct Note {
  std::string text;
  std::string_view event = "coordinator";
  Json fields = {};
};
// Events that every node also logs itself when the coordinator tells it of them.
inline constexpr std::string_view kRoundFormed = "round_formed";
inline constexpr std::string_view kJobEnds = "job_ends";
// Events about a node that an operator may have to look at.
inline constexpr std::string_view kNodeLost = "node_lost";
inline constexpr std::string_view kNodeUnhealthy = "node_unfit";
inline constexpr std::string_view kNodeQuarantined = "node_kept_out";
// No other node can take the coordinator over.
inline constexpr std::string_view kNoNextLeader = "no_successor";
// A node was started with other rules than the job's.
inline constexpr std::string_view kRulesDiffer = "rules_differ";
// HCCL's ports are not free on all nodes of a round.
inline constexpr std::string_view kNoTrainingPort = "no_training_port";
// A node asks for the rank of another one that is alive.
inline constexpr std::string_view kRankTaken = "rank_taken";
// The user is warned of these. The coordinator's host logs the other events above.
inline bool is_warning(std::string_view event) {
  return event == kNoNextLeader || event == kRulesDiffer || event == kNoTrainingPort || event == kRankTaken ||
         event == kNodeQuarantined;
}
// An operator has ordered something.
inline constexpr std::string_view kOperatorOrder = "operator_order";
// The workers' stacks were collected for somebody who has asked for them.
inline constexpr std::string_view kStacksCollected = "stacks_collected";
// The job result of --check-only begins with this text if a node or a link is unhealthy. The nodes' names follow, each
// with what is wrong. Nodes of other versions recognise the result by it: the text must not change.
inline constexpr std::string_view kFoundUnhealthy = "the check has found unfit nodes or links";
// The check before a round is over: its results, for the health report.
struct CheckJudged {
  protocol::RoundNumber round = 0;
  std::vector<health::CheckNode> nodes;       // by node rank
  std::vector<health::CheckResults> results;  // by phase
  std::vector<std::int64_t> phase_ms;         // how long each phase took
  std::vector<health::CheckPlan::Unhealthy> unhealthy;
  health::CheckRules rules = {};
};
// What an operator is told of an order.
struct OrderAnswered {
  enum class Kind : std::uint8_t {
    kAccepted,  // it is carried out, or what was ordered is under way already
    kUnknown,   // no such job or node is here
    kRefused,
  };
  Kind kind = Kind::kAccepted;
  std::string text = {};  // clauses: what will happen, or why nothing does and what to do
};
struct Effect : std::variant<Send, Drop, Note, CheckJudged, OrderAnswered, AnswerKeepAlive, TryPeerPort> {
  using variant::variant;
  Effect(const Effect& other);
  Effect(Effect&& other) noexcept;
  Effect& operator=(const Effect& other);
  Effect& operator=(Effect&& other) noexcept;
  ~Effect();
};
using Effects = std::vector<Effect>;

}  // namespace elastic::coordinator
