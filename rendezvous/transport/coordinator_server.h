#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "rendezvous/coordinator/service.h"
#include "rendezvous/locate/authority.h"
#include "rendezvous/protocol/lease.h"
#include "src/base/result.h"
#include "src/net/lingering_connections.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::transport {

// What listens at an endpoint: coordinator::Service on sockets, for any number of jobs.
class CoordinatorServer {
 public:
  struct Settings {
    std::string address;  // numeric; empty: all
    std::uint16_t port = 0;
    std::string secret;
    protocol::LeaseTimes lease;
    locate::Authority authority = locate::Authority::always();  // until set_authority()
    std::string only_job = {};                                  // see coordinator::ServiceSettings
    bool is_claimed = false;                                    // see coordinator::CoordinatorConfig
    // Takes connections that begin as those of a worker store's clients, with what they have sent so far. None:
    // they are strangers.
    std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)> to_store = {};
    // The same of those that begin with the words of munge.
    std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)> to_munge = {};
  };

  // Listens and serves from the next turn of the loop on. Fails as net::Listener::open does.
  static Result<std::unique_ptr<CoordinatorServer>> open(net::Loop& loop, Settings settings);
  CoordinatorServer(const CoordinatorServer&) = delete;
  CoordinatorServer& operator=(const CoordinatorServer&) = delete;

  // Until when it may act from now on.
  void set_authority(locate::Authority authority) { on(coordinator::AuthorityIs{authority}); }
  // Ends it: another has taken its place, says the clause. It listens no more, and its jobs are forgotten.
  void depose(std::string why);

  // From now on `write` gets the recording of this job's coordinator, line by line.
  void record(const std::string& job, std::function<void(std::string_view line)> write);

  // Called when the check of a round of a job is over.
  void on_judged(std::function<void(const std::string& job, const coordinator::CheckJudged& check)> call) {
    on_judged_ = std::move(call);
  }

  // Takes connections that begin with an HTTP request, with what they have sent so far. Until it is called they are
  // strangers.
  void on_http(std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)> take) {
    to_http_ = std::move(take);
  }
  // What is to be told of its jobs.
  status::Coordinator status() const;

  std::uint16_t port() const { return port_; }
  std::size_t jobs() const { return service_.jobs(); }
  // Somebody has been welcomed.
  bool has_visitors() const { return service_.jobs() > 0; }
  // All that was to be said has been, and nobody is here.
  bool is_idle() const { return service_.connections() == 0 && lingering_.empty(); }
  // Called when that has become so.
  void on_idle(std::function<void()> call) { on_idle_ = std::move(call); }

 private:
  struct Connection {
    std::unique_ptr<net::Stream> stream;
    bool begun = false;  // its first bytes have been looked at
  };

  CoordinatorServer(net::Loop& loop, Settings settings);
  coordinator::ServiceSettings service_settings();
  void accept(std::unique_ptr<net::Stream> stream);
  void read(coordinator::ConnectionId id, std::span<const std::uint8_t> bytes);
  // Takes a connection away from the agents.
  std::unique_ptr<net::Stream> release(coordinator::ConnectionId id, std::string why);
  void on(const coordinator::ServiceEvent& event);
  void perform(coordinator::ServiceEffect& effect);
  void plan_timer();
  void tell_if_idle();

  net::Loop& loop_;
  Settings settings_;
  std::unique_ptr<net::Listener> listener_;  // none: it is deposed
  std::uint16_t port_ = 0;
  coordinator::Service service_;
  std::map<coordinator::ConnectionId, Connection> connections_;
  coordinator::ConnectionId last_ = 0;
  net::LingeringConnections lingering_;
  net::Timer timer_;
  std::optional<std::int64_t> timer_at_ms_;
  std::function<void()> on_idle_;
  std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)> to_http_;
  std::function<void(const std::string&, const coordinator::CheckJudged&)> on_judged_;
  std::string recorded_job_;
  std::function<void(std::string_view)> recorder_;  // of that job; none: nothing is recorded
  std::set<std::string> told_;                      // of strangers, as warnings
};

}  // namespace elastic::transport
