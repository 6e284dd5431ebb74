#pragma once

#include <memory>

#include "rendezvous/protocol/messages.h"
#include "rendezvous/store/server.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/runtime/launch_settings.h"

namespace elastic::runtime {

// Gives each round its worker store: empty, and out of reach of the round before.
class StoreHost {
 public:
  StoreHost(net::Loop& loop, StoreSettings settings);

  // Where the coming round's workers find their store. Fails where the port cannot be had, naming who
  // holds it if that can be told.
  Result<protocol::StoreEndpoint> open();

  // Ends the round's store. No process of the round may be left.
  void close();

 private:
  net::Loop& loop_;
  StoreSettings settings_;
  std::unique_ptr<store::Server> server_;
};

}  // namespace elastic::runtime
