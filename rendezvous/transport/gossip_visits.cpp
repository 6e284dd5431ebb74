#include "rendezvous/transport/gossip_visits.h"

#include <span>

#include "rendezvous/transport/random_nonce.h"
#include "src/base/log.h"
#include "src/net/limits.h"

namespace elastic::transport {
namespace {

constexpr std::int64_t kVisitMs = 1000;

}  // namespace

void GossipVisits::go(const std::vector<std::string>& addresses, std::uint16_t port, const std::string& secret,
                      const What& what) {
  std::erase_if(visits_, [&](const auto& entry) {
    return entry.second->is_over || loop_.now_ms() - entry.second->began_ms >= kVisitMs;
  });
  for (const std::string& address : addresses) {
    if (visits_.size() >= limits::kAddressesOfName) return;
    const auto [entry, is_new] = visits_.try_emplace({address, port}, std::make_unique<Visit>());
    if (!is_new) continue;
    Visit* const visit = entry->second.get();
    visit->began_ms = loop_.now_ms();
    visit->connector = std::make_unique<net::Connector>(
        loop_, address, port, kVisitMs, [visit, secret, what](Result<std::unique_ptr<net::Stream>> stream) {
          const auto done = std::move(visit->connector);
          visit->is_over = !stream;
          if (stream) gossip(*visit, std::move(*stream), secret, what());
        });
  }
}

void GossipVisits::gossip(Visit& visit, std::unique_ptr<net::Stream> stream, const std::string& secret,
                          std::optional<protocol::Introduction> what) {
  visit.is_over = !what;
  if (!what) return;
  visit.session = std::make_unique<protocol::AgentSession>(*std::move(what), secret, random_nonce());
  visit.stream = std::move(stream);
  const auto write = [&visit](protocol::ByteString bytes) {
    if (!bytes.empty()) visit.stream->write({bytes.begin(), bytes.end()});
  };
  visit.stream->start({.on_data =
                           [&visit, write](std::span<const std::uint8_t> bytes) {
                             protocol::ByteString reply;
                             const auto events = visit.session->receive(bytes, reply);
                             write(std::move(reply));
                             for (const auto& event : events) {
                               const auto* end = std::get_if<protocol::SessionError>(&event);
                               if (end == nullptr) continue;
                               visit.is_over = true;
                               log::debug("announcement", end->text);
                             }
                           },
                       .on_end = [&visit] { visit.is_over = true; }});
  write(visit.session->begin());
}

}  // namespace elastic::transport
