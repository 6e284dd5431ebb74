#include "src/process/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>

#include "src/base/check.h"
#include "src/base/log.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/process/descendants.h"
#include "src/process/descriptors.h"
#include "src/process/signal_source.h"

namespace elastic::process {
namespace {

// How long the guardian waits for killed processes before it names those that are left and goes.
constexpr std::int64_t kSweepMs = 1500;
// Between two looks at /proc while killed processes hand their children up to us.
constexpr int kSweepLookMs = 10;
// How long messages of the launcher gather in the socket, which holds some 250 of them.
constexpr int kGatherMs = 10;
// A second signal to end sooner than this means the same as the first.
constexpr std::int64_t kSecondSignalMs = 1000;
// The launcher answers a signal at once, unless it hangs.
constexpr int kUnheardMs = 1000;
// How long a launcher that is done, and hangs, is waited for, and then what SIGKILL may still end.
constexpr int kLeavingMs = 200;
constexpr std::int64_t kLeavingSweepMs = 500;

std::int64_t monotonic_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

sigset_t set_of(const std::vector<int>& numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

bool is_child(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// True for a child that a signal has stopped. Asks the kernel, not /proc, which may not be there.
bool is_stopped(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

struct KnownWorker {
  pid_t pid;
  UniqueFd pidfd;
};

class Guardian {
 public:
  Guardian(const GuardianSettings& settings, pid_t launcher, UniqueFd channel, std::vector<pid_t> strangers)
      : settings_(settings),
        launcher_(launcher),
        channel_(std::move(channel)),
        strangers_(std::move(strangers)) {}

  [[noreturn]] void run();

 private:
  void keep_only_what_is_needed();
  void read_signals();
  void handle(int signal);
  void read_channel();
  void reap();
  void pause();
  void resume();
  void kill_known_workers();
  void kill_cgroup() const;
  void end_launcher();
  [[noreturn]] void launcher_ended(int status);
  [[noreturn]] void leave_launcher_behind();
  // Ends all descendants but those that were there before us. Returns those that have not died within so
  // many milliseconds.
  std::vector<ProcessFacts> sweep(std::int64_t milliseconds);
  [[noreturn]] void leave(int status, const std::vector<ProcessFacts>& survivors);
  std::vector<ProcessFacts> ours() const;

  GuardianSettings settings_;
  pid_t launcher_;
  UniqueFd channel_;
  std::vector<pid_t> strangers_;
  UniqueFd signals_;
  std::vector<KnownWorker> workers_;
  std::int64_t first_stop_ms_ = 0;
  bool asked_to_stop_ = false;
  bool pause_wanted_ = false;  // SIGTSTP has come, and no SIGCONT since
  std::optional<int> leaving_status_;  // the launcher is done, and may hang
  std::optional<std::int64_t> unheard_since_ms_;  // since when the launcher owes an answer to a user who insists
};

void Guardian::run() {
  keep_only_what_is_needed();
  for (;;) {
    pollfd watched[2] = {{signals_.get(), POLLIN, 0}, {channel_.get(), POLLIN, 0}};
    const int patience = leaving_status_ ? kLeavingMs : unheard_since_ms_ ? kUnheardMs : -1;
    const int ready = poll(watched, channel_ ? 2 : 1, patience);
    if (ready < 0) continue;
    if (ready > 0 && watched[0].revents == 0) {
      // Workers are told of in bursts, and to wake for each takes a core from them. What lies in the
      // socket meanwhile is not lost: it is read before the launcher's death is acted upon.
      poll(watched, 1, kGatherMs);
    }
    // The signals first: a SIGCONT may have followed the SIGTSTP that the launcher answers.
    read_signals();
    if (channel_) read_channel();
    if (unheard_since_ms_ && monotonic_ms() - *unheard_since_ms_ >= kUnheardMs) end_launcher();
    if (leaving_status_ && ready == 0) leave_launcher_behind();
  }
}

void Guardian::keep_only_what_is_needed() {
  std::vector<int> numbers = settings_.signals;
  numbers.insert(numbers.end(), {SIGCHLD, SIGTSTP, SIGCONT, SIGWINCH});
  const sigset_t set = set_of(not_ignored(numbers));
  // stderr, the signals and the channel; the user's pipes must not stay open through us.
  const int channel = dup2(channel_.get(), 4);
  ELASTIC_CHECK(channel == 4);
  if (channel_.get() != 4) channel_ = UniqueFd(channel);
  const int made = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  ELASTIC_CHECK(made >= 0);
  if (made != 3) {
    ELASTIC_CHECK(dup2(made, 3) == 3);
    close(made);
  }
  signals_ = UniqueFd(3);
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  close_descriptors_from(5, settings_.descriptors_below);
}

void Guardian::read_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    handle(static_cast<int>(info.ssi_signo));
  }
  reap();
}

void Guardian::handle(int signal) {
  if (signal == SIGCHLD) return;
  if (signal == SIGTSTP) pause_wanted_ = true;
  if (signal == SIGCONT) {
    pause_wanted_ = false;
    return resume();
  }
  const GuardianMessage order{GuardianMessage::Kind::kSignal, signal};
  (void)!send(channel_.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (signal != SIGINT && signal != SIGTERM) return;
  const std::int64_t now = monotonic_ms();
  if (asked_to_stop_ && now - first_stop_ms_ >= kSecondSignalMs) {
    // The user insists. A launcher that is stopped cannot do it, nor can one that hangs.
    if (is_stopped(launcher_)) return end_launcher();
    if (!unheard_since_ms_) unheard_since_ms_ = now;
  }
  if (!asked_to_stop_) first_stop_ms_ = now;
  asked_to_stop_ = true;
}

// Its end will end all the rest.
void Guardian::end_launcher() {
  unheard_since_ms_.reset();
  kill_known_workers();
  kill(launcher_, SIGKILL);
}

void Guardian::read_channel() {
  for (;;) {
    GuardianMessage message;
    iovec part{&message, sizeof message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t count = recvmsg(channel_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) return;
    if (count == 0) {
      channel_ = UniqueFd();  // the launcher is ending; SIGCHLD says how
      return;
    }
    switch (message.kind) {
      case GuardianMessage::Kind::kWorker: {
        const cmsghdr* attached = CMSG_FIRSTHDR(&header);
        int pidfd = -1;
        if (attached != nullptr) std::memcpy(&pidfd, CMSG_DATA(attached), sizeof pidfd);
        workers_.push_back({message.value, UniqueFd(pidfd)});
        break;
      }
      case GuardianMessage::Kind::kRoundOver:
        workers_.clear();
        break;
      case GuardianMessage::Kind::kPaused:
        pause();
        break;
      case GuardianMessage::Kind::kHeard:
        unheard_since_ms_.reset();
        break;
      case GuardianMessage::Kind::kLeaving:
        leaving_status_ = message.value;
        break;
      case GuardianMessage::Kind::kSignal:
        break;  // only we say that
    }
  }
}

// Ctrl-Z: the workers are stopped; now the launcher, and then this process, for the shell to see. It is
// stopped by the same signal with its default action, which the kernel does not take where nobody could
// continue us (no shell with job control, PID 1). Then, as after SIGCONT, all go on.
void Guardian::pause() {
  sigset_t pending;
  sigpending(&pending);
  // Who has been continued meanwhile must not be stopped for ever.
  if (!pause_wanted_ || sigismember(&pending, SIGCONT) == 1) return resume();
  pause_wanted_ = false;
  kill(launcher_, SIGSTOP);
  kill(getpid(), SIGTSTP);
  const sigset_t stop = set_of({SIGTSTP});
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
  resume();
}

void Guardian::resume() {
  kill(launcher_, SIGCONT);
  const GuardianMessage order{GuardianMessage::Kind::kSignal, SIGCONT};
  (void)!send(channel_.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Takes what has ended: the launcher, and orphans that came to us (all of them, as PID 1). A worker comes
// to us by the launcher's death only, and is not reaped before that is dealt with: until then its number
// is good for its process group.
void Guardian::reap() {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    int status = 0;
    if (waitpid(launcher_, &status, WNOHANG) == launcher_) {
      if (channel_) read_channel();
      launcher_ended(status);
    }
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

void Guardian::kill_cgroup() const {
  if (settings_.cgroup.empty()) return;
  const UniqueFd file(open((settings_.cgroup + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (file) (void)!write(file.get(), "1", 1);
}

void Guardian::kill_known_workers() {
  kill_cgroup();
  for (const KnownWorker& worker : workers_) {
    // A number that is our child's is right, and its group's number too: nobody but us can reap it. It is
    // that once the launcher has died; before, it may be a stranger's by now, and only a pidfd is sure.
    if (is_child(worker.pid)) {
      kill(-worker.pid, SIGKILL);
    } else if (worker.pidfd) {
      syscall(SYS_pidfd_send_signal, worker.pidfd.get(), SIGKILL, nullptr, 0);
    }
  }
}

void Guardian::launcher_ended(int status) {
  if (WIFSIGNALED(status)) kill_known_workers();
  const std::vector<ProcessFacts> survivors = sweep(kSweepMs);  // before a word is said: nobody may be reading
  if (WIFSIGNALED(status)) {
    log::critical(format("the launcher (process {}) was killed by {}; all workers were ended", launcher_,
               signal_name(WTERMSIG(status))));
  }
  leave(WIFEXITED(status) ? WEXITSTATUS(status) : 1, survivors);
}

void Guardian::leave_launcher_behind() {
  kill(launcher_, SIGKILL);
  const std::vector<ProcessFacts> survivors = sweep(kLeavingSweepMs);
  const bool is_named = std::any_of(survivors.begin(), survivors.end(),
                                    [this](const ProcessFacts& facts) { return facts.pid == launcher_; });
  // Not reaped: a thread of it is left, of which a process that has ended otherwise shows nothing.
  if (!is_named && kill(launcher_, 0) == 0) {
    log::critical(format("the launcher (process {}) was killed but does not end; it is left behind", launcher_));
  }
  leave(*leaving_status_, survivors);
}

void Guardian::leave(int status, const std::vector<ProcessFacts>& survivors) {
  for (const ProcessFacts& survivor : survivors) {
    log::critical(format("{} was killed but does not end; it is left behind", describe(survivor)));
  }
  if (!settings_.cgroup.empty()) rmdir(settings_.cgroup.c_str());
  _exit(status);
}

std::vector<ProcessFacts> Guardian::ours() const {
  std::vector<ProcessFacts> found = descendants_of(getpid());
  if (strangers_.empty()) return found;
  std::vector<pid_t> theirs = strangers_;
  for (const pid_t stranger : strangers_) {
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
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    // The usual end: no child is left at all, and /proc need not be read.
    if (waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return {};
    kill_cgroup();
    std::vector<ProcessFacts> left = ours();
    // Without /proc nobody can be found; where this is PID 1, the kernel ends all with it. A child that was
    // not found forks faster than /proc is read: look again. Or it is somebody else's.
    const bool none = left.empty() && (!strangers_.empty() || !processes_can_be_seen());
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

// Children that this process had before it became elastic-run (a shell that exec'd us): not ours to kill.
std::vector<pid_t> children_before() {
  siginfo_t info{};
  if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return {};
  std::vector<pid_t> out;
  for (const ProcessFacts& facts : descendants_of(getpid())) out.push_back(facts.pid);
  return out;
}

// Where the guardian is killed while the launcher is stopped (Ctrl-Z), the launcher has to go on and end the
// workers: the kernel continues it. As a process group that is left orphaned and stopped it is sent SIGHUP
// besides, of which it must not die.
void go_on_when_the_guardian_dies() {
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  const sigset_t hangup = set_of({SIGHUP});
  sigprocmask(SIG_BLOCK, &hangup, nullptr);
}

}  // namespace

Result<UniqueFd> split_off_launcher(const GuardianSettings& settings) {
  std::vector<int> numbers = settings.signals;
  // The terminal's stops are for the guardian to decide; SIGTTOU must never stop the launcher.
  numbers.insert(numbers.end(), {SIGCHLD, SIGTSTP, SIGCONT, SIGTTIN, SIGTTOU, SIGWINCH});
  const sigset_t set = set_of(numbers);
  ELASTIC_CHECK(sigprocmask(SIG_BLOCK, &set, nullptr) == 0);
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  ELASTIC_CHECK(sigaction(SIGCHLD, &default_action, nullptr) == 0);
  ELASTIC_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  std::vector<pid_t> strangers = children_before();
  int ends[2];
  ELASTIC_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  const pid_t launcher = fork();
  if (launcher < 0) {
    return fail_errno("cannot start the launcher", errno, "raise the limit of processes (ulimit -u, pids.max)");
  }
  if (launcher == 0) {
    close(ends[0]);
    setpgid(0, 0);
    go_on_when_the_guardian_dies();
    return UniqueFd(ends[1]);
  }
  close(ends[1]);
  setpgid(launcher, launcher);  // whoever comes first
  Guardian(settings, launcher, UniqueFd(ends[0]), std::move(strangers)).run();
}

}  // namespace elastic::process
