#include "rendezvous/transport/munge_exchange.h"

#include <utility>

#include "rendezvous/transport/random_nonce.h"
#include "src/base/text.h"
#include "src/net/local_host.h"

namespace elastic::transport {
namespace {

constexpr const char* kRemedy = "start munged there, or give --rdzv-conf=slurm_auth=off on all nodes";

}  // namespace

using protocol::munge::Answer;

MungeExchange::MungeExchange(MungeTrust& trust, std::unique_ptr<net::Stream> stream, Handlers handlers)
    : trust_(trust), stream_(std::move(stream)), handlers_(std::move(handlers)), nonce_(random_nonce()) {
  stream_->start({.on_data = [this](std::span<const std::uint8_t> bytes) { read(bytes); },
                  .on_end = [this] { broken("it closed the connection when it was asked to authenticate by munge"); }});
  if (!trust_.answers()) {
    ask({});
    return;
  }
  trust_.encode(protocol::munge::agent_payload(trust_.settings().step, nonce_),
                [this, here = std::weak_ptr<bool>(here_)](const Result<std::string>& credential) {
                  if (here.expired()) return;
                  if (!credential) return broken(format("munge: {}", printable(credential.error().reason)));
                  ask(*credential);
                });
}

void MungeExchange::ask(const std::string& credential) {
  if (stream_) stream_->write(protocol::munge::bytes_of(protocol::munge::Request{trust_.settings().step, credential}));
}

void MungeExchange::read(std::span<const std::uint8_t> bytes) {
  if (!reader_.add(bytes)) return broken("it does not know requests by munge, so it is no coordinator of this step");
  if (!reader_.complete()) return;
  stream_.reset();
  const auto answer = reader_.answer();
  if (!answer) return broken("its answer to the request by munge cannot be read");
  answered(*answer);
}

void MungeExchange::answered(const Answer& answer) {
  const auto hopeless = std::move(handlers_.on_hopeless);
  switch (answer.kind) {
    case Answer::Kind::kRefused: return broken(format("it refused us by munge: {}", printable(answer.text)));
    case Answer::Kind::kNeeded:
      return hopeless(
          format("the nodes of this step authenticate each other by munge, and munged does not answer on {} ({}); {}",
                 net::host_name(), trust_.why_not(), kRemedy));
    case Answer::Kind::kNone:
      if (trust_.answers()) {
        return hopeless(
            format("munged answers on {}, but not on the coordinator's host, so that the coordinator cannot be "
                   "authenticated; {}",
                   net::host_name(), kRemedy));
      } else {
        const auto settled = std::move(handlers_.on_secret);
        return settled({});
      }
    case Answer::Kind::kCredential: break;
  }
  if (!trust_.answers()) return broken("it sent a munge credential that was not asked for");
  trust_.decode(answer.text, [this, here = std::weak_ptr<bool>(here_)](const Result<net::munge::Decoded>& decoded) {
    if (!here.expired()) opened(decoded);
  });
}

void MungeExchange::opened(const Result<net::munge::Decoded>& decoded) {
  if (!decoded) return broken(format("its munge credential is not valid: {}", printable(decoded.error().reason)));
  auto secret = protocol::munge::judge_coordinator({decoded->payload, decoded->uid}, trust_.settings().step, nonce_,
                                                   trust_.uid());
  if (!secret) return broken(secret.error());
  const auto settled = std::move(handlers_.on_secret);
  settled(std::move(*secret));
}

void MungeExchange::broken(const std::string& why) {
  stream_.reset();
  const auto call = std::move(handlers_.on_broken);
  call(why);
}

}  // namespace elastic::transport
