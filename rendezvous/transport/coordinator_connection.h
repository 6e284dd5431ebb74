#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rendezvous/discovery/entry_search.h"
#include "rendezvous/transport/dialler.h"
#include "rendezvous/transport/discovery.h"
#include "rendezvous/transport/first_answer.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "src/net/lingering_connections.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::transport {

class CoordinatorServer;
class MungeExchange;
class MungeTrust;
class PeerServer;
struct PeerFacts;

// A node's connection to the coordinator, one at a time. It also owns the coordinator if this node hosts it, which
// discovery (the endpoint or the file) decides at each attempt.
class CoordinatorConnection {
 public:
  struct Handlers {
    // `local` says that the coordinator is in this process.
    std::function<void(bool local)> on_connected;
    // `has_refused`: the address of the last session with a coordinator has refused the connection (note_session()).
    std::function<void(std::string why, bool has_refused)> on_broken;
    std::function<void(std::span<const std::uint8_t>)> on_received;
    // The coordinator listens in this process from now on.
    std::function<void(CoordinatorServer&)> on_hosting = {};
    // This node's peer port is open, at which it can come to host the coordinator.
    std::function<void(CoordinatorServer&)> on_peer_server = {};
    // Called instead of on_broken, before the first connection, if no further attempt can succeed. `why` is a clause.
    std::function<void(std::string why)> on_hopeless = {};
  };
  using ToStore = Discovery::ToStore;

  // `settings` must outlive it. `own` is the agent of this node. For `to_store` see CoordinatorServer.
  CoordinatorConnection(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own, Handlers handlers,
                        ToStore to_store = {});
  ~CoordinatorConnection();

  // Answered by on_connected or on_broken, in a later turn of the loop.
  void connect(const Discovery::Known& known);
  // The same, at this node's own peer port or that of another node.
  struct At {
    std::vector<std::string> addresses;  // numeric
    std::uint16_t port = 0;
    bool is_own_peer_port = false;
  };
  void connect_to(At at);
  // The present connection is a session with the job's coordinator. Only a refusal at this very address proves the
  // coordinator's death: another address of it may lead to another host from here.
  void note_session();
  // The present connection leads to the address of the last session.
  bool is_at_session_place() const { return dialler_.is_session_place(reached_); }
  // The job may be begun where the present connection leads, if it is not there yet.
  bool may_begin() const { return way_.may_begin; }
  // The present connection leads, or was to lead, to a further host of the endpoint, which need not be there.
  bool is_further() const { return way_.is_further; }
  // The number of this node's peer port, which is open from the first connection on; 0: it has none.
  std::uint16_t peer_port() const;
  // What this node's agent knows of the coordinator.
  void set_peer_facts(const PeerFacts& facts);
  // Closes the connection. No handler is called for it any more. `is_stranger`: the server there is not of this job.
  void disconnect(bool is_stranger = false);
  void write(std::span<const std::uint8_t> bytes);
  // See Discovery. The entry of a job that goes on elsewhere is left to its other nodes.
  void withdraw(std::function<void()> done);
  bool hangs() const { return discovery_->hangs(); }
  // See Discovery. Empty where the coordinator that was connected to last is elsewhere.
  discovery::EndpointAdvice advice() const { return at_home_ ? discovery_->advice() : discovery::EndpointAdvice(); }

  // The coordinator in this process that agents may be connected to; null if there is none.
  CoordinatorServer* server() const;
  // A coordinator is, or was, in this process.
  bool hosts() const;
  // The coordinator that was connected to last is in this process.
  bool is_at_home() const { return at_home_; }
  // The numeric address of the coordinator that was connected to last; empty before the first connection.
  const std::string& reached_at() const { return reached_.address; }
  std::uint16_t reached_port() const { return reached_.port; }
  // The job's secret, if it was got by munge.
  std::optional<std::string> secret() const;

 private:
  void found(Discovery::Way way);
  void open_peer_server();
  void ask_by_munge(const Target& target, std::unique_ptr<net::Stream> stream);
  void connected(const Target& target, std::unique_ptr<net::Stream> stream);
  void received(std::span<const std::uint8_t> bytes);
  // The attempt at the endpoint or by the file has ended.
  void ended(discovery::Tried how);
  // The same without success, and why; also for an attempt at a peer port.
  void in_vain(discovery::Tried how, const std::string& why, bool has_refused = false);
  void broken(std::string why, bool has_refused = false);

  const RendezvousSettings& settings_;
  Handlers handlers_;
  std::unique_ptr<MungeTrust> munge_;  // in a Slurm step, unless the user has given a secret
  std::unique_ptr<Discovery> discovery_;
  std::unique_ptr<PeerServer> peer_server_;
  bool at_peer_port_ = false;      // the present attempt leads to a peer port
  bool is_own_peer_port_ = false;  // and to this node's own
  Discovery::Known known_;         // of the present attempt by discovery
  Discovery::Way way_;
  Target reached_;
  bool at_home_ = false;
  Dialler dialler_;
  std::unique_ptr<net::Stream> stream_;
  FirstAnswer first_answer_;
  std::unique_ptr<MungeExchange> exchange_;
  std::uint64_t attempt_ = 0;
  net::LingeringConnections lingering_;
  bool trying_ = false;  // discovery is still to be told how the present attempt ends
};

}  // namespace elastic::transport
