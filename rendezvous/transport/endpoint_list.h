#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "rendezvous/transport/rendezvous_settings.h"
#include "src/net/loop.h"
#include "src/net/names.h"

namespace elastic::transport {

// The hosts of an endpoint that names several (--rdzv-endpoint=a,b,c). The first one begins the job, and is asked in
// every other attempt, so that it is found soon; the others are asked in turn between them, since any node of the job
// leads to its coordinator.
class EndpointList {
 public:
  // `settings` must outlive it.
  EndpointList(net::Loop& loop, const RendezvousSettings& settings)
      : settings_(settings), patience_(loop), resolver_(loop) {}

  // Calls `done` when it is known which of the further hosts this one is: at once, or after their names were looked up,
  // which is not waited for longer than half a second.
  void find_own(std::function<void()> done);
  // The port that the list gives this host, if it is one of the further ones.
  std::optional<std::uint16_t> own_port() const { return own_port_; }

  // The host that the next attempt asks; empty: the first one.
  std::optional<RendezvousSettings::Host> next();

 private:
  void warn_of_problem();

  const RendezvousSettings& settings_;
  std::size_t attempts_ = 0;
  bool has_looked_ = false;
  std::size_t looks_ = 0;  // names that are being looked up
  std::optional<std::uint16_t> own_port_;
  std::function<void()> done_;
  net::Timer patience_;
  net::Resolver resolver_;
};

}  // namespace elastic::transport
