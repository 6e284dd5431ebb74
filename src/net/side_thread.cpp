#include "src/net/side_thread.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "src/base/check.h"
#include "src/base/unique_fd.h"

namespace elastic::net {
namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  std::string what;
  std::function<void()> work;
  std::function<void()> done;
};

}  // namespace

// Both threads share this, for either may outlive the other.
struct SideThread::State {
  std::mutex mutex;
  std::condition_variable posted;
  std::condition_variable idle;
  std::deque<Job> jobs;
  std::deque<std::function<void()>> done;
  std::optional<std::pair<std::string, Clock::time_point>> busy;  // the current job and its beginning
  bool ending = false;
  std::thread thread;
  UniqueFd event;

  bool is_idle() const { return jobs.empty() && !busy; }
};

SideThread::SideThread() : state_(std::make_shared<State>()) {
  state_->event = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  ELASTIC_CHECK(static_cast<bool>(state_->event));
}

SideThread::~SideThread() {
  std::unique_lock lock(state_->mutex);
  state_->ending = true;
  state_->jobs.clear();
  state_->posted.notify_one();
  const bool hangs = state_->busy.has_value();
  lock.unlock();
  if (!state_->thread.joinable()) return;
  if (hangs) {
    state_->thread.detach();
  } else {
    state_->thread.join();
  }
}

void SideThread::post(std::string what, std::function<void()> work, std::function<void()> done) {
  std::unique_lock lock(state_->mutex);
  state_->jobs.push_back({std::move(what), std::move(work), std::move(done)});
  state_->posted.notify_one();
  if (state_->thread.joinable()) return;
  try {
    start();
  } catch (const std::system_error&) {
    while (!state_->jobs.empty()) do_next(*state_, lock);
  }
}

void SideThread::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ELASTIC_CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
  const auto restore = [&before](void*) { pthread_sigmask(SIG_SETMASK, &before, nullptr); };
  const std::unique_ptr<void, decltype(restore)> afterwards(&before, restore);
  state_->thread = std::thread([state = state_] { run(state); });
}

void SideThread::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->posted.wait(lock, [&] { return state->ending || !state->jobs.empty(); });
    if (state->jobs.empty()) return;
    do_next(*state, lock);
  }
}

void SideThread::do_next(State& state, std::unique_lock<std::mutex>& lock) {
  Job job = std::move(state.jobs.front());
  state.jobs.pop_front();
  state.busy = {std::move(job.what), Clock::now()};
  lock.unlock();
  job.work();
  job.work = nullptr;  // destroying what it owns may take long, or block
  lock.lock();
  state.busy.reset();
  if (job.done) {
    state.done.push_back(std::move(job.done));
    constexpr std::uint64_t kOne = 1;
    (void)!write(state.event.get(), &kOne, sizeof kOne);
  }
  if (state.jobs.empty()) state.idle.notify_all();
}

int SideThread::done_descriptor() const { return state_->event.get(); }

bool SideThread::run_done() {
  std::uint64_t count = 0;
  (void)!read(state_->event.get(), &count, sizeof count);
  std::deque<std::function<void()>> done;
  {
    const std::lock_guard lock(state_->mutex);
    done.swap(state_->done);
  }
  for (const std::function<void()>& call : done) call();
  return !done.empty();
}

bool SideThread::wait(std::int64_t milliseconds) {
  std::unique_lock lock(state_->mutex);
  return state_->idle.wait_for(lock, std::chrono::milliseconds(milliseconds), [this] { return state_->is_idle(); });
}

bool SideThread::finish(std::int64_t patience_ms) {
  for (;;) {
    if (wait(patience_ms)) {
      if (!run_done()) return true;
    } else if (stuck_for(patience_ms)) {
      return false;
    }
  }
}

std::optional<std::string> SideThread::stuck_for(std::int64_t milliseconds) const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->busy || Clock::now() - state_->busy->second < std::chrono::milliseconds(milliseconds)) return {};
  return state_->busy->first;
}

}  // namespace elastic::net
