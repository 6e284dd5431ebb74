#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "rendezvous/protocol/munge_messages.h"
#include "rendezvous/transport/munge_trust.h"
#include "src/net/tcp.h"

namespace elastic::transport {

// The node's side of munge: asks a coordinator for the job's secret. Destroying it cancels the request.
class MungeExchange {
 public:
  struct Handlers {
    std::function<void(std::string secret)> on_secret;  // an empty secret: munged answers on neither host
    std::function<void(std::string why)> on_broken;     // the attempt has failed; why, as a clause
    std::function<void(std::string why)> on_hopeless;   // munged answers on one of the two hosts only
  };
  // One of the handlers is called, once, and may destroy this. `trust` must know already whether munged answers.
  MungeExchange(MungeTrust& trust, std::unique_ptr<net::Stream> stream, Handlers handlers);

 private:
  void ask(const std::string& credential);
  void read(std::span<const std::uint8_t> bytes);
  void answered(const protocol::munge::Answer& answer);
  void opened(const Result<net::munge::Decoded>& decoded);
  void broken(const std::string& why);

  MungeTrust& trust_;
  std::unique_ptr<net::Stream> stream_;
  Handlers handlers_;
  protocol::Nonce nonce_;
  protocol::munge::Reader reader_;
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);  // munged may answer after this was destroyed
};

}  // namespace elastic::transport
