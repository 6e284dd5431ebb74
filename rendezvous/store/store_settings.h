#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace elastic::store {

// Who serves the worker store, and where.
struct StoreSettings {
  enum class Kind {
    kFreshLoopback,  // the launcher, on a free port of 127.0.0.1, another one each round
    kFixedPort,      // the launcher, on one port of all addresses, for the whole job
    kByWorker,       // rank 0's worker, on a free port that the launcher looks up
    kFreshPort,      // the launcher of node rank 0, on a free port of all addresses, another one each round
    kAtEndpoint,     // the same, at the port at which the coordinator listens
  };
  Kind kind = Kind::kFreshLoopback;
  // What workers are told; empty: the address by which the other nodes reach this one.
  std::string master_addr = "127.0.0.1";
  std::uint16_t port = 0;  // of kFixedPort
  // Of kByWorker and kFreshPort without a port: each round begins with the one behind that of the round before, and
  // takes the first that is free, else any.
  std::vector<std::uint16_t> port_choices = {};
  bool of_loopback = true;  // kByWorker: the port need be free there only
  bool admits_all = false;  // kFreshPort, kAtEndpoint: whoever connects, and not only the round's nodes
};

}  // namespace elastic::store
