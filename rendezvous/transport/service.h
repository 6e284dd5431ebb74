#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "health/check/check_plan.h"
#include "rendezvous/coordinator/coordinator_events.h"
#include "rendezvous/discovery/entry.h"
#include "rendezvous/protocol/session.h"
#include "rendezvous/transport/leader_gossip.h"
#include "rendezvous/transport/stacks_desk.h"
#include "src/base/check_pace.h"
#include "src/base/json.h"
#include "src/status/snapshot.h"

namespace elastic::coordinator {
class Coordinator;
}

namespace elastic::transport {

// The number of a connection. The caller gives each connection that it accepts another one.
using ConnectionId = std::uint32_t;

// --- Events. ---------------------------------------------------------------------------------------

struct ConnectionOpened {
  ConnectionId connection = 0;
  protocol::Nonce nonce{};  // random
  // The addresses of its two ends, without ports; empty if they are not known.
  std::string from = {};
  std::string at = {};
};
struct ConnectionRead {
  ConnectionId connection = 0;
  protocol::ByteString bytes;
};
struct ConnectionClosed {
  ConnectionId connection = 0;
  std::string how;
};
struct ServiceTime {};
// An operator orders something in a job; an empty name is that of the only job. Answered by OrderAnswered.
struct OrderGiven {
  std::string job;
  coordinator::OperatorOrder order;
};
// Somebody asks what the workers of a job are doing; an empty name is that of the only job. Answered by StacksAnswered,
// at the latest when a pause and the time for answers are over (StacksDesk).
struct StacksAsked {
  std::string job;
  StacksDesk::Ticket ticket = 0;
};
// What the node's own agent knows of the coordinator. At an endpoint it counts only while the agent has one elsewhere.
struct PeerFacts {
  std::string job = {};
  // From then on the agent's vote is free, and nodes that lost the coordinator may elect one here. Not set: it has a
  // coordinator, or never had one.
  std::optional<std::int64_t> opens_ms = {};
  // Where its coordinator is; no addresses: not known, or here.
  std::string addresses = {};
  std::uint16_t port = 0;
  protocol::Term term = 0;  // of that coordinator
  bool belongs = false;     // Link::may_be_in_round()
  bool operator==(const PeerFacts&) const = default;
};
// TryPeerPort was performed.
struct PeerPortAnswered {
  std::string job;
  coordinator::PeerPortTried tried;
};
// The agent in this process has ended in order, while other nodes may still need the coordinators here. Once the last
// of these has ended, no job begins here any more.
struct AgentEnded {};
// After AgentEnded: this signal tells the process to end. Each coordinator transfers its leadership or ends its job.
struct ProcessLeaves {
  int signal = 0;
};
using ServiceEvent = std::variant<ConnectionOpened, ConnectionRead, ConnectionClosed, ServiceTime, OrderGiven,
                                  PeerFacts, PeerPortAnswered, AgentEnded, ProcessLeaves, StacksAsked>;

// --- Effects. ---------------------------------------------------------------------------------------

struct Write {
  ConnectionId connection = 0;
  protocol::ByteString bytes;
};
// The connection is to be closed after everything was written. No event of it comes any more.
struct Close {
  ConnectionId connection = 0;
};
// A line of the log; `event` and `fields` are those of Note.
struct Log {
  std::string job;
  std::string text;
  std::string_view event = "coordinator";
  Json fields = {};
};
struct Judged {
  std::string job;
  coordinator::CheckJudged check;
};
// The peer port of a node of this job is to be tried. Answered by PeerPortAnswered.
struct TryPeerPortOf {
  std::string job;
  coordinator::TryPeerPort peer_port;
};
// A coordinator has gossiped from there, and is to hear `what`: gossip of another start of its job, of which it has not
// heard. If `what` has no port, it means that of this process.
struct GossipTo {
  protocol::Introduction what;
  std::string addresses;  // numeric, separated by spaces
  std::uint16_t port = 0;
};
// The answer to all requests with these tickets.
struct StacksAnswered {
  std::vector<StacksDesk::Ticket> tickets;
  coordinator::OrderAnswered::Kind kind = coordinator::OrderAnswered::Kind::kAccepted;
  std::string text;  // the document, as JSON; or why there is none, as OrderAnswered::text
};
using ServiceEffect =
    std::variant<Write, Close, Log, Judged, coordinator::OrderAnswered, TryPeerPortOf, GossipTo, StacksAnswered>;
using ServiceEffects = std::vector<ServiceEffect>;

// `random` returns 64 random bits, others each time: for incarnations and terms. `wall_ms` returns Unix time in
// milliseconds: for the births of incarnations.
struct ServiceSettings {
  protocol::LeaseTimes lease = {};
  std::string secret = {};
  std::string only_job = {};                        // agents of other jobs are rejected; empty: all jobs are served
  std::optional<protocol::AgentId> own_agent = {};  // see CoordinatorConfig
  std::optional<protocol::NextLeader> own_process = {};  // the same
  // The name of the only node that can come, which has no address. Empty: nodes have the names that they give. Called
  // at each collection of stacks, on the loop.
  std::function<std::string()> name_of_only_node = {};
  // This is a node's peer port: no job begins here, and one is taken over only by agents that have lost its
  // coordinator, when the vote of the node's own agent is free (PeerFacts).
  bool is_peer_server = false;
  std::int64_t greeting_ms = 5'000;  // how long a connection may take to introduce itself
  std::function<std::uint64_t()> random = {};
  std::function<std::int64_t()> wall_ms = [] { return std::int64_t{0}; };
  std::function<std::unique_ptr<health::CheckPlan>(const std::string& job)> make_check = [](const std::string&) {
    return health::no_check();
  };
};

// The term and the round with which the coordinator of a job leads it here.
struct Lead {
  protocol::Term term = 0;  // 0: none does
  std::optional<protocol::RoundNumber> round = {};
  bool operator==(const Lead&) const = default;
};

// The sessions of agents, and the coordinators of any number of jobs, which are independent of each other.
class Service {
 public:
  // `now_ms` is a monotonic clock's milliseconds.
  Service(ServiceSettings settings, std::int64_t now_ms);
  ~Service();

