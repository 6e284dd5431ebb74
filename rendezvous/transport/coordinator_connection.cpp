#include "rendezvous/transport/coordinator_connection.h"

#include <utility>

#include "rendezvous/transport/coordinator_server.h"
#include "rendezvous/transport/munge_exchange.h"
#include "rendezvous/transport/munge_trust.h"
#include "rendezvous/transport/peer_server.h"
#include "src/base/address.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/local_host.h"

namespace elastic::transport {

using discovery::Tried;

CoordinatorConnection::CoordinatorConnection(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own,
                                             Handlers handlers, ToStore to_store)
    : settings_(settings),
      handlers_(std::move(handlers)),
      discovery_(make_discovery(loop, settings, own, std::move(to_store), handlers_.on_hosting)),
      peer_server_(std::make_unique<PeerServer>(loop, settings, own)),
      dialler_(loop,
               {.on_connected = [this](const Target& target,
                                       std::unique_ptr<net::Stream> stream) { connected(target, std::move(stream)); },
                .on_failed =
                    [this](const Dialler::Failure& failure) {
                      in_vain(failure.all_refused ? Tried::kRefused : Tried::kSilent, failure.problem,
                              failure.session_place_refused);
                    }}),
      first_answer_(loop),
      lingering_(loop) {
  if (settings.has_peer_server) {
    discovery_->keep([this] { return server(); }, [this] { return secret().value_or(settings_.secret); });
  }
  if (settings.munge.step.empty()) return;
  munge_ = std::make_unique<MungeTrust>(loop, settings.munge, settings.is_host.value_or(false));
  discovery_->trust(*munge_);
}

CoordinatorConnection::~CoordinatorConnection() = default;

CoordinatorServer* CoordinatorConnection::server() const {
  return discovery_->server() != nullptr ? discovery_->server() : peer_server_->server();
}

bool CoordinatorConnection::hosts() const { return discovery_->server() != nullptr || peer_server_->hosts(); }

std::optional<std::string> CoordinatorConnection::secret() const { return munge_ ? munge_->secret() : std::nullopt; }

void CoordinatorConnection::connect(const Discovery::Known& known) {
  known_ = known;
  disconnect();
  at_peer_port_ = is_own_peer_port_ = false;
  const auto look = [this, known] { discovery_->find(known, [this](Discovery::Way way) { found(std::move(way)); }); };
  if (!munge_) return look();
  munge_->find_out([this, look, attempt = attempt_] {
    if (attempt != attempt_) return;
    const std::string& why_not = munge_->why_not();
    if (munge_->answers() || !munge_->settings().required || !handlers_.on_hopeless) return look();
    handlers_.on_hopeless(
        format("slurm_auth=munge, and munged does not answer on {} ({}); start it, or leave slurm_auth out",
               net::host_name(), why_not));
  });
}

void CoordinatorConnection::connect_to(At at) {
  disconnect();
  at_peer_port_ = true;
  // Another node's peer port may have redirected to this node, by address.
  is_own_peer_port_ = at.is_own_peer_port || peer_server_->is_at(at.addresses, at.port);
  at.addresses = is_own_peer_port_ ? std::vector<std::string>{kLoopback} : net::addresses_elsewhere(at.addresses);
  way_ = {};  // no way of discovery's
  // The caller does not expect an answer before it returns.
  dialler_.dial_later(std::move(at.addresses), at.port);
}

void CoordinatorConnection::withdraw(std::function<void()> done) {
  if (server() != nullptr && server()->leaves_to_others(settings_.job)) return done();
  discovery_->withdraw(std::move(done));
}

// If this node hosts the coordinator by the endpoint or the file, that coordinator's port is its peer port.
std::uint16_t CoordinatorConnection::peer_port() const {
  if (!settings_.has_peer_server) return 0;
  if (const CoordinatorServer* server = discovery_->server()) return server->port();
  return peer_server_->server() != nullptr ? peer_server_->server()->port() : 0;
}

void CoordinatorConnection::set_peer_facts(const PeerFacts& facts) {
  peer_server_->tell_facts(settings_.has_peer_server ? server() : nullptr, facts);
}

void CoordinatorConnection::open_peer_server() {
  if (!settings_.has_peer_server || server() != nullptr) return;
  const bool is_open = peer_server_->open(discovery_->peer_ports(), secret().value_or(settings_.secret),
                                          [this] { discovery_->lead_changes(); });
  if (is_open && handlers_.on_peer_server) handlers_.on_peer_server(*peer_server_->server());
}

void CoordinatorConnection::disconnect(bool is_stranger) {
  ++attempt_;
  exchange_.reset();
  discovery_->stop();
  dialler_.stop();
  first_answer_.stop_probing();
  ended(is_stranger ? Tried::kStranger : first_answer_.has_come() ? Tried::kAnswered : Tried::kNot);
  // The connection is kept until the coordinator has read what was written last.
  if (stream_) lingering_.part(std::move(stream_));
}

void CoordinatorConnection::write(std::span<const std::uint8_t> bytes) {
  if (stream_) stream_->write({bytes.begin(), bytes.end()});
}

void CoordinatorConnection::found(Discovery::Way way) {
  way_ = std::move(way);
  if (way_.hopeless && reached_.address.empty() && handlers_.on_hopeless) {
    return handlers_.on_hopeless(format("{}: {}", endpoint_text(settings_), way_.problem));
  }
  trying_ = !way_.addresses.empty() && !way_.ports.empty();
  // The way may lead to this node's own peer port.
  is_own_peer_port_ = trying_ && way_.ports.size() == 1 && peer_server_->is_at(way_.addresses, way_.ports.front());
  if (is_own_peer_port_) way_.addresses = {kLoopback};
  dialler_.dial(way_.addresses, way_.ports, way_.problem);
}

void CoordinatorConnection::note_session() {
  ended(Tried::kAnswered);
  dialler_.note_session(reached_);
  // on_hosting was called for discovery's own server when that was opened.
  if (!is_own_peer_port_ || !peer_server_->note_session()) return;
  if (peer_server_->server()->is_peer_server()) {
    log::info("hosting", format("this node hosts the coordinator at port {}: the one before was lost", reached_.port));
  }
  if (handlers_.on_hosting) handlers_.on_hosting(*peer_server_->server());
}

void CoordinatorConnection::connected(const Target& target, std::unique_ptr<net::Stream> stream) {
  if (!at_peer_port_) discovery_->reached(target.port);
  if (munge_ && !munge_->secret()) return ask_by_munge(target, std::move(stream));
  reached_ = target;
  stream_ = std::move(stream);
  if (trying_ && discovery_->may_be_stale()) {
    first_answer_.doubt([this] { in_vain(Tried::kSilent, "it accepts the connection, but sends nothing"); });
  }
  stream_->start({.on_data = [this](std::span<const std::uint8_t> bytes) { received(bytes); },
                  .on_end =
                      [this] {
                        in_vain(first_answer_.has_come() ? Tried::kAnswered : Tried::kSilent,
                                "it closed the connection");
                      }});
  at_home_ = is_own_peer_port_ || (way_.home && target.address == kLoopback);
  open_peer_server();
  // A coordinator that has the workers' store at its own port would take the probe for a worker.
  if (!at_home_ && !settings_.store_at_endpoint) {
    first_answer_.probe_if_silent(target, [this](std::span<const std::uint8_t> bytes) { received(bytes); });
  }
  handlers_.on_connected(at_home_);
}

// The secret is got on a connection of its own. The session uses the next one.
void CoordinatorConnection::ask_by_munge(const Target& target, std::unique_ptr<net::Stream> stream) {
  exchange_ = std::make_unique<MungeExchange>(
      *munge_, std::move(stream),
      MungeExchange::Handlers{.on_secret =
                                  [this, target](std::string secret) {
                                    exchange_.reset();
                                    munge_->settle(std::move(secret));
                                    dialler_.dial_again(target);
                                  },
                              .on_broken = [this](const std::string& why) { in_vain(Tried::kAnswered, why); },
                              .on_hopeless =
                                  [this](const std::string& why) {
                                    exchange_.reset();
                                    if (handlers_.on_hopeless) {
                                      handlers_.on_hopeless(format("{}: {}", endpoint_text(settings_), why));
                                    }
                                  }});
}

// A stale entry may lead to any kind of server. Then this attempt has failed, and the agent goes on looking.
void CoordinatorConnection::received(std::span<const std::uint8_t> bytes) {
  if (const auto stranger = first_answer_.stranger_in(bytes)) return in_vain(Tried::kStranger, *stranger);
  handlers_.on_received(bytes);
}

void CoordinatorConnection::ended(Tried how) {
  first_answer_.believe();
  if (std::exchange(trying_, false)) discovery_->tried(how);
}

void CoordinatorConnection::in_vain(Tried how, const std::string& why, bool has_refused) {
  const bool was_trying = trying_;
  std::string told = trying_ ? discovery_->explain(why) : why;
  ended(how);
  // Nothing is gained by a pause before the next place is asked.
  const bool is_gone = how == Tried::kRefused || how == Tried::kStranger;
  if (was_trying && is_gone && !has_refused && discovery_->has_untried()) return connect(known_);
  broken(std::move(told), has_refused);
}

void CoordinatorConnection::broken(std::string why, bool has_refused) {
  first_answer_.stop_probing();
  dialler_.stop();
  exchange_.reset();
  stream_.reset();
  handlers_.on_broken(std::move(why), has_refused);
}

}  // namespace elastic::transport
