#include "rendezvous/transport/meeting_place.h"

#include <utility>

#include "rendezvous/transport/claimed_place.h"
#include "rendezvous/transport/endpoint_place.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::transport {

MeetingPlace::MeetingPlace(net::Loop& loop, const MeetingSettings& settings, ToStore to_store, OnHosting on_hosting)
    : loop_(loop), settings_(settings), to_store_(std::move(to_store)), on_hosting_(std::move(on_hosting)) {}

Status MeetingPlace::open_server(std::uint16_t port, protocol::Term first_term) {
  // A claim belongs to one job, and its coordinator acts only while it holds the claim.
  const bool is_claimed = settings_.place != MeetingSettings::Place::kEndpoint;
  ToStore to_munge;
  if (gate_) {
    to_munge = [this](std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes) {
      gate_->take(std::move(stream), bytes);
    };
  }
  auto server =
      CoordinatorServer::open(loop_, {.address = {},
                                      .port = port,
                                      .secret = munge_ != nullptr ? munge_->secret().value_or("") : settings_.secret,
                                      .lease = {settings_.loss_timeout_ms},
                                      .authority = is_claimed ? locate::Authority::none() : locate::Authority::always(),
                                      .only_job = is_claimed || settings_.serves_own_job_only ? settings_.job : "",
                                      .first_term = first_term,
                                      .is_claimed = is_claimed,
                                      .own_agent = own_agent_,
                                      .to_store = to_store_,
                                      .to_munge = std::move(to_munge)});
  if (!server) return std::unexpected(std::move(server.error()));
  server_ = std::move(*server);
  return {};
}

void MeetingPlace::retire_server(const std::string& why) {
  server_->depose(why);
  retired_ = std::move(server_);
}

void MeetingPlace::tell_hosting(const std::string& does, const std::string& where, const std::string& reason) {
  log::info("hosting", format("this node {} the coordinator at {}: {}", does, where, reason),
            {{"port", server_->port()}});
  if (on_hosting_) on_hosting_(*server_);
}

std::unique_ptr<MeetingPlace> make_meeting_place(net::Loop& loop, const MeetingSettings& settings,
                                                 MeetingPlace::ToStore to_store, MeetingPlace::OnHosting on_hosting) {
  if (settings.place == MeetingSettings::Place::kEndpoint) {
    return std::make_unique<EndpointPlace>(loop, settings, std::move(to_store), std::move(on_hosting));
  }
  return std::make_unique<ClaimedPlace>(loop, settings, std::move(to_store), std::move(on_hosting));
}

}  // namespace elastic::transport
