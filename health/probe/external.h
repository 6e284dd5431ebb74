#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "health/messages/messages.h"
#include "health/probe/attempt.h"
#include "src/base/unique_fd.h"

// A test of two nodes by the user's own program (--check-probe), with DLRover's contract for a probe: the program is
// started once for each worker of both nodes, with the variables of torch.distributed's env:// rendezvous, and each
// process that succeeds writes DIRECTORY/<local rank>.txt, {"time": seconds, "local_rank": 3}.
namespace elastic::health {

// The directory of DLRover's probes.
inline constexpr const char* kExternalDirectory = "/tmp/dlrover/network_check";

struct ExternalProbe {
  std::string command = {};  // for /bin/sh -c; empty: there is none
  std::vector<std::string> environment = {};
  std::string directory = kExternalDirectory;
  int local_world_size = 1;  // at least 1
};

// A port that is free on all addresses, and reserved except while it is lent.
class MasterPort {
 public:
  static MasterPort open();  // number() is 0 where no port is free
  std::uint16_t number() const { return number_; }
  void lend() { holder_ = UniqueFd(); }
  void take_back();

 private:
  UniqueFd holder_;
  std::uint16_t number_ = 0;
};

// Runs the program for the workers of this node (`rank`: its node rank) in the test of `order`. `socket` is the
// connection of the two nodes: the address of the node with the lower rank is MASTER_ADDR, and each node tells the
// other over it when it has failed. Returns the longest of the times in the files, in ms. Fails where a process has
// ended without a file, whatever its exit status, and at the deadline; with an empty reason where the other node failed
// first, since that one knows why. Files of earlier tests are removed before the test, those of this test after it.
Attempt<double> run_external(const ExternalProbe& probe, int socket, int rank, const PairOrder& order,
                             MasterPort& own_port, const Deadline& deadline);

}  // namespace elastic::health
