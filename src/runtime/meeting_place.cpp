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
  const MeetingSettings& meeting = settings_.meeting;
  // A claim is one job's, and gives the right to act.
  const bool is_claimed = meeting.place != MeetingSettings::Place::kEndpoint;
  auto server = CoordinatorServer::open(loop_, {.address = {},
                                                .port = port,
                                                 .secret = meeting.secret,
                                                 .lease = {meeting.loss_timeout_ms},
                                                 .authority = is_claimed ? locate::Authority::none()
                                                                         : locate::Authority::always(),
                                                 .only_job = is_claimed || meeting.serves_own_job_only
                                                                 ? settings_.worker.run_id : "",
                                                 .is_claimed = is_claimed,
                                                .to_store = to_store_});
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

std::unique_ptr<MeetingPlace> make_meeting_place(net::Loop& loop, const LaunchSettings& settings,
                                                 MeetingPlace::ToStore to_store, MeetingPlace::OnHosting on_hosting) {
  const MeetingSettings& meeting = settings.meeting;
  const std::string& job = settings.worker.run_id;
  if (meeting.place == MeetingSettings::Place::kEndpoint) {
    return std::make_unique<EndpointPlace>(loop, settings, std::move(to_store), std::move(on_hosting));
  }
  const auto make_register = [&]() -> std::unique_ptr<ClaimRegister> {
    if (meeting.place == MeetingSettings::Place::kFile) return std::make_unique<ClaimFile>(loop, meeting.path, job);
    return std::make_unique<ClaimStore>(loop, meeting.host, meeting.port, job);
  };
  return std::make_unique<ClaimedPlace>(loop, settings, make_register(), make_register(), std::move(to_store),
                                        std::move(on_hosting));
}

}  // namespace elastic::runtime
