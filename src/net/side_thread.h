#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace elastic::net {

// One thread beside the loop for what may block for ever, one job after the other: writing to a file
// system that hangs, or to a console that nobody reads. Started by the first job; no signal is ever
// delivered to it. Where no thread can be had (a filter that forbids clone3, the limit of processes) the
// jobs are done at once by who posts them. All members are for one thread, that of the loop.
class SideThread {
 public:
  SideThread();
  // Waits for no job: what is being done is left to itself, what was not begun is dropped.
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Has `work` done on the thread, and then `done`, if there is one, by run_done(). `what` names in messages
  // what the work waits for. Both must own all that they touch, or it must outlive a thread that hangs.
  void post(std::string what, std::function<void()> work, std::function<void()> done = {});

  // Readable while run_done() has something to do. It returns whether it had.
  int done_descriptor() const;
  bool run_done();

  // Waits until all that was posted is done, at most so many milliseconds; the call-backs stay for
  // run_done(). False if it is not.
  bool wait(std::int64_t milliseconds);

  // Waits until all that was posted and all call-backs are done. False once the thread has been at one job for so many
  // milliseconds.
  bool finish(std::int64_t patience_ms);

  // What the thread has been at for at least so many milliseconds; nothing if it is not.
  std::optional<std::string> stuck_for(std::int64_t milliseconds) const;

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);
  static void do_next(State& state, std::unique_lock<std::mutex>& lock);
  void start();

  std::shared_ptr<State> state_;
};

}  // namespace elastic::net
