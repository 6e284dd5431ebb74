#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

// Gives each round its worker store, which is empty and which workers of the previous round cannot reach.
class StoreHost {
 public:
  StoreHost(net::Loop& loop, StoreSettings settings);

  // Opens the store of the next round and returns where its workers find it. Fails if the port is taken, and names the
  // process that has it if that can be found out. `admission` holds for a store that other hosts can reach.
  Result<protocol::StoreEndpoint> open(store::Admission admission = {});

  // With kAtEndpoint: a client has connected to the coordinator's port. Between two rounds it is closed.
  void adopt(std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes);

  // What the round's store knows of the clients that wait (Server::view); empty if the store is not here.
  std::optional<StoreView> view(int world_size) const;

  // Server::ask_for_dumps(), if the round's store is here.
  void ask_for_dumps();

  // The status of the open store, with how often each operation was requested in all rounds; empty if no store was ever
  // opened.
  status::Store status() const;

  // Closes the round's store. No process of the round may be left.
  void close();

 private:
  Result<std::uint16_t> listen(const std::string& address);
  Result<std::uint16_t> listen_at_fixed_port();
  void end_server();

  net::Loop& loop_;
  StoreSettings settings_;
  std::size_t next_choice_ = 0;  // of the settings' port_choices
  bool told_of_strangers_ = false;
  bool has_served_ = false;
  std::array<std::uint64_t, store::kOps> operations_{};  // of stores that are closed
  std::unique_ptr<store::Server> server_;
};

}  // namespace elastic::store
