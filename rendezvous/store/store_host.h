#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "rendezvous/protocol/messages.h"
#include "rendezvous/store/server.h"
#include "rendezvous/store/store_settings.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"
#include "src/status/snapshot.h"

namespace elastic::store {

// Gives each round its worker store: empty, and out of reach of the round before.
class StoreHost {
 public:
  StoreHost(net::Loop& loop, StoreSettings settings);

  // Where the coming round's workers find their store. Fails where the port cannot be had, naming who
  // holds it if that can be told. `admission`: of a store that is reached from other hosts.
  Result<protocol::StoreEndpoint> open(store::Admission admission = {});

  // Of kAtEndpoint: a client that has come to the coordinator's port. One that comes between two rounds is closed.
  void adopt(std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes);

  // The store that is open, and how often each operation was asked for in all rounds; empty where it never served.
  status::Store status() const;

  // Ends the round's store. No process of the round may be left.
  void close();

 private:
  Result<std::uint16_t> listen(const std::string& address);
  void end_server();

  net::Loop& loop_;
  StoreSettings settings_;
  std::size_t next_choice_ = 0;  // of the settings' port_choices
  bool told_of_strangers_ = false;
  bool has_served_ = false;
  std::array<std::uint64_t, store::kOps> operations_{};  // of stores that are gone
  std::unique_ptr<store::Server> server_;
};

}  // namespace elastic::store
