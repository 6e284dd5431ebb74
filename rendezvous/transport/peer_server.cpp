#include "rendezvous/transport/peer_server.h"

#include <algorithm>
#include <utility>

#include "src/base/log.h"
#include "src/net/local_host.h"

namespace elastic::transport {

bool PeerServer::open(const std::vector<std::uint16_t>& ports, const std::string& secret,
                      std::function<void()> on_lead) {
  std::vector<std::uint16_t> all = ports;
  if (settings_.peer_port != 0) all = {settings_.peer_port};
  all.push_back(0);
  for (const std::uint16_t port : all) {
    auto opened = CoordinatorServer::open(loop_, {.address = {},
                                                  .port = port,
                                                  .secret = secret,
                                                  .lease = {settings_.loss_timeout_ms},
                                                  .only_job = settings_.job,
                                                  .own_agent = own_,
                                                  .is_peer_server = true,
                                                  .on_lead = on_lead});
    if (opened) {
      server_ = std::move(*opened);
      return true;
    }
    log::debug("hosting", opened.error().text());
  }
  return false;
}

bool PeerServer::is_at(const std::vector<std::string>& addresses, std::uint16_t port) const {
  return server_ && port == server_->port() && std::ranges::all_of(addresses, net::is_ours);
}

bool PeerServer::note_session() { return server_ && !std::exchange(hosts_, true); }

void PeerServer::tell_facts(CoordinatorServer* here, const PeerFacts& facts) {
  const bool is_told = here == std::exchange(told_, here);
  if (here == nullptr || (facts == std::exchange(facts_, facts) && is_told)) return;
  here->set_peer_facts(facts);
}

}  // namespace elastic::transport
