#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/discovery/entry.h"
#include "rendezvous/transport/service.h"
#include "tests/simulation/network.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/timeline.h"
#include "tests/simulation/visit.h"

namespace elastic::simulation {

class Simulation;

class Node;

// The coordinators of a process: the real transport::Service, which has no jobs when it is started again. It listens at
// the endpoint, in a process of its own or beside the agent of node 0; or it is the peer port of a node.
class Server : public ConnectionOwner {
 public:
  // The number differs from those of all other servers. `node` is the one whose process it is in and whose clock it
  // has; null: it is at the endpoint.
  Server(Simulation& simulation, std::uint32_t number, Node* node, Random random)
      : simulation_(simulation), number_(number), node_(node), random_(random) {}

  // At the endpoint: begins to listen there. The host is that of its listener.
  void set_listener(ListenerId listener) { listener_ = listener, is_at_endpoint_ = true; }
  void start();
  // A node's peer port, for this job, beside this agent. If it has a listener already, it is at the endpoint.
  void open_peer_server(const std::string& job, protocol::AgentId own);
  void set_peer_facts(const transport::PeerFacts& facts) { on(facts); }
  void agent_has_ended() { on(transport::AgentEnded{}); }
  // With a file: jobs may begin at this peer port, or may not any more. False: it is in use.
  bool begin_jobs(bool may_begin);
  // The file's entry of the peer port's job; not set: its leader is not here.
  std::optional<discovery::Entry> entry() const;
  // The leader here gossips there.
  void gossip_at(ListenerId where);
  // Calls `done` once it has no connection any more, perhaps at once.
  void when_idle(std::function<void()> done);
  // The process dies as by SIGKILL: the kernel closes its connections.
  void crash();
  // The process dies with its host: its connections are not closed.
  void vanish();
  // The process ends with its node, since no job is left.
  void leave() { crash(); }
  bool is_up() const { return process_.is_alive(); }
  Ms clock_ms() const { return now_ms(); }
  std::uint32_t number() const { return number_; }
  Node* node() const { return node_; }
  ListenerId listener() const { return listener_; }
  // When its process was started, in true time.
  Ms started_ms() const { return started_ms_; }
  // Another number for each start of each server.
  std::uint64_t start_number() const { return std::uint64_t{number_} << 32 | process_.launch(); }
  bool is_paused() const { return process_.is_paused(); }
  void pause();
  void resume(bool timers_first);
  // An operator orders this in a job; false: no process takes it.
  bool order(const transport::OrderGiven& order);
  // Somebody asks what the workers of a job are doing; false: no process takes the question.
  bool ask_for_stacks(const std::string& job);
  // The coordinator of a job; null if there is none.
  const coordinator::Coordinator* find(const std::string& job) const {
    return service_ ? service_->find(job) : nullptr;
  }
  const transport::Service* service() const { return service_ ? &*service_ : nullptr; }

  void connection_made(ConnectionId id) override;
  void connection_read(ConnectionId id, ByteString bytes) override;
  void connection_broken(ConnectionId id, const std::string& why) override;

 private:
  Ms now_ms() const;
  std::string name() const;  // for the trace
  void end();
  void serve(transport::ServiceSettings settings);
  void serve_peer_port();
  std::unique_ptr<health::CheckPlan> make_recorded_check();
  void on(const transport::ServiceEvent& event);
  void perform(transport::ServiceEffect& effect);
  void plan_timer();
  void tell_stacks(const transport::StacksAnswered& answer);
  void check_askers() const;
  void try_peer_port(const transport::TryPeerPortOf& peer_port);
  void plan_to_gossip();
  void gossip(protocol::Introduction what, ListenerId where);
  protocol::Nonce nonce();

  Simulation& simulation_;
  std::uint32_t number_;
  Node* node_;
  Random random_;
  Process process_;
  ListenerId listener_ = 0;
  std::string job_;  // of a peer port
  protocol::AgentId own_ = 0;
  bool may_begin_ = false;
  transport::Lead lead_;
  std::function<void()> when_idle_;
  bool is_at_endpoint_ = false;
  Ms started_ms_ = 0;
  std::optional<transport::Service> service_;
  std::optional<Ms> timer_at_ms_;
  std::uint64_t timer_ = 0;
  // The requests for stacks, with the latest time of the answer by this clock; not set: the process was stopped
  // meanwhile.
  std::map<transport::StacksDesk::Ticket, std::optional<Ms>> askers_;
  transport::StacksDesk::Ticket last_ticket_ = 0;
  bool gossips_ = false;  // a timer of leader gossip runs
  std::deque<Visit> visits_;
};

// A check before training which finds the nodes unhealthy that sent "bad" or "slow". At most two phases.
std::unique_ptr<health::CheckPlan> make_check(int phases);

}  // namespace elastic::simulation
