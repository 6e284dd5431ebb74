#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"
#include "src/process/tree.h"
#include "src/warm/packets.h"

namespace elastic::warm {

// | time of the import server of warm workers, which has the lowest priority and may read thousands of files over a
// network, until it has imported, and to fork those that wait | {kImportServerMs} each | it is killed; workers are
// fresh, and after the first of the two no other server is started |
inline constexpr std::int64_t kImportServerMs = 600'000;

// The node's import server, a process beside its workers, and the workers that it has forked and that wait for a rank.
class ImportServer {
 public:
  struct Handlers {
    std::function<void(const Ready&)> on_ready;
    std::function<void(const Struck&)> on_struck;
    std::function<void()> on_parked;  // another one waits
    // All orders of give() have been taken by these processes; or none is, for the reason.
    std::function<void(Result<std::vector<pid_t>>)> on_taken;
    // It has ended, or was killed since it was late. `for_good`: another one would fare no better, since this one has
    // refused to serve, or has exited or hung before it was ready. Called once per start, not by end().
    std::function<void(const std::string& why, bool for_good)> on_gone;
  };
  ImportServer(net::Loop& loop, process::WorkerTree& tree, Handlers handlers);

  struct Start {
    std::string python;                        // the file
    std::vector<std::string> options;          // argv up to the script: "python", "-u"
    bool is_module = false;                    // python -m
    std::string target;                        // script or module
    std::string wanted;                        // modules to preload besides, with commas between
    pid_t running = 0;                         // a worker, whose loaded modules are read from outside; 0: none
    std::span<const std::string> environment;  // that workers have, without what differs among them
    std::vector<std::string> variables;
    int output = -1;  // its stdout and stderr; -1: ours
    // It is killed where it has not imported within this time.
    std::int64_t deadline_ms = kImportServerMs;
  };
  // One at a time.
  Status start(const Start& how);
  // The process of the tree beside the workers has ended.
  void has_ended(ExitStatus status);
  // Ends it and all that wait.
  void end();

  // Lets so many wait in all, as far as fewer do or are on their way. If they do not within this time the server is
  // killed.
  void park(int count, std::int64_t deadline_ms = kImportServerMs);
  int parked() const { return static_cast<int>(waiting_.size()); }
  // The directories that hold modules are as they were when the server was ready.
  bool are_modules_the_same() const;

  struct Order {
    std::vector<std::string> variables;
    std::vector<std::string> arguments;  // argv
    int standard_output = -1;
    int standard_error = -1;
  };
  // Makes a worker of one that waits for each of these orders. It fails, or calls on_taken within kOrderMs. Where it
  // fails none of them has run a line of the script, and all that wait are killed. `cgroup_procs`: of the workers'
  // cgroup; -1: there is none.
  Status give(std::span<const Order> orders, int cgroup_procs);
  // The orders are withdrawn: those that have them are killed, and on_taken is not called.
  void withdraw();

  // A busy machine may take that long to run so many processes; it takes longer yet to start fresh ones.
  static constexpr std::int64_t kOrderMs = 1'000;

 private:
  struct Waiting {
    pid_t pid;
    UniqueFd process;  // its pidfd, where the kernel has them (Linux 5.3); none if it has ended already
    UniqueFd socket;
  };

  struct Giving {
    Waiting worker;
    std::unique_ptr<net::ReadWatch> watch;
    bool has_taken = false;
  };

  void receive();
  void hung_up();
  void on_ready(const Ready& ready);
  void gone(const std::string& why, bool for_good);
  void await(const char* what, std::int64_t deadline_ms);
  void kill_waiting();
  int on_their_way() const;
  void answered(std::size_t index);
  void give_up(const char* why);

  net::Loop& loop_;
  process::WorkerTree& tree_;
  Handlers handlers_;
  UniqueFd channel_;
  std::unique_ptr<net::ReadWatch> watch_;
  std::vector<Waiting> waiting_;
  std::vector<Giving> giving_;  // have an order, and have not run a line of the script
  net::Timer timer_;
  net::Timer deadline_;
  bool is_ready_ = false;
  int wanted_ = 0;                                            // how many are to wait
  std::deque<int> ordered_;                                   // how many of each order the server has yet to fork
  std::vector<std::pair<std::string, std::int64_t>> places_;  // directory, and when it was changed, in ns
};

}  // namespace elastic::warm
