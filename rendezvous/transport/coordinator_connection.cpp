#include "rendezvous/transport/coordinator_connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/address.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/net/local_host.h"

namespace elastic::transport {
namespace {

using discovery::Tried;

// The limit for one address. The next attempt begins with all addresses again.
constexpr std::int64_t kConnectMs = 2'000;
constexpr std::int64_t kSilenceMs = 1'000;
// How long the server behind an entry that may be stale has to answer.
constexpr std::int64_t kFirstBytesMs = 2'500;

}  // namespace

CoordinatorConnection::CoordinatorConnection(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own,
                                             Handlers handlers, ToStore to_store)
    : loop_(loop),
      settings_(settings),
      handlers_(std::move(handlers)),
      discovery_(make_discovery(loop, settings, own, std::move(to_store), handlers_.on_hosting)),
      own_(own),
      dialling_(loop),
      silence_(loop),
      first_bytes_(loop),
      lingering_(loop) {
  if (settings.has_peer_server) {
    discovery_->keep([this] { return server(); }, [this] { return secret().value_or(settings_.secret); });
  }
  if (settings.munge.step.empty()) return;
  munge_ = std::make_unique<MungeTrust>(loop, settings.munge, settings.is_host.value_or(false));
  discovery_->trust(*munge_);
}

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
  const bool leads_here =
      peer_server_ && at.port == peer_server_->port() && std::ranges::all_of(at.addresses, net::is_ours);
  is_own_peer_port_ = at.is_own_peer_port || leads_here;
  at.addresses = is_own_peer_port_ ? std::vector<std::string>{kLoopback} : net::addresses_elsewhere(at.addresses);
  // The caller does not expect an answer before it returns.
  dialling_.start(0, [this, at = std::move(at)] { try_all({.addresses = at.addresses, .ports = {at.port}}); });
}

void CoordinatorConnection::withdraw(std::function<void()> done) {
  if (server() != nullptr && server()->leaves_to_others(settings_.job)) return done();
  discovery_->withdraw(std::move(done));
}

// If this node hosts the coordinator by the endpoint or the file, that coordinator's port is its peer port.
std::uint16_t CoordinatorConnection::peer_port() const {
  if (!settings_.has_peer_server) return 0;
  if (const CoordinatorServer* server = discovery_->server()) return server->port();
  return peer_server_ ? peer_server_->port() : 0;
}

void CoordinatorConnection::set_peer_facts(const PeerFacts& facts) {
  CoordinatorServer* const here = settings_.has_peer_server ? server() : nullptr;
  const bool is_told = here == std::exchange(told_, here);
  if (here == nullptr || (facts == std::exchange(peer_facts_, facts) && is_told)) return;
  here->set_peer_facts(facts);
}

void CoordinatorConnection::open_peer_server() {
  if (!settings_.has_peer_server || peer_server_ || discovery_->server() != nullptr) return;
  std::vector<std::uint16_t> ports = discovery_->peer_ports();
  if (settings_.peer_port != 0) ports = {settings_.peer_port};
  ports.push_back(0);
  for (const std::uint16_t port : ports) {
    auto opened = CoordinatorServer::open(loop_, {.address = {},
                                                  .port = port,
                                                  .secret = secret().value_or(settings_.secret),
                                                  .lease = {settings_.loss_timeout_ms},
                                                  .only_job = settings_.job,
                                                  .own_agent = own_,
                                                  .is_peer_server = true,
                                                  .on_lead = [this] { discovery_->lead_changes(); }});
    if (opened) {
      peer_server_ = std::move(*opened);
      if (handlers_.on_peer_server) handlers_.on_peer_server(*peer_server_);
      return;
    }
    log::debug("hosting", opened.error().text());
  }
}

void CoordinatorConnection::disconnect(bool is_stranger) {
  ++attempt_;
  exchange_.reset();
  discovery_->stop();
  dialling_.stop();
  stop_probing();
  connector_.reset();
  ended(is_stranger ? Tried::kStranger : is_answered_ ? Tried::kAnswered : Tried::kNot);
  // The connection is kept until the coordinator has read what was written last.
  if (stream_) lingering_.part(std::move(stream_));
}

void CoordinatorConnection::write(std::span<const std::uint8_t> bytes) {
  if (stream_) stream_->write({bytes.begin(), bytes.end()});
}

void CoordinatorConnection::found(Discovery::Way way) {
  way_ = std::move(way);
  if (way_.hopeless && !was_connected_ && handlers_.on_hopeless) {
    return handlers_.on_hopeless(format("{}: {}", endpoint_text(settings_), way_.problem));
  }
  trying_ = !way_.addresses.empty() && !way_.ports.empty();
  // The way may lead to this node's own peer port.
  is_own_peer_port_ = peer_server_ && trying_ && way_.ports == std::vector{peer_server_->port()} &&
                      std::ranges::all_of(way_.addresses, net::is_ours);
  if (is_own_peer_port_) way_.addresses = {kLoopback};
  try_all(way_);
}

