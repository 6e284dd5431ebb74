#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "src/base/log.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/process/children.h"
#include "src/process/clock.h"
#include "src/process/guardian_process.h"
#include "src/process/job_directory.h"

namespace elastic::process {
namespace {

// How long the guardian waits for killed processes before it names those that are left and exits.
constexpr std::int64_t kSweepMs = 1500;
// The same where the launcher has sent its exit status and hangs.
constexpr std::int64_t kLeavingSweepMs = 500;
// The time between two reads of /proc while the children of killed processes become ours, or the launcher's.
constexpr int kSweepLookMs = 10;
// How long removing the launch's directory may take.
constexpr std::int64_t kRemoveMs = 300;
// How long sending the death notice may take.
constexpr std::int64_t kDeathNoticeMs = 1000;

bool send_signal(int pidfd, int signal) { return syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0; }

bool is_running(int pidfd) {
  pollfd ended{pidfd, POLLIN, 0};
  return poll(&ended, 1, 0) == 0;
}

}  // namespace

// Kills the launcher. When it has ended, the guardian kills all the rest.
void Guardian::end_launcher() {
  unheard_since_ms_.reset();
  kill_known_workers();
  kill(launcher_, SIGKILL);
}

void Guardian::kill_cgroup() const {
  if (settings_.cgroup.empty()) return;
  const UniqueFd file(open((settings_.cgroup + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (file) (void)!write(file.get(), "1", 1);
}

// The pid of a worker, which is also that of its process group, is valid as long as the worker has not been reaped.
// Once the launcher has died the worker is our child, and only this process can reap it. Before, the launcher may have
// reaped it, and the pid may name another process. A process that a pidfd finds, even a zombie, has not been reaped.
bool Guardian::kill_known_workers() {
  const bool was_running = std::ranges::any_of(
      workers_, [](const KnownWorker& worker) { return worker.pidfd && is_running(worker.pidfd.get()); });
  kill_cgroup();
  for (const KnownWorker& worker : workers_) {
    if (is_child(worker.pid) || (worker.pidfd && send_signal(worker.pidfd.get(), 0))) {
      kill(-worker.pid, SIGKILL);
    }
    if (worker.pidfd) send_signal(worker.pidfd.get(), SIGKILL);
  }
  return was_running;
}

// `child` is a child of ours that has ended, and was not reaped. Does nothing if it is no worker.
void Guardian::kill_group_of_worker(pid_t child) {
  if (channel_) read_channel();
  const auto worker = std::ranges::find(workers_, child, &KnownWorker::pid);
  if (worker == workers_.end() || (worker->pidfd && !send_signal(worker->pidfd.get(), 0))) return;
  kill(-child, SIGKILL);
}

// The launcher is stopped, or hangs, or all processes were frozen. The launcher is left alone: it judges its lease
// itself when it goes on. Returns when no worker is left, at the latest after kSweepMs: a process that still exists
// then has SIGKILL pending, and ends before it can do anything else.
void Guardian::end_workers_of_lease(std::int64_t until_ms) {
  bool was_running = kill_known_workers();
  const std::int64_t deadline_ms = monotonic_ms() + kSweepMs;
  for (;;) {
    const std::vector<ProcessFacts> found = descendants_of(launcher_);
    // The order matters: as long as the launcher has not set another lease, all processes found belong to this one.
    if (found.empty() || board_.lease() != until_ms) break;
    was_running = true;
    for (const ProcessFacts& facts : found) kill_process(facts);
    if (monotonic_ms() >= deadline_ms) break;
    poll(nullptr, 0, kSweepLookMs);
  }
  if (!was_running) return;
  log::error(
      "lease_over",
      format("the lease expired while the launcher (process {}) was not running; its workers were killed", launcher_));
}

void Guardian::launcher_ended(const ExitStatus& status) {
  const bool was_killed = status.signal != 0;
  if (!was_killed && leaves_background(status.code)) leave(0, {});
  if (was_killed) kill_known_workers();
  const std::vector<ProcessFacts> survivors = sweep(kSweepMs);
  say_death_notice(survivors);  // other nodes wait for it
  // This comes last, for nobody may be reading stderr.
  if (was_killed) {
    log::critical("launcher_killed", format("the launcher (process {}) was killed by {}; all workers were killed",
                                            launcher_, signal_name(status.signal)));
  }
  leave(was_killed ? 1 : status.code, survivors);
}

void Guardian::leave_launcher_behind() {
  kill(launcher_, SIGKILL);
  std::vector<ProcessFacts> survivors;
  if (leaves_background(*leaving_status_)) {
    await_launcher(kLeavingSweepMs);
  } else {
    survivors = sweep(kLeavingSweepMs);
  }
  const bool is_named = std::any_of(survivors.begin(), survivors.end(),
                                    [this](const ProcessFacts& facts) { return facts.pid == launcher_; });
  // It was not reaped: one of its threads is left, which /proc does not show for a process that has ended otherwise.
  if (!is_named && kill(launcher_, 0) == 0) {
    log::critical("left_behind",
                  format("the launcher (process {}) did not exit after SIGKILL; giving up on it", launcher_));
  }
  say_death_notice(survivors);
  leave(*leaving_status_, survivors);
}

void Guardian::await_launcher(std::int64_t milliseconds) const {
  const std::int64_t deadline_ms = monotonic_ms() + milliseconds;
  while (!reap_child(launcher_) && is_child(launcher_) && monotonic_ms() < deadline_ms) poll(nullptr, 0, kSweepLookMs);
}

// The death notice says that no process is left. It is sent only where that is known: without /proc, only once no child
// is left at all.
void Guardian::say_death_notice(const std::vector<ProcessFacts>& survivors) const {
  const std::optional<DeathNotice> word = board_.death_notice();
  if (!word || !survivors.empty()) return;
  if (!processes_can_be_seen() && has_children()) return;
  send_notice(*word, kDeathNoticeMs);
}

void Guardian::leave(int status, const std::vector<ProcessFacts>& survivors) {
  for (const ProcessFacts& survivor : survivors) {
    log::critical("left_behind", format("{} did not exit after SIGKILL; giving up on it", describe(survivor)));
  }
  if (!settings_.directory.empty()) remove_job_directory(settings_.directory, kRemoveMs);
  if (!settings_.cgroup.empty()) rmdir(settings_.cgroup.c_str());
  if (settings_.local_tasks != nullptr) settings_.local_tasks->tell_status(status);
  _exit(status);
}

std::vector<ProcessFacts> Guardian::ours() const {
  std::vector<ProcessFacts> found = descendants_of(getpid());
  if (other_children_.empty()) return found;
  std::vector<pid_t> theirs = other_children_;
  for (const pid_t stranger : other_children_) {
    for (const ProcessFacts& facts : descendants_of(stranger)) theirs.push_back(facts.pid);
  }
  std::erase_if(found, [&](const ProcessFacts& facts) {
    return std::find(theirs.begin(), theirs.end(), facts.pid) != theirs.end();
  });
  return found;
}

std::vector<ProcessFacts> Guardian::sweep(std::int64_t milliseconds) {
  const std::int64_t deadline = monotonic_ms() + milliseconds;
  for (;;) {
    reap_children();
    // In the usual case no child is left at all, and /proc need not be read.
    if (!has_children()) return {};
    kill_cgroup();
    std::vector<ProcessFacts> left = ours();
    // Without /proc no process can be found; where this is PID 1, the kernel kills all others when it ends. If a child
    // exists that was not found, processes fork faster than /proc is read, and /proc is read again, unless the child is
    // one of `other_children`.
    const bool none = left.empty() && (!other_children_.empty() || !processes_can_be_seen());
    if (none || monotonic_ms() >= deadline) {
      for (ProcessFacts& facts : left) facts = process_facts(facts.pid);
      return left;
    }
    for (const ProcessFacts& facts : left) kill_process(facts);
    pollfd signals{signals_.get(), POLLIN, 0};
    poll(&signals, 1, left.empty() ? 0 : kSweepLookMs);
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) > 0) {
    }
  }
}

}  // namespace elastic::process