  ServiceEffects on_event(const ServiceEvent& event, std::int64_t now_ms);
  std::optional<std::int64_t> next_deadline_ms() const;
  // Sets ServiceSettings::own_process, before the first event.
  void set_own_process(protocol::NextLeader process) { settings_.own_process = std::move(process); }

  // The coordinator of a job; null if there is none. For status, and for tests.
  const coordinator::Coordinator* find(const std::string& job) const;
  std::size_t jobs() const { return jobs_.size(); }
  // Jobs may begin here from now on, or may not any more: ServiceSettings::is_peer_server.
  void set_peer_server(bool is_peer_server) { settings_.is_peer_server = is_peer_server; }
  bool is_peer_server() const { return settings_.is_peer_server; }
  // Its jobs, if it has any, end.
  bool only_ends() const;
  std::size_t connections() const { return connections_.size(); }
  // What must hold between two events: connections, jobs and times agree. on_event() calls it.
  void check_invariants() const;
  // The gossip of a job's coordinator: a HELLO of its own, without the port if that is the one on which this service
  // listens. Empty: there is no such coordinator, or it has nothing to gossip.
  std::optional<protocol::Introduction> gossip(const std::string& job) const;
  // The entry in a file of discovery for a job that is led here by votes, with its next leaders. The caller adds the
  // leader's address and the time of writing. `now_ms`: the process may have slept, and the votes be over.
  std::optional<discovery::Entry> entry(const std::string& job, std::int64_t now_ms) const;
  Lead lead_of(const std::string& job) const;
  // A coordinator of the job was here and has ended without a job result: the job goes on elsewhere, or may.
  bool leaves_to_others(const std::string& job) const { return left_to_others_.contains(job); }
  status::Coordinator status(std::int64_t now_ms) const;
  // Called with each event of a coordinator before it is handled, for a recording. May be empty.
  std::function<void(const std::string& job, const coordinator::Event& event, std::int64_t now_ms)> recorder;

 private:
  friend struct ServiceBreaker;  // a test's

  struct Connection {
    explicit Connection(protocol::CoordinatorSession with_session) : session(std::move(with_session)) {}
    protocol::CoordinatorSession session;
    std::string job;                               // empty until it is introduced
    bool welcome = false;                          // its keep-alives are answered
    std::optional<std::uint64_t> unanswered = {};  // the last keep-alive, while no lease may be granted
    // The keep-alives whose answers ask for the node's vote, and when the first of these answers was sent.
    std::vector<std::pair<std::uint64_t, std::int64_t>> asked = {};
    std::int64_t greet_until_ms = 0;
    std::string from;
    std::string at;
  };
  // A job that has ended, kept for agents that come late.
  struct Ended {
    std::string job;
    protocol::Incarnation incarnation = 0;
    protocol::JobResult job_result;
    std::string details;
    std::int64_t birth_ms = 0;  // of that start of the job
  };

  // The last coordinator here of a job that has not ended here.
  struct LeftToOthers {
    protocol::Incarnation incarnation = 0;
    protocol::Term term = 0;
  };

