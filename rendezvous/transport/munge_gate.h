#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "rendezvous/protocol/munge_messages.h"
#include "rendezvous/transport/munge_trust.h"
#include "src/net/lingering_connections.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::transport {

// The coordinator's side of munge: gives the job's secret to nodes of the step that run as the same user.
class MungeGate {
 public:
  // `trust` must outlive it, and know already whether munged answers.
  MungeGate(net::Loop& loop, MungeTrust& trust) : loop_(loop), trust_(trust), lingering_(loop) {}

  // Gets a connection that asks by munge, with the bytes that it has sent so far.
  void take_connection(std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes);

 private:
  struct Visit {
    std::unique_ptr<net::Stream> stream;
    std::string peer;
    std::unique_ptr<net::Timer> end;
    protocol::munge::Reader reader;
    bool asked = false;
  };
  void read(std::uint64_t id, std::span<const std::uint8_t> bytes);
  void judge(std::uint64_t id, const Result<net::munge::Decoded>& decoded);
  void refuse(std::uint64_t id, const std::string& reason);
  void answer(std::uint64_t id, const protocol::munge::Answer& answer);

  net::Loop& loop_;
  MungeTrust& trust_;
  net::LingeringConnections lingering_;
  std::map<std::uint64_t, Visit> visits_;
  std::uint64_t last_ = 0;
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);  // munged may answer after this was destroyed
};

}  // namespace elastic::transport
