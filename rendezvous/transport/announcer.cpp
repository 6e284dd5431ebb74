#include "rendezvous/transport/announcer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rendezvous/protocol/lease.h"
#include "rendezvous/transport/meeting_place.h"
#include "rendezvous/transport/random_nonce.h"
#include "src/base/address.h"
#include "src/base/log.h"
#include "src/net/local_host.h"

namespace elastic::transport {
namespace {

constexpr std::int64_t kShortestPauseMs = 100;
constexpr std::int64_t kVisitMs = 1000;
// Where the endpoint leads to this process alone, its name is looked up that much more seldom: it may change.
constexpr int kRests = 10;

}  // namespace

Announcer::Announcer(net::Loop& loop, const MeetingSettings& settings, std::function<const CoordinatorServer*()> server,
                     std::function<std::string()> secret)
    : loop_(loop),
      settings_(settings),
      server_(std::move(server)),
      secret_(std::move(secret)),
      timer_(loop),
      resolver_(loop) {
  look();
}

void Announcer::look() {
  const protocol::LeaseTimes lease{settings_.loss_timeout_ms};
  timer_.start(std::max(lease.renewal_ms(), kShortestPauseMs), [this] { look(); });
  // A host that hangs takes the connection and never answers.
  std::erase_if(visits_, [&](const auto& entry) {
    return entry.second->is_over || loop_.now_ms() - entry.second->began_ms >= kVisitMs;
  });
  if (!announcement()) {
    visits_.clear();
    return;
  }
  if (rests_ > 0) {
    --rests_;
    return;
  }
  resolver_.resolve(settings_.host, kResolveMs, [this](Result<std::vector<std::string>> found) {
    const CoordinatorServer* const server = server_();
    if (found && server != nullptr) go_to(*found, server->port());
  });
}

std::optional<protocol::Introduction> Announcer::announcement() const {
  const CoordinatorServer* const server = server_();
  return server == nullptr ? std::nullopt : server->announcement(settings_.job);
}

void Announcer::go_to(const std::vector<std::string>& addresses, std::uint16_t own_port) {
  bool leads_elsewhere = false;
  for (const std::string& address : addresses) {
    if (own_port == settings_.port && net::is_ours(address)) continue;
    leads_elsewhere = true;
    if (visits_.contains(address)) continue;
    const auto visit = visits_.emplace(address, std::make_unique<Visit>()).first->second.get();
    visit->began_ms = loop_.now_ms();
    visit->connector = std::make_unique<net::Connector>(loop_, address, settings_.port, kVisitMs,
                                                        [this, visit](Result<std::unique_ptr<net::Stream>> stream) {
                                                          const auto done = std::move(visit->connector);
                                                          visit->is_over = !stream;
                                                          if (stream) announce(*visit, std::move(*stream));
                                                        });
  }
  if (!leads_elsewhere) rests_ = kRests;
}

void Announcer::announce(Visit& visit, std::unique_ptr<net::Stream> stream) {
  const auto what = announcement();
  visit.is_over = !what;
  if (!what) return;
  visit.session = std::make_unique<protocol::AgentSession>(*what, secret_(), random_nonce());
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