  void on_connection_opened(const ConnectionOpened& event, ServiceEffects& out);
  void on_connection_read(const ConnectionRead& event, ServiceEffects& out);
  void on_connection_closed(const ConnectionClosed& event, ServiceEffects& out);
  void on_service_time(const ServiceTime& event, ServiceEffects& out);
  void on_order_given(const OrderGiven& event, ServiceEffects& out);
  void on_peer_facts(const PeerFacts& event, ServiceEffects& out);
  void on_peer_port_answered(const PeerPortAnswered& event, ServiceEffects& out);
  void on_agent_ended(const AgentEnded&, ServiceEffects& out) {
    own_agent_ended_ = true;
    on_each(coordinator::OwnAgentEnded{}, out);
  }
  void on_process_leaves(const ProcessLeaves& event, ServiceEffects& out) {
    on_each(coordinator::HostLeaves{event.signal}, out);
  }
  void on_stacks_asked(const StacksAsked& event, ServiceEffects& out);
  // The job that a name means; or why there is none.
  std::expected<std::string, coordinator::OrderAnswered> job_of(const std::string& name) const;
  StacksDesk::Nodes nodes_of(const std::string& job) const;
  void perform(const std::string& job, StacksDesk::Step step, ServiceEffects& out);
  void go_on_with_stacks(ServiceEffects& out);
  void on_session_event(ConnectionId id, const protocol::CoordinatorSession::Event& event, ServiceEffects& out);
  void introduced(ConnectionId id, const protocol::Introduction& introduction, ServiceEffects& out);
  std::optional<protocol::Redirect> directs(const protocol::Introduction& introduction) const;
  void refuse(ConnectionId id, const std::string& reason, ServiceEffects& out, protocol::Redirect redirect = {});
  void tell_job_result(ConnectionId id, const protocol::Introduction& introduction, const Ended& over,
                       ServiceEffects& out);
  void gossiped(ConnectionId id, const protocol::Introduction& introduction, ServiceEffects& out);
  // This process only waits for its connections to close, and ends then. A job that begins here now would end with it.
  bool leaves() const { return own_agent_ended_ && jobs_.empty(); }
  // As agents know this process: Welcome::host.
  protocol::AgentId process_number() const {
    return settings_.own_agent.value_or(settings_.own_process ? settings_.own_process->agent : 0);
  }
  void answer(ConnectionId id, Connection& connection, const protocol::Grant& grant, ServiceEffects& out);
  void take_lease_ack(ConnectionId id, const protocol::CoordinatorSession::LeaseAck& ack, ServiceEffects& out);
  std::string address_of(const Connection& connection) const;
  // Hands an event to the job's coordinator and performs the effects. The name is passed by value, since an effect may
  // close the connection that it is taken from.
  void to_coordinator(std::string job, const coordinator::Event& event, ServiceEffects& out);
  void on_each(const coordinator::Event& event, ServiceEffects& out);
  void perform(const std::string& job, const coordinator::Effect& effect, ServiceEffects& out);
  void close(ConnectionId id, ServiceEffects& out);
  void close_all(const std::string& job, ServiceEffects& out);
  void pass_on_emptied_nodes(const std::string& job, ServiceEffects& out);
  void forget_if_empty(const std::string& job);
  void check_jobs() const;
  const Ended* ended(const std::string& job, protocol::Incarnation incarnation) const;

  ServiceSettings settings_;
  std::int64_t born_ms_;  // CoordinatorConfig::now_ms of the coordinators that are made from now on
  std::int64_t now_ms_;
  std::int64_t last_birth_ms_ = 0;  // of a coordinator that was made here
  std::map<ConnectionId, Connection> connections_;
  std::map<std::string, std::unique_ptr<coordinator::Coordinator>> jobs_;
  std::set<std::pair<std::int64_t, std::string>> deadlines_;  // of coordinators
  std::map<std::string, std::int64_t> deadline_of_;
  std::set<std::pair<std::int64_t, ConnectionId>> greetings_;  // of connections that have not introduced themselves
  std::deque<Ended> ended_;
  std::array<std::int64_t, kOutcomeNames.size()> ended_by_outcome_{};  // since this process began
  PeerFacts peer_facts_;
  LeaderGossip gossiped_;
  // Death notices of guardians, for jobs that this service may take over.
  std::deque<std::pair<std::string, coordinator::NodeEmptied>> emptied_nodes_;
  std::set<std::string> transferred_;  // jobs that another node is to lead from now on
  // The same, and jobs that another node may lead, with the last coordinator that each had here.
  std::map<std::string, LeftToOthers> left_to_others_;
  bool own_agent_ended_ = false;  // AgentEnded came
  CheckPace<1> pace_;
  std::set<std::string> left_;                                  // jobs of connections that the present event has ended
  std::map<std::string, StacksDesk> stacks_;                    // of jobs of which stacks were asked for
  std::vector<std::pair<std::string, protocol::NodeId>> gone_;  // their sessions that the present event has ended
};

}  // namespace elastic::transport
