#include "src/runtime/meeting_place.h"

#include <utility>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/claim_file.h"
#include "src/runtime/claim_store.h"
#include "src/runtime/claimed_place.h"
#include "src/runtime/endpoint_place.h"

namespace elastic::runtime {

MeetingPlace::MeetingPlace(net::Loop& loop, const LaunchSettings& settings, ToStore to_store, OnHosting on_hosting)
    : loop_(loop), settings_(settings), to_store_(std::move(to_store)), on_hosting_(std::move(on_hosting)) {}

Status MeetingPlace::open_server(std::uint16_t port) {
  auto server = CoordinatorServer::open(loop_, {.address = {},
                                                .port = port,
                                                .secret = settings_.meeting.secret,
                                                .lease = {settings_.meeting.loss_timeout_ms},
                                                .only_job = settings_.meeting.serves_own_job_only ? settings_.worker.run_id : "",
                                                .is_claimed = settings_.meeting.place != MeetingSettings::Place::kEndpoint,
                                                .to_store = to_store_});
  if (!server) return std::unexpected(std::move(server.error()));
  server_ = std::move(*server);
  return {};
}

void MeetingPlace::tell_hosting(const std::string& does, const std::string& where, const std::string& reason) {
  log::info("hosting", format("this node {} the coordinator at {}: {}", does, where, reason),
            {{"port", server_->port()}});
  if (on_hosting_) on_hosting_(*server_);
}

std::unique_ptr<MeetingPlace> make_meeting_place(net::Loop& loop, const LaunchSettings& settings,
                                                 MeetingPlace::ToStore to_store, MeetingPlace::OnHosting on_hosting) {
  std::unique_ptr<ClaimRegister> claims;
  switch (settings.meeting.place) {
    case MeetingSettings::Place::kEndpoint:
      return std::make_unique<EndpointPlace>(loop, settings, std::move(to_store), std::move(on_hosting));
    case MeetingSettings::Place::kFile:
      claims = std::make_unique<ClaimFile>(loop, settings.meeting.path, settings.worker.run_id);
      break;
    case MeetingSettings::Place::kTcpStore:
      claims = std::make_unique<ClaimStore>(loop, settings.meeting.host, settings.meeting.port, settings.worker.run_id);
      break;
  }
  return std::make_unique<ClaimedPlace>(loop, settings, std::move(claims), std::move(to_store), std::move(on_hosting));
}

}  // namespace elastic::runtime
