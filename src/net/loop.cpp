#include "src/net/loop.h"

#include <uv.h>

#include "src/base/check.h"

namespace elastic::net {
namespace {

// libuv needs a handle's memory until the turn after its close.
template <class Handle>
void close_and_delete(Handle* handle) {
  handle->data = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(handle),
           [](uv_handle_t* closed) { delete reinterpret_cast<Handle*>(closed); });
}

}  // namespace

Loop::Loop() : loop_(new uv_loop_t) { ELASTIC_CHECK(uv_loop_init(loop_) == 0); }

Loop::~Loop() {
  // Closed handles are freed in one more turn. A handle that is still open here is a bug of its owner.
  uv_run(loop_, UV_RUN_NOWAIT);
  ELASTIC_CHECK(uv_loop_close(loop_) == 0);
  delete loop_;
}

void Loop::run() { uv_run(loop_, UV_RUN_DEFAULT); }

void Loop::stop() { uv_stop(loop_); }

std::int64_t Loop::now_ms() const { return static_cast<std::int64_t>(uv_now(loop_)); }

Timer::Timer(Loop& loop) : handle_(new uv_timer_t) {
  ELASTIC_CHECK(uv_timer_init(loop.native(), handle_) == 0);
  handle_->data = this;
}

Timer::~Timer() { close_and_delete(handle_); }

void Timer::start(std::int64_t delay_ms, std::function<void()> callback) {
  ELASTIC_CHECK(delay_ms >= 0);
  callback_ = std::move(callback);
  // The loop's time is that of the beginning of this turn; a timer must not fire too early.
  uv_update_time(handle_->loop);
  const auto fire = [](uv_timer_t* timer) {
    auto* self = static_cast<Timer*>(timer->data);
    if (self == nullptr) return;
    const std::function<void()> once = std::move(self->callback_);
    once();
  };
  ELASTIC_CHECK(uv_timer_start(handle_, fire, static_cast<std::uint64_t>(delay_ms), 0) == 0);
}

void Timer::stop() { uv_timer_stop(handle_); }

ReadWatch::ReadWatch(Loop& loop, int fd, std::function<void()> callback)
    : handle_(new uv_poll_t), callback_(std::move(callback)) {
  ELASTIC_CHECK(uv_poll_init(loop.native(), handle_, fd) == 0);
  handle_->data = this;
  const auto readable = [](uv_poll_t* poll, int, int) {
    if (auto* self = static_cast<ReadWatch*>(poll->data)) {
      const std::function<void()> told = self->callback_;  // it may end the watch
      told();
    }
  };
  ELASTIC_CHECK(uv_poll_start(handle_, UV_READABLE, readable) == 0);
}

ReadWatch::~ReadWatch() {
  uv_poll_stop(handle_);
  close_and_delete(handle_);
}

}  // namespace elastic::net
