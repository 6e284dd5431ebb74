#pragma once

#include <memory>
#include <set>

#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"

namespace elastic::process {

// Lets workers that are done wait, in their processes, until all workers of the node are done, as torchrun's --run-path
// does. All workers are given one socket. A worker writes its local rank to it and then reads from it; the read ends
// when the barrier opens or its owner has gone. So a copy of the socket that a worker's child has kept holds up no
// worker.
class WorkerBarrier {
 public:
  // The barrier opens when so many `workers` are done. Fails where no socket can be made.
  static Result<std::unique_ptr<WorkerBarrier>> make(net::Loop& loop, int workers);

  // The socket that each worker is given, open as long as the barrier is closed; -1 afterwards.
  int workers_end() const { return theirs_.get(); }

  // Counts a worker as done, if it has not said so itself. The last one opens the barrier.
  void done(int local_rank);

  // Ends the wait of all workers, also of those that come later.
  void open();

 private:
  struct Ends {
    UniqueFd ours;
    UniqueFd theirs;
  };
  WorkerBarrier(net::Loop& loop, Ends ends, int workers);
  void hear();

  std::set<int> done_;
  int workers_;
  UniqueFd ours_;
  UniqueFd theirs_;
  std::unique_ptr<net::ReadWatch> watch_;
};

}  // namespace elastic::process
