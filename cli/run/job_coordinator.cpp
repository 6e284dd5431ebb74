#include "cli/run/job_coordinator.h"

#include <algorithm>
#include <utility>

#include "cli/run/launch_settings.h"
#include "rendezvous/transport/coordinator_connection.h"
#include "rendezvous/transport/coordinator_server.h"
#include "rendezvous/transport/random_nonce.h"
#include "src/base/address.h"
#include "src/base/text.h"
#include "src/net/local_host.h"

namespace elastic::run {

JobCoordinator::JobCoordinator(net::Loop& loop, const LaunchSettings& settings, protocol::AgentId own,
                               Handlers handlers)
    : on_event_(std::move(handlers.on_event)),
      link_timer_(loop),
      job_(settings.worker.run_id),
      has_peer_server_(!settings.rendezvous.alone && settings.rendezvous.has_peer_server) {
  const auto on_received = [this](std::span<const std::uint8_t> bytes) {
    on_event_(agent::LinkReceived{{bytes.begin(), bytes.end()}});
  };
  if (settings.rendezvous.alone) {
    own_ = transport::CoordinatorServer::for_only_node(
        loop, job_, own,
        {.on_data = on_received, .on_end = [this] { on_event_(agent::LinkBroken{"it closed the connection"}); }});
    handlers.on_hosting(*own_);
    return;
  }
  connection_ = std::make_unique<transport::CoordinatorConnection>(
      loop, settings.rendezvous, own,
      transport::CoordinatorConnection::Handlers{
          .on_connected =
              [this](bool local) {
                on_event_(agent::LinkConnected{.nonce = transport::random_nonce(),
                                               .local = local,
                                               .secret = connection_->secret(),
                                               .peer_port = connection_->peer_port(),
                                               .is_same_place = connection_->is_at_session_place(),
                                               .may_begin = connection_->may_begin()});
              },
          .on_broken =
              [this](std::string why, bool has_refused) {
                on_event_(agent::LinkBroken{std::move(why), has_refused, connection_->is_further()});
              },
          .on_received = on_received,
          .on_hosting = std::move(handlers.on_hosting),
          .on_peer_server = std::move(handlers.on_peer_server),
          .on_hopeless = [this](std::string why) { on_event_(agent::GivenUp{std::move(why)}); }},
      settings.rendezvous.store_at_endpoint ? std::move(handlers.to_store) : nullptr);
}

JobCoordinator::~JobCoordinator() = default;

bool JobCoordinator::is_own_over(const agent::Link& link) const {
  return link.votes_for_own() && server() != nullptr && !server()->serves(job_);
}

bool JobCoordinator::is_hosted_here() const { return own_ != nullptr || connection_->hosts(); }

transport::CoordinatorServer* JobCoordinator::server() const { return connection_ ? connection_->server() : nullptr; }

void JobCoordinator::withdraw(std::function<void()> done) { connection_->withdraw(std::move(done)); }

discovery::EndpointAdvice JobCoordinator::advice() const {
  return connection_ ? connection_->advice() : discovery::EndpointAdvice();
}

bool JobCoordinator::discovery_hangs() const { return connection_ && connection_->hangs(); }

void JobCoordinator::perform(const agent::Link::Connect& effect, const agent::Link& link) {
  if (own_) {
    own_->connect();
    return on_event_(agent::LinkConnected{.nonce = transport::random_nonce(), .local = true});
  }
  if (effect.to) {
    return connection_->connect_to({.addresses = split(effect.to->addresses, ' '),
                                    .port = effect.to->port,
                                    .is_own_peer_port = effect.to->agent == link.agent()});
  }
  connection_->connect({.belongs = link.own_incarnation() != 0, .has_met_it = link.term() != 0});
}

void JobCoordinator::perform(const agent::Link::Disconnect& effect) {
  return own_ ? own_->disconnect() : connection_->disconnect(effect.is_stranger);
}

void JobCoordinator::perform(const agent::Link::Write& effect) {
  return own_ ? own_->receive(effect.bytes) : connection_->write(effect.bytes);
}

void JobCoordinator::perform(const agent::StartLinkTimer& effect) {
  link_timer_.start(effect.delay_ms, [this] { on_event_(agent::LinkTimerFired{}); });
}

void JobCoordinator::renew_peer_facts(const agent::Link& link, std::int64_t now_ms) {
  if (!connection_) return;
  if (link.attached()) {
    connection_->note_session();
    remember(address_elsewhere());
  }
  transport::PeerFacts facts{
      .job = job_, .opens_ms = link.may_elect_from_ms(now_ms), .belongs = link.may_be_in_round()};
  if (const auto there = link.hears_coordinator(now_ms) ? address_elsewhere() : std::nullopt) {
    facts.addresses = there->address;
    facts.port = there->port;
    facts.term = link.term();
  }
  connection_->set_peer_facts(facts);
}

std::optional<JobCoordinator::Address> JobCoordinator::address_elsewhere() const {
  if (own_ || connection_->is_at_home()) return {};
  return Address{connection_->reached_at(), connection_->reached_port()};
}

void JobCoordinator::remember(std::optional<Address> elsewhere) {
  if (elsewhere == elsewhere_) return;
  elsewhere_ = std::move(elsewhere);
  is_elsewhere_on_this_host_ = elsewhere_ && (is_loopback(elsewhere_->address) ||
                                              std::ranges::any_of(net::own_addresses(), [&](const auto& own) {
                                                return same_address(own, elsewhere_->address);
                                              }));
}

status::Whereabouts JobCoordinator::whereabouts(const agent::Link& link, bool is_over) const {
  using Kind = status::Whereabouts::Kind;
  status::Whereabouts out{.job = job_};
  if (!has_peer_server_ || (connection_->hosts() && server()->leads(job_))) return out;
  // A node that has left knows where the job went on.
  if (elsewhere_ && (link.attached() || is_over)) {
    out.kind = Kind::kElsewhere;
    out.address = elsewhere_->address;
    out.port = elsewhere_->port;
    out.is_on_this_host = is_elsewhere_on_this_host_;
    return out;
  }
  // This process has the coordinator that is to begin the job, or has ended it.
  const bool is_lost = !is_over && (link.own_incarnation() != 0 || !connection_->hosts());
  if (is_lost) out.kind = Kind::kUnknown;
  return out;
}

std::vector<JobCoordinator::Address> JobCoordinator::listeners(const agent::Link& link) const {
  if (auto there = address_elsewhere()) return {*std::move(there)};
  std::vector<Address> out;
  for (const protocol::NextLeader& next_leader : link.follower().next_leaders()) {
    const std::vector<std::string> addresses = split(next_leader.addresses, ' ');
    if (next_leader.agent != link.agent() && !addresses.empty()) out.push_back({addresses.front(), next_leader.port});
  }
  return out;
}

}  // namespace elastic::run
