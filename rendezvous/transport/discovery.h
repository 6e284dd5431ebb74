#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rendezvous/discovery/entry_search.h"
#include "rendezvous/discovery/hosting.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::transport {

class CoordinatorServer;
class MungeGate;
class MungeTrust;

// How long one attempt may take to resolve the endpoint's name.
inline constexpr std::int64_t kResolveMs = 4'000;
// The shortest pause before a leader looks again at the endpoint or the file.
inline constexpr std::int64_t kShortestLookMs = 100;

// Discovery: how the nodes of a job find the coordinator, by an endpoint or a file. It also opens the coordinator in
// this process if this node is to host it.
class Discovery {
 public:
  // Where a coordinator may be.
  struct Way {
    std::vector<std::string> addresses = {};  // numeric, in the order in which they are to be tried
    std::vector<std::uint16_t> ports = {};    // to be tried with each address
    bool home = false;                        // 127.0.0.1 among them leads to the coordinator in this process
    bool may_begin = true;                    // the node may begin the job if it is not there: protocol::Introduction
    bool is_further = false;                  // a further host of the endpoint, which need not be there
    std::string problem = {};                 // why there is no address, as a clause
    bool hopeless = false;                    // another attempt will fail, too
  };
  using OnFound = std::function<void(Way)>;
  using ToStore = std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)>;
  using OnHosting = std::function<void(CoordinatorServer&)>;
  // What the node knows of its job: it has been in a round, and it has had a coordinator.
  struct Known {
    bool belongs = false;
    bool has_met_it = false;
  };
  // The server in this process that may have the coordinator of the node's job, or null; the job's secret.
  using Leader = std::function<CoordinatorServer*()>;
  using Secret = std::function<std::string()>;

  virtual ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

  // Looks for the coordinator; `on_found` is called once, in a later turn of the loop, unless stop() comes before.
  virtual void find(const Known& known, OnFound on_found) = 0;
  virtual void stop() = 0;
  // A connection to this port is open. The server there need not be a coordinator.
  virtual void reached(std::uint16_t /*port*/) {}
  virtual void tried(discovery::Tried) {}
  // Whether another kind of server may answer there without a mistake of the user's.
  virtual bool may_be_stale() const { return false; }
  // Why the last attempt to reach what was found has failed: `problem`, with what discovery knows of it.
  virtual std::string explain(const std::string& problem) const { return problem; }
  // What to say about the place while the node waits there for others, which come here by it.
  virtual discovery::EndpointAdvice advice() const { return {}; }
  // After such an attempt: another address is to be asked at once.
  virtual bool has_untried() const { return false; }
  // From now on, while the job's leader is in this process, nodes that look for it are led here.
  virtual void keep(Leader leader, Secret secret) = 0;
  // The job's leader in this process, or its round, has changed.
  virtual void lead_changes() {}
  // The ports at which this node's peer port may be opened, the first free one of them; empty: any.
  virtual std::vector<std::uint16_t> peer_ports() const { return {}; }
  // The job is over: removes what leads to this process. `done` is called when that has been tried, perhaps at once.
  virtual void withdraw(std::function<void()> done) { done(); }
  // A thread is blocked by a file system or a server, and keeps this process from ending.
  virtual bool hangs() const { return false; }

  // The coordinator in this process; null if it is elsewhere.
  CoordinatorServer* server() const { return server_.get(); }
  // Coordinators that are opened from now on let nodes in by munge. `munge` must outlive this, and knows whether munged
  // answers.
  void trust(MungeTrust& munge);

 protected:
  // `settings` must outlive it. `own` is the agent in this process: coordinators that are opened are on its node.
  Discovery(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own, ToStore to_store,
            OnHosting on_hosting);
  // Opens the coordinator at a port of all addresses; 0 takes a free port. Fails as CoordinatorServer::open does.
  Status open_server(std::uint16_t port);
  // Closes a coordinator that no node knows of.
  void close_server();
  // Logs that the coordinator is in this process: "this node hosts the coordinator at port 29400: node0 is 10.0.0.5".
  // Calls on_hosting if it is server().
  void tell_hosting(CoordinatorServer& here, const std::string& does, const std::string& where,
                    const std::string& reason);

  // The job's secret is still to be got, by munge, which only the coordinator's own address gives.
  bool lacks_secret() const;

  net::Loop& loop_;
  const RendezvousSettings& settings_;

 private:
  ToStore to_store_;
  OnHosting on_hosting_;
  const protocol::AgentId own_agent_;
  MungeTrust* munge_ = nullptr;
  std::unique_ptr<MungeGate> gate_;
  std::unique_ptr<CoordinatorServer> server_;
};

// Makes the kind of discovery that the settings name.
std::unique_ptr<Discovery> make_discovery(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own,
                                          Discovery::ToStore to_store, Discovery::OnHosting on_hosting);

}  // namespace elastic::transport
