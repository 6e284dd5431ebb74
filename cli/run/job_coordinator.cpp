#include "cli/run/job_coordinator.h"

#include <span>
#include <utility>

#include "rendezvous/transport/random_nonce.h"

namespace elastic::run {

JobCoordinator::JobCoordinator(net::Loop& loop, const LaunchSettings& settings, Handlers handlers)
    : by_claim_(settings.meeting.place != transport::MeetingSettings::Place::kEndpoint) {
  const auto on_event = std::move(handlers.on_event);
  if (settings.meeting.alone) {
    host_ = std::make_unique<transport::CoordinatorHost>(
        loop, settings.worker.run_id,
        [on_event](protocol::CoordinatorMessage message) { on_event(agent::FromCoordinator{std::move(message)}); });
    handlers.on_hosting(*host_);
    return;
  }
  connection_ = std::make_unique<transport::CoordinatorConnection>(
      loop, settings.meeting,
      transport::CoordinatorConnection::Handlers{
          .on_connected =
              [this, on_event](bool local) {
                on_event(agent::LinkConnected{transport::random_nonce(), local, connection_->secret()});
              },
          .on_broken = [on_event](std::string why) { on_event(agent::LinkBroken{std::move(why)}); },
          .on_received =
              [on_event](std::span<const std::uint8_t> bytes) {
                on_event(agent::LinkReceived{{bytes.begin(), bytes.end()}});
              },
          .on_hosting = std::move(handlers.on_hosting),
          .on_hopeless = [on_event](std::string why) { on_event(agent::GivenUp{std::move(why)}); }},
      settings.meeting.store_at_endpoint ? std::move(handlers.to_store) : nullptr);
}

void JobCoordinator::perform(const agent::Link::Connect&, const agent::Link& link) {
  // A node that only stood by has missed the job's end, if what a coordinator claimed has been taken back.
  connection_->connect(link.own_incarnation() != 0 || (by_claim_ && link.term() != 0));
}

std::optional<JobCoordinator::Address> JobCoordinator::address_elsewhere() const {
  if (host_ || connection_->is_at_home()) return {};
  return Address{connection_->reached_at(), connection_->reached_port()};
}

}  // namespace elastic::run
