#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "health/messages/messages.h"
#include "health/probe/attempt.h"
#include "src/base/unique_fd.h"

// A test of two nodes that the user's own program makes (--check-probe), by DLRover's contract for a probe: it is
// started once for each worker of the two, with the variables by which workers meet, and each that is fine writes
// DIRECTORY/<local rank>.txt, {"time": seconds, "local_rank": 3}.
namespace elastic::health {

// Where DLRover's probes write.
inline constexpr const char* kExternalDirectory = "/tmp/dlrover/network_check";

struct ExternalProbe {
  std::string command = {};  // for /bin/sh -c; empty: there is none
  std::vector<std::string> environment = {};
  std::string directory = kExternalDirectory;
  int local_world_size = 1;  // at least 1
};

// A free port of all addresses, kept from others but while it is lent.
class MasterPort {
 public:
  static MasterPort open();  // 0 where no port is free
  std::uint16_t number() const { return number_; }
  void lend() { holder_ = UniqueFd(); }
  void take_back();

 private:
  UniqueFd holder_;
  std::uint16_t number_ = 0;
};

// Runs the program for the workers of this node, of rank `rank`, in the test of `order`. `socket` is the connection of
// the two nodes: its lower end's address is MASTER_ADDR, and by it each learns that the other has failed. Returns the
// longest of the times, in ms. Fails where a file is missing when its program has ended, whatever its exit status, and
// at the deadline; with an empty reason where the other node has failed first, which knows why. Files of earlier tests
// are removed before, and those of this one afterwards.
Attempt<double> run_external(const ExternalProbe& probe, int socket, int rank, const PairOrder& order,
                             MasterPort& own_port, const Deadline& deadline);

}  // namespace elastic::health