void CoordinatorConnection::try_all(const Discovery::Way& way) {
  way_ = way;
  targets_.clear();
  for (const std::uint16_t port : way_.ports) {
    for (const std::string& address : way_.addresses) targets_.push_back({address, port});
  }
  std::ranges::reverse(targets_);
  all_refused_ = !targets_.empty();
  session_place_refused_ = false;
  try_next();
}

void CoordinatorConnection::try_next() {
  if (targets_.empty()) {
    return in_vain(all_refused_ ? Tried::kRefused : Tried::kSilent, way_.problem, session_place_refused_);
  }
  const Target target = std::move(targets_.back());
  targets_.pop_back();
  connector_ = std::make_unique<net::Connector>(loop_, target.address, target.port, kConnectMs,
                                                [this, target](Result<std::unique_ptr<net::Stream>> stream) {
                                                  const std::unique_ptr<net::Connector> done = std::move(connector_);
                                                  if (stream) return connected(target, std::move(*stream));
                                                  way_.problem = stream.error().reason;
                                                  judge(target, way_.problem);
                                                  try_next();
                                                });
}

void CoordinatorConnection::judge(const Target& target, const std::string& problem) {
  const bool has_refused = problem == errno_text(ECONNREFUSED);
  if (!has_refused) all_refused_ = false;
  if (has_refused && is_session_place(target)) session_place_refused_ = true;
}

void CoordinatorConnection::note_session() {
  ended(Tried::kAnswered);
  session_at_ = reached_;
  // on_hosting was called for discovery's own server when that was opened.
  if (!is_own_peer_port_ || !peer_server_ || std::exchange(peer_server_hosts_, true)) return;
  if (peer_server_->is_peer_server()) {
    log::info("hosting", format("this node hosts the coordinator at port {}: the one before was lost", reached_.port));
  }
  if (handlers_.on_hosting) handlers_.on_hosting(*peer_server_);
}

bool CoordinatorConnection::is_session_place(const Target& target) const {
  if (target.port != session_at_.port || session_at_.address.empty()) return false;
  // A process of this host is reached by any of its addresses.
  return same_address(target.address, session_at_.address) ||
         (net::is_ours(target.address) && net::is_ours(session_at_.address));
}

void CoordinatorConnection::connected(const Target& target, std::unique_ptr<net::Stream> stream) {
  if (!at_peer_port_) discovery_->reached(target.port);
  if (munge_ && !munge_->secret()) return ask_by_munge(target, std::move(stream));
  was_connected_ = true;
  reached_ = target;
  stream_ = std::move(stream);
  first_frame_ = trying_ && discovery_->may_be_stale() ? std::make_unique<protocol::FrameReader>() : nullptr;
  if (first_frame_) {
    first_bytes_.start(kFirstBytesMs,
                       [this] { in_vain(Tried::kSilent, "it accepts the connection, but sends nothing"); });
  }
  stream_->start(
      {.on_data = [this](std::span<const std::uint8_t> bytes) { received(bytes); },
       .on_end = [this] { in_vain(is_answered_ ? Tried::kAnswered : Tried::kSilent, "it closed the connection"); }});
  at_home_ = is_own_peer_port_ || (way_.home && target.address == kLoopback);
  open_peer_server();
  // A coordinator that has the workers' store at its own port would take the probe for a worker.
  if (!at_home_ && !settings_.store_at_endpoint) probe_if_silent();
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
                                    targets_.push_back(target);
                                    try_next();
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

// A coordinator answers at once. If nothing has come, a PyTorch store may listen there: it is asked on a connection of
// its own, and if it answers the session gets a store's first bytes, by which it names the server.
void CoordinatorConnection::probe_if_silent() {
  silence_.start(kSilenceMs, [this] {
    probe_ = std::make_unique<StoreProbe>(loop_, reached_.address, reached_.port,
                                          [this] { received(StoreProbe::kFirstBytes); });
  });
}

void CoordinatorConnection::stop_probing() {
  silence_.stop();
  probe_.reset();
}

// A stale entry may lead to any kind of server. Then this attempt has failed, and the agent goes on looking.
void CoordinatorConnection::received(std::span<const std::uint8_t> bytes) {
  stop_probing();
  if (first_frame_) {
    protocol::Bytes rest = bytes;
    const auto step = first_frame_->next(rest, limits::kAgentHelloBytes);
    if (step == protocol::FrameReader::Step::kStranger) {
      const std::string who = first_frame_->stranger();
      return in_vain(Tried::kStranger, who);
    }
    if (step != protocol::FrameReader::Step::kNeedMore) {
      is_answered_ = true;
      first_frame_.reset();
      first_bytes_.stop();
    }
  }
  handlers_.on_received(bytes);
}

void CoordinatorConnection::ended(Tried how) {
  first_frame_.reset();
  first_bytes_.stop();
  is_answered_ = false;
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
  stop_probing();
  connector_.reset();
  exchange_.reset();
  stream_.reset();
  handlers_.on_broken(std::move(why), has_refused);
}

}  // namespace elastic::transport
