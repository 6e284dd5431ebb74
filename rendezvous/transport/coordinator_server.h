#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "rendezvous/discovery/entry.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/transport/gossip_visits.h"
#include "rendezvous/transport/peer_port_probe.h"
#include "rendezvous/transport/service.h"
#include "src/base/result.h"
#include "src/net/lingering_connections.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"
#include "src/status/snapshot.h"

namespace elastic::transport {

// A Service on sockets, for any number of jobs. Or it listens nowhere and serves the only node of a job, which is in
// this process.
class CoordinatorServer {
 public:
  struct Settings {
    std::string address;  // numeric; empty: all addresses
    std::uint16_t port = 0;
    std::string secret;
    protocol::LeaseTimes lease;
    std::string only_job = {};                        // see ServiceSettings
    std::optional<protocol::AgentId> own_agent = {};  // see coordinator::CoordinatorConfig; not set: own_process is
    bool is_peer_server = false;                      // see ServiceSettings
    // Called when only_job has another leader here, or another round.
    std::function<void()> on_lead = {};
    // Gets connections of clients of the workers' store, with the bytes that they have sent so far. If it is empty they
    // are rejected.
    std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)> to_store = {};
    // The same for connections that ask by munge (munge_messages.h).
    std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)> to_munge = {};
  };

  // Listens and serves from the next turn of the loop on. Fails as net::Listener::open does.
  static Result<std::unique_ptr<CoordinatorServer>> open(net::Loop& loop, Settings settings);
  CoordinatorServer(const CoordinatorServer&) = delete;
  CoordinatorServer& operator=(const CoordinatorServer&) = delete;

  // The coordinator of a job of one node, whose agent has a connection without a socket. `agent` gets what comes on it,
  // also while connect() or receive() has not returned.
  static std::unique_ptr<CoordinatorServer> for_only_node(net::Loop& loop, const std::string& job,
                                                          protocol::AgentId own, net::Stream::Handlers agent);
  // That agent begins its connection, once, and sends bytes on it.
  void connect();
  void receive(std::span<const std::uint8_t> bytes);
  // That agent has left its connection. The coordinator, which ends with its only node, does not hear of that.
  void disconnect() { only_connection_ = 0; }

  // What the node's agent knows of the coordinator, if this is its peer port.
  void set_peer_facts(const PeerFacts& facts) { on_event(facts); }
  // The agent in this process has ended in order, and from now on no job begins here. True: the server is to stay for
  // other nodes, until it is idle.
  [[nodiscard]] bool agent_has_ended() {
    on_event(AgentEnded{});
    return !is_idle();
  }
  // After agent_has_ended(): this signal tells the process to end. Each coordinator here transfers its leadership, or
  // ends its job. Then the server becomes idle, if it only_ends().
  void leave(int signal) { on_event(ProcessLeaves{signal}); }
  bool only_ends() const { return service_.only_ends(); }

  // From now on `write` gets the recording of this job's coordinator, line by line. To be called before an agent joins.
  void record(const std::string& job, std::function<void(std::string_view line)> write);
  // `call` is called whenever the check of a round of a job is over.
  void on_judged(std::function<void(const std::string& job, const coordinator::CheckJudged& check)> call) {
    on_judged_ = std::move(call);
  }
  // `take` gets the connections that begin with an HTTP request, with what they have sent so far. Until it is called
  // they are refused as strangers.
  void on_http(std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)> take) {
    to_http_ = std::move(take);
  }
  // It serves jobs with other names.
  bool has_other_jobs(const std::string& job) const { return service_.jobs() > (serves(job) ? 1U : 0U); }
  status::Coordinator status() const;
  // Carries out an operator's order in a job; an empty name is that of the only job.
  coordinator::OrderAnswered order(const std::string& job, coordinator::OperatorOrder order);
  // Collects what the workers of a job are doing; an empty name is that of the only job. `answered` gets the document,
  // as JSON, or why there is none; it is called once, at once or later, and never after this object has gone.
  using OnStacks = std::function<void(const StacksAnswered& answer)>;
  void collect_stacks(const std::string& job, OnStacks answered);

  // Jobs may begin here from now on, or may not any more: Settings::is_peer_server.
  void set_peer_server(bool is_peer_server) { service_.set_peer_server(is_peer_server); }
  bool is_peer_server() const { return service_.is_peer_server(); }
  std::uint16_t port() const { return port_; }
  std::size_t jobs() const { return service_.jobs(); }
  bool serves(const std::string& job) const { return service_.find(job) != nullptr; }
  // The gossip of this job's leader, as HELLO; empty: there is none.
  std::optional<protocol::Introduction> gossip(const std::string& job) const;
  // The job's entry for the file of discovery; empty: its leader is not here.
  std::optional<discovery::Entry> entry(const std::string& job) const;
  // The job goes on, or may, with a coordinator elsewhere.
  bool leaves_to_others(const std::string& job) const { return service_.leaves_to_others(job); }
  // It has a coordinator that is no candidate any more.
  bool leads(const std::string& job) const;
  // An agent has connected.
  bool has_visitors() const { return service_.jobs() > 0; }
  // There is no connection, and everything was sent.
  bool is_idle() const { return service_.connections() == 0 && lingering_.empty(); }
  void on_idle(std::function<void()> call) { on_idle_ = std::move(call); }

 private:
  struct Connection {
    std::unique_ptr<net::Stream> stream;
    bool begun = false;  // its first bytes have been read
  };

  CoordinatorServer(net::Loop& loop, Settings settings, net::Stream::Handlers only_agent = {});
  ServiceSettings service_settings();
  void accept(std::unique_ptr<net::Stream> stream);
  void read(ConnectionId id, std::span<const std::uint8_t> bytes);
  // Removes a connection that is no agent's, for another receiver.
  std::unique_ptr<net::Stream> release(ConnectionId id, std::string why);
  void on_event(ServiceEvent event);
  void perform(ServiceEffect& effect);
  void try_peer_port(const TryPeerPortOf& peer_port);
  void gossip_to(const GossipTo& there);
  void plan_timer();
  void write_log(const Log& line);
  void tell_if_idle();
  // This is the server of a job of one node.
  bool is_for_only_node() const { return only_agent_.on_data != nullptr; }
  // The time of service_, in milliseconds.
  std::int64_t now_ms() const;

  net::Loop& loop_;
  Settings settings_;
  net::Stream::Handlers only_agent_;  // empty: agents connect by sockets
  ConnectionId only_connection_ = 0;  // of that agent; 0: none
  std::deque<ServiceEvent> events_;
  bool deciding_ = false;
  std::unique_ptr<net::Listener> listener_;
  std::uint16_t port_ = 0;
  Service service_;
  std::map<ConnectionId, Connection> connections_;
  ConnectionId last_ = 0;
  std::map<std::pair<std::string, protocol::AgentId>, std::unique_ptr<PeerPortProbe>> probes_;
  GossipVisits visits_;
  net::LingeringConnections lingering_;
  net::Timer timer_;
  std::optional<std::int64_t> timer_at_ms_;
  std::function<void()> on_idle_;
  std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)> to_http_;
  std::function<void(const std::string&, const coordinator::CheckJudged&)> on_judged_;
  std::optional<coordinator::OrderAnswered> answer_;  // to the order that is being carried out
  std::map<StacksDesk::Ticket, OnStacks> stacks_askers_;
  StacksDesk::Ticket last_ticket_ = 0;
  std::string recorded_job_;
  std::function<void(std::string_view)> recorder_;  // gets the recording of that job; empty: nothing is recorded
  Lead lead_;                                       // of only_job
  std::set<std::string> told_;                      // the warnings about strangers that were logged
};

}  // namespace elastic::transport
