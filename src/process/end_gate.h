#pragma once

#include <memory>
#include <set>

#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"

namespace elastic::process {

// Behind which workers that are done wait, in their processes, until all of the node are, as torchrun's --run-path
// has it. A worker writes its local rank to the one socket that all of them are given, and reads from it: that ends
// when the gate opens, or its owner has gone. So a copy of the socket that a worker's child has kept holds up nobody.
class EndGate {
 public:
  // `workers`: how many have to be done before it opens. Fails where no socket can be had.
  static Result<std::unique_ptr<EndGate>> make(net::Loop& loop, int workers);

  // What each worker is given, open as long as the gate is closed; -1 after.
  int workers_end() const { return theirs_.get(); }

  // This one is done, if it has not said so itself. The last one opens the gate.
  void done(int local_rank);

  // Lets go all that wait, and whoever comes later.
  void open();

 private:
  struct Ends {
    UniqueFd ours;
    UniqueFd theirs;
  };
  EndGate(net::Loop& loop, Ends ends, int workers);
  void hear();

  std::set<int> done_;
  int workers_;
  UniqueFd ours_;
  UniqueFd theirs_;
  std::unique_ptr<net::ReadWatch> watch_;
};

}  // namespace elastic::process
