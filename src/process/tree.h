#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/exit_status.h"
#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"
#include "src/process/descendants.h"
#include "src/process/signal_source.h"
#include "src/process/spawn.h"

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

// The workers of one node and whatever they fork. While it lives, this process is the subreaper of all
// its descendants and reaps every child that ends.
class WorkerTree {
 public:
  struct Handlers {
    // A worker has ended and been reaped. Called once per started worker.
    std::function<void(int local_rank, ExitStatus status)> on_exit;
    // The helper has ended and been reaped. May be empty.
    std::function<void(ExitStatus status)> on_helper_exit = {};
    // The process beside the workers has ended by itself and been reaped. May be empty.
    std::function<void(ExitStatus status)> on_aside_exit = {};
    // Neither a worker nor anything it forked is left. Called once per expect_all_gone().
    std::function<void()> on_all_gone;
  };

  WorkerTree(net::Loop& loop, SpawnContext context, Handlers handlers);
  ~WorkerTree();
  WorkerTree(const WorkerTree&) = delete;
  WorkerTree& operator=(const WorkerTree&) = delete;

  // Lets each of the next `count` workers wait for the others before it ends (WorkerBarrier), until expect_all_gone().
  // Fails where no socket can be made.
  Status let_wait_for_each_other(int count);

  // Starts one worker; `local_rank` must not be in use. Returns its pid. Fails as spawn() does, and tells `refusal`.
  Result<pid_t> start(int local_rank, Command command, BindingRefusal* refusal = nullptr);

  // A process that is this one's child already becomes a worker; `local_rank` must not be in use. It must lead a
  // session and a process group.
  void adopt(int local_rank, pid_t pid);

  // Starts a process beside the workers, one at a time: neither it nor what stays in its session is signalled, killed
  // or waited for with them, and it is in no cgroup of theirs. It lives until end_aside(), or until this process ends.
  Result<pid_t> start_aside(const Command& command);
  // Kills all of that session; on_aside_exit tells the end.
  void kill_aside();
  // The same, but its end is not told. Another one may be started at once.
  void end_aside();

  // Starts a process that looks at the workers; several may run at once. Neither it nor what stays in its session is
  // signalled, killed or waited for with them, and it is in no cgroup of theirs. Its end is not told.
  Result<pid_t> start_onlooker(const Command& command);
  // Kills all of that session; without effect where it has ended.
  void end_onlooker(pid_t pid);

  // Starts a process that is no worker, one at a time. It is signalled, and waited for by on_all_gone, as workers are.
  // If no worker was started before it has ended, the processes that it has left behind are killed then.
  Result<pid_t> start_helper(const Command& command);
  // Kills the helper with its process group; without effect where there is none.
  void kill_helper();

  // Which workers a signal is for, and whether helpers of those that get it alone get it, too, when their worker has
  // ended.
  struct Whom {
    std::optional<int> only = {};    // nobody but this local rank
    std::optional<int> spared = {};  // everybody but this local rank
    bool helpers_follow = true;
  };
  // Sends a signal to every process group that still has a process, also where its leader has gone. A worker that
  // handles it, or may, gets it alone (may_go_alone). SIGKILL is for everybody: it goes to every
  // descendant, also to those that have left their group, and again to new ones until all are gone. Returns the local
  // ranks that handle the signal, and got it alone.
  std::vector<int> signal_groups(int signal_number, const Whom& whom);
  void signal_groups(int signal_number) { signal_groups(signal_number, {}); }
  // Workers that run write no core dump from now on.
  void forbid_core_dumps();

  // Whether a signal was sent by a worker or by one of its descendants. If the sender has ended, only its pid and its
  // user are known: while there are workers it counts as one of them if the user is ours, for hardly anybody else
  // signals this process.
  bool is_from_workers(const ReceivedSignal& signal) const;

  // Asks for on_all_gone, which is called from the loop, never from within this call. A process that has left its
  // worker's group (a daemon) is killed as soon as the groups are empty.
  void expect_all_gone();

  // The living processes that on_all_gone is waiting for.
  std::vector<ProcessFacts> survivors() const;

  // Calls back when this process has no child any more, at the latest after `patience_ms`; perhaps from within
  // this call. One wait at a time.
  void await_childless(std::int64_t patience_ms, std::function<void()> done);

  // A process that is left when all workers have ended, with the local rank of the worker that it belonged to, where
  // that is known because it is in that worker's session.
  struct Background {
    ProcessFacts facts;
    std::optional<int> local_rank;
  };
  std::vector<Background> background() const;

  // Forgets processes that do not end even when killed; on_all_gone is not called for them.
  void abandon();

 private:
  struct Worker {
    pid_t pid;
    bool exited = false;
    bool group_gone = false;
    int follows = 0;  // the signal that its group gets when it has ended; 0: none
  };

  static constexpr int kHelper = -1;  // the helper's, in place of a local rank

  bool has_children() const;
  Result<pid_t> start_outside(const Command& command) const;
  void signal_group_of(Worker& worker, int signal_number);
  void reap();
  void reaped(pid_t pid, ExitStatus status);
  void kill_what_helper_left();
  bool is_beside(pid_t session) const;
  void told_childless();
  void look_at_groups();
  void look_again();
  void kill_all();
  bool strays_left();

  net::Loop& loop_;
  SpawnContext context_;
  Handlers handlers_;
  std::unique_ptr<WorkerBarrier> worker_barrier_;        // null where they do not wait
  std::map<int, Worker> workers_;                        // by local rank; emptied when all are gone
  std::set<std::pair<pid_t, std::uint64_t>> abandoned_;  // pid and start
  pid_t aside_ = 0;                                      // the process beside the workers; 0: there is none
  std::set<pid_t> onlookers_;                            // that run
  std::set<pid_t> ended_asides_;                         // those and onlookers that were killed, and are not reaped
  bool expecting_all_gone_ = false;
  bool killing_ = false;  // SIGKILL was sent, and not all are gone
  SignalSource child_signals_;
  net::Timer look_again_timer_;
  std::function<void()> on_childless_;  // the call that await_childless() was given
  net::Timer childless_timer_;
};

// Which worker gets a signal before its process group does. A worker that handles a signal has something to do before
// it ends, such as a checkpoint, for which it may need its helpers: a data loader that dies makes PyTorch's loop fail.
// So the worker gets the signal alone, and its group gets it when the worker has ended.

// Whether a worker may get this signal alone: one that asks for the end, or that a user has chosen. SIGINT is none,
// since a terminal sends it to whole groups, too; nor is SIGABRT, by which a worker that hangs is to tell its stack.
bool may_go_alone(int signal_number);

// What a process does with a signal.
enum class Handles {
  kNo,       // it ignores it, or is stopped
  kYes,      // it catches or blocks it
  kUnknown,  // it dies of it at once, unless it awaits it (sigwait), which the kernel does not show
};
// By the text of /proc/PID/status; kNo where it cannot be read.
Handles handles(int signal_number, std::string_view status);
// Whether the program of this path is a shell, which hands no signal on to what it waits for.
bool is_shell(std::string_view executable);

}  // namespace elastic::process
