#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace elastic::net {

// A thread beside the loop that does jobs which may block for ever, one after the other: writing to a file
// system that hangs, or to a console that nobody reads. The first job starts it; no signal is
// delivered to it. Where no thread can be made (seccomp forbids clone3, the limit of processes) post() does
// the jobs itself, at once. All members are for one thread, that of the loop.
class SideThread {
 public:
  SideThread();
  // Waits for no job: the current one is abandoned, and those that have not begun are dropped.
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Runs `work` on the thread; afterwards run_done() calls `done`, if there is one. `what` names in messages
  // what the work waits for. Both functions must own all that they use, or it must outlive a thread that hangs.
  void post(std::string what, std::function<void()> work, std::function<void()> done = {});

  // The descriptor is readable while run_done() has calls to make. It returns whether it made any.
  int done_descriptor() const;
  bool run_done();

  // Waits until all jobs are done, at most so many milliseconds, without calling back. Returns whether they are.
  bool wait(std::int64_t milliseconds);

  // Waits until all jobs and call-backs are done. Returns false once one job has taken so many milliseconds.
  bool finish(std::int64_t patience_ms);

  // Names the job that has been running for at least so many milliseconds; nothing if there is none.
  std::optional<std::string> stuck_for(std::int64_t milliseconds) const;

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);
  static void do_next(State& state, std::unique_lock<std::mutex>& lock);
  void start();

  std::shared_ptr<State> state_;
};

}  // namespace elastic::net
