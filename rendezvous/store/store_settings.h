#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace elastic::store {

// Which process serves the worker store, and where.
struct StoreSettings {
  enum class Kind {
    kFreshLoopback,  // the launcher, on a free port of 127.0.0.1, a new one for each round
    kFixedPort,      // the launcher, on one port, for the whole job
    kByWorker,       // rank 0's worker, on a free port that the launcher looks up
    kFreshPort,      // the launcher of node rank 0, on a free port on all addresses, a new one for each round
    kAtEndpoint,     // the same, at the port at which the coordinator listens
  };
  Kind kind = Kind::kFreshLoopback;
  // MASTER_ADDR of the workers; empty: the address by which the other nodes reach this one.
  std::string master_addr = "127.0.0.1";
  std::uint16_t port = 0;  // with kFixedPort
  // With kByWorker and kFreshPort: the ports to choose from. Each round begins with the port after that of the previous
  // round and takes the first that is free; if none is, any free port.
  std::vector<std::uint16_t> port_choices = {};
  // With kByWorker: the port has to be free on loopback only. With kFixedPort: nobody listens elsewhere; master_addr is
  // a loopback address, or `localhost`.
  bool of_loopback = true;
  // All addresses may connect; otherwise with kFreshPort and kAtEndpoint the round's nodes, with kFixedPort this host.
  bool admits_all = false;
};

}  // namespace elastic::store
