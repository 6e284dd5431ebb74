#include "rendezvous/transport/claim_store.h"

#include <algorithm>
#include <utility>

#include "src/base/address.h"
#include "src/base/text.h"

namespace elastic::transport {
namespace {

constexpr store::ClientBounds kBounds{.connect_ms = 1'500, .answer_ms = 1'500, .unsent_bytes = 64 * 1024};

}  // namespace

ClaimStore::ClaimStore(net::Loop& loop, std::string host, std::uint16_t port, const std::string& job)
    : loop_(loop),
      host_(std::move(host)),
      port_(port),
      key_(format("/elastic-run/{}/coordinator", job)),
      resolver_(loop) {}

void ClaimStore::read(Done done) {
  with_client(
      [this](store::Client& client) {
        client.get(key_, [this](Result<std::string> answer) { answered(std::move(answer)); });
      },
      std::move(done));
}

void ClaimStore::compare_set(std::string expected, std::string desired, Done done) {
  with_client(
      [this, expected = std::move(expected), desired = std::move(desired)](store::Client& client) {
        client.compare_set(key_, expected, desired, [this, expected, desired](Result<std::string> answer) {
          // If the key is missing, as after a restart of the server, PyTorch's store answers with the expected value.
          if (answer && *answer == expected && expected != desired) answer = std::string();
          answered(std::move(answer));
        });
      },
      std::move(done));
}

void ClaimStore::forget() {
  ++attempt_;
  client_.reset();
  done_ = nullptr;
  ask_ = nullptr;
}

void ClaimStore::with_client(Ask ask, Done done) {
  ask_ = std::move(ask);
  done_ = std::move(done);
  addresses_.clear();
  if (client_ && !client_->ended()) return ask_(*client_);
  resolver_.resolve(host_, kClaimResolveMs, [this, attempt = ++attempt_](Result<std::vector<std::string>> found) {
    if (attempt != attempt_) return;
    if (!found) return answered(std::unexpected(std::move(found.error())));
    addresses_ = std::move(*found);
    std::ranges::reverse(addresses_);
    try_next();
  });
}

void ClaimStore::try_next() {
  const std::string address = std::move(addresses_.back());
  addresses_.pop_back();
  client_ = std::make_unique<store::Client>(loop_, address, port_, kBounds);
  ask_(*client_);
}

void ClaimStore::answered(Result<std::string> answer) {
  if (!answer && !addresses_.empty()) return try_next();
  if (answer) own_address_ = client_->local_address();
  const Done call = std::exchange(done_, nullptr);
  if (!call) return;
  if (answer) return call(std::move(*answer));
  call(std::unexpected(Failure{answer.error().reason}));
}

bool ClaimStore::loopback_is_meant() const {
  const std::string name = lower(host_);
  return name == "localhost" || name.ends_with(".localhost") ||
         (name.find_first_not_of("0123456789.:abcdef") == std::string::npos && is_loopback(name));
}

std::string ClaimStore::name() const {
  const bool is_v6 = host_.contains(':');
  return is_v6 ? format("TCPStore [{}]:{}", host_, port_) : format("TCPStore {}:{}", printable(host_), port_);
}

}  // namespace elastic::transport
