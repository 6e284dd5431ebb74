#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "src/base/result.h"
#include "src/base/unique_fd.h"

// Several elastic-runs were started together on one host, and only task 0 launches. The others learn of its end over
// Unix sockets with abstract names, which leave no files behind. Nobody polls: task 0 listens, and connects to the
// tasks that are there already; a task that starts later connects to task 0. A connection waits in task 0's accept
// queue until task 0 ends; if task 0 is killed, the kernel closes the connection. Sockets of other users are ignored.
namespace elastic::process {

struct LocalTaskPlace {
  std::string name;  // the same for all tasks of this group, and for no others on this host
  int index = 0;     // task 0 launches
  int members = 1;
};

// How long after its start task 0 still waits for tasks that have not connected yet, and how long the others wait for
// task 0.
inline constexpr std::int64_t kLocalTasksMeetMs = 10'000;
inline constexpr std::int64_t kLocalTasksPatienceMs = 30'000;

// Task 0's side. open() fails where the name is taken, or no socket can be made.
class LocalTasksHost {
 public:
  static Result<LocalTasksHost> open(const LocalTaskPlace& place);

  int descriptor() const { return listener_.get(); }
  // The listening socket, which the owner may move to another number.
  UniqueFd& socket() { return listener_; }
  // Tells all other tasks this exit status. Waits for those that have not connected until kLocalTasksMeetMs after
  // open().
  void tell_status(int status) const;

 private:
  UniqueFd listener_;
  int others_ = 0;
  std::int64_t opened_ms_ = 0;
};

// What the other tasks do: waits for task 0 and returns the exit status that it sends. Once connected, calls `on_met`
// and ignores signals that end a process: a signal to the whole job reaches task 0, too, which needs its time to end.
// Fails if task 0 does not appear within kLocalTasksPatienceMs, or ends without sending its exit status.
Result<int> wait_for_local_tasks(const LocalTaskPlace& place, const std::function<void()>& on_met);

}  // namespace elastic::process
