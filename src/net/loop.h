#pragma once

#include <cstdint>
#include <functional>

struct uv_loop_s;
struct uv_timer_s;
struct uv_poll_s;

namespace elastic::net {

// The one event loop of a process, on libuv. Everything in it happens on the thread that calls run();
// no callback may block. Timers, watches, listeners and streams must end before their loop does.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Serves events until stop() is called from one of them.
  void run();
  void stop();

  // The monotonic clock in milliseconds, as read when this turn of the loop began.
  std::int64_t now_ms() const;

  // libuv's own loop, for the other files of this folder.
  uv_loop_s* native() { return loop_; }

 private:
  uv_loop_s* loop_;
};

// Calls back once, a number of milliseconds from now.
class Timer {
 public:
  explicit Timer(Loop& loop);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Starts, or starts again; a pending call is cancelled.
  void start(std::int64_t delay_ms, std::function<void()> callback);
  void stop();

 private:
  uv_timer_s* handle_;
  std::function<void()> callback_;
};

// Calls back whenever a descriptor is readable (a pidfd: when the process has ended). The descriptor
// is not owned; it must stay open while it is watched. The callback may end the watch.
class ReadWatch {
 public:
  ReadWatch(Loop& loop, int fd, std::function<void()> callback);
  ~ReadWatch();
  ReadWatch(const ReadWatch&) = delete;
  ReadWatch& operator=(const ReadWatch&) = delete;

 private:
  uv_poll_s* handle_;
  std::function<void()> callback_;
};

}  // namespace elastic::net
