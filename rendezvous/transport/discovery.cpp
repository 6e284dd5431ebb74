#include "rendezvous/transport/discovery.h"

#include <utility>

#include "rendezvous/transport/coordinator_server.h"
#include "rendezvous/transport/endpoint_discovery.h"
#include "rendezvous/transport/file_discovery.h"
#include "rendezvous/transport/munge_gate.h"
#include "rendezvous/transport/munge_trust.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::transport {

Discovery::Discovery(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own, ToStore to_store,
                     OnHosting on_hosting)
    : loop_(loop),
      settings_(settings),
      to_store_(std::move(to_store)),
      on_hosting_(std::move(on_hosting)),
      own_agent_(own) {}

Discovery::~Discovery() = default;

void Discovery::trust(MungeTrust& munge) {
  gate_ = std::make_unique<MungeGate>(loop_, munge);
  munge_ = &munge;
}

bool Discovery::lacks_secret() const { return munge_ != nullptr && munge_->answers() && !munge_->secret(); }

void Discovery::close_server() { server_.reset(); }

Status Discovery::open_server(std::uint16_t port) {
  // An entry in a file leads to one job.
  const bool is_one_jobs = settings_.place == RendezvousSettings::Place::kFile || settings_.serves_own_job_only;
  ToStore to_munge;
  if (gate_) {
    to_munge = [this](std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes) {
      gate_->take_connection(std::move(stream), bytes);
    };
  }
  auto server =
      CoordinatorServer::open(loop_, {.address = {},
                                      .port = port,
                                      .secret = munge_ != nullptr ? munge_->secret().value_or("") : settings_.secret,
                                      .lease = {settings_.loss_timeout_ms},
                                      .only_job = is_one_jobs ? settings_.job : "",
                                      .own_agent = own_agent_,
                                      .on_lead = is_one_jobs ? [this] { lead_changes(); } : std::function<void()>(),
                                      .to_store = to_store_,
                                      .to_munge = std::move(to_munge)});
  if (!server) return std::unexpected(std::move(server.error()));
  server_ = std::move(*server);
  return {};
}

void Discovery::tell_hosting(CoordinatorServer& here, const std::string& does, const std::string& where,
                             const std::string& reason) {
  log::info("hosting", format("this node {} the coordinator at {}: {}", does, where, reason), {{"port", here.port()}});
  if (on_hosting_ && &here == server_.get()) on_hosting_(here);
}

std::unique_ptr<Discovery> make_discovery(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own,
                                          Discovery::ToStore to_store, Discovery::OnHosting on_hosting) {
  if (settings.place == RendezvousSettings::Place::kEndpoint) {
    return std::make_unique<EndpointDiscovery>(loop, settings, own, std::move(to_store), std::move(on_hosting));
  }
  return std::make_unique<FileDiscovery>(loop, settings, own, std::move(to_store), std::move(on_hosting));
}

}  // namespace elastic::transport
