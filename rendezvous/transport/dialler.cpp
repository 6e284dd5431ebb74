#include "rendezvous/transport/dialler.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/address.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/net/local_host.h"

namespace elastic::transport {
namespace {

// The limit for one address. The next attempt begins with all addresses again.
constexpr std::int64_t kConnectMs = 2'000;

}  // namespace

Dialler::Dialler(net::Loop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)), later_(loop) {}

void Dialler::dial(const std::vector<std::string>& addresses, const std::vector<std::uint16_t>& ports,
                   std::string problem) {
  targets_.clear();
  for (const std::uint16_t port : ports) {
    for (const std::string& address : addresses) targets_.push_back({address, port});
  }
  std::ranges::reverse(targets_);
  failure_ = {.problem = std::move(problem), .all_refused = !targets_.empty()};
  try_next();
}

void Dialler::dial_later(std::vector<std::string> addresses, std::uint16_t port) {
  later_.start(0, [this, addresses = std::move(addresses), port] { dial(addresses, {port}, ""); });
}

void Dialler::dial_again(const Target& target) {
  targets_.push_back(target);
  try_next();
}

void Dialler::stop() {
  later_.stop();
  connector_.reset();
}

void Dialler::try_next() {
  if (targets_.empty()) {
    const Failure failure = failure_;  // which the next attempt, made from within the call, begins anew
    return handlers_.on_failed(failure);
  }
  const Target target = std::move(targets_.back());
  targets_.pop_back();
  connector_ = std::make_unique<net::Connector>(loop_, target.address, target.port, kConnectMs,
                                                [this, target](Result<std::unique_ptr<net::Stream>> stream) {
                                                  const std::unique_ptr<net::Connector> done = std::move(connector_);
                                                  if (stream) {
                                                    return handlers_.on_connected(target, std::move(*stream));
                                                  }
                                                  failure_.problem = stream.error().reason;
                                                  refused_or_silent(target);
                                                  try_next();
                                                });
}

void Dialler::refused_or_silent(const Target& target) {
  const bool has_refused = failure_.problem == errno_text(ECONNREFUSED);
  if (!has_refused) failure_.all_refused = false;
  if (has_refused && is_session_place(target)) failure_.session_place_refused = true;
}

bool Dialler::is_session_place(const Target& target) const {
  if (target.port != session_at_.port || session_at_.address.empty()) return false;
  // A process of this host is reached by any of its addresses.
  return same_address(target.address, session_at_.address) ||
         (net::is_ours(target.address) && net::is_ours(session_at_.address));
}

}  // namespace elastic::transport
