#include "src/process/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "src/base/check.h"
#include "src/process/children.h"
#include "src/process/clock.h"
#include "src/process/descendants.h"
#include "src/process/guardian_process.h"
#include "src/process/signal_source.h"
#include "src/process/spawn.h"

namespace elastic::process {
namespace {

// How long messages of the launcher are left in the socket, which holds some 250 of them.
constexpr int kGatherMs = 10;
// A second signal to end that comes sooner than this counts as the first.
constexpr std::int64_t kSecondSignalMs = 1000;
// How long the launcher may take to acknowledge a signal; it does so at once unless it hangs.
constexpr int kUnheardMs = 1000;
// How long the guardian waits for a launcher that has sent its exit status and hangs.
constexpr int kLeavingMs = 200;
// A launcher that runs stops its workers itself when their lease is over. The guardian gives it so much time.
constexpr std::int64_t kHeadStartMs = 50;

sigset_t set_of(const std::vector<int>& numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

// Moves a descriptor to this number; a descriptor that had the number is closed.
UniqueFd moved_to(int number, UniqueFd from) {
  if (!from || from.get() == number) return from;
  ELASTIC_CHECK(dup2(from.get(), number) == number);
  return UniqueFd(number);
}

}  // namespace

Guardian::Guardian(const GuardianSettings& settings, pid_t launcher, GuardianChannel channel,
                   std::vector<pid_t> other_children)
    : settings_(settings),
      launcher_(launcher),
      channel_(std::move(channel.socket)),
      board_(std::move(channel.board)),
      other_children_(std::move(other_children)) {}

void Guardian::run() {
  keep_only_what_is_needed();
  for (;;) {
    pollfd watched[3] = {{signals_.get(), POLLIN, 0}, {channel_.get(), POLLIN, 0}, {lease_timer_.get(), POLLIN, 0}};
    const int ready = poll(watched, 3, patience_ms());  // poll() ignores a descriptor of -1
    if (ready < 0) continue;
    if (watched[2].revents != 0) lease_timer_at_ms_.reset();
    if (ready > 0 && watched[0].revents == 0 && watched[2].revents == 0) {
      // Workers are announced in bursts, and waking up for each would take CPU time from them. Messages that wait in
      // the socket are not lost: they are read before the guardian acts on the launcher's death.
      poll(watched, 1, kGatherMs);
    }
    // Signals are read first: a SIGCONT may have followed the SIGTSTP to which the launcher has responded.
    read_signals();
    if (channel_) read_channel();
    // The lease is judged before any process is continued: while all were stopped, another node may have taken the
    // workers' place.
    judge_lease();
    if (std::exchange(continue_wanted_, false)) resume();
    if (unheard_since_ms_ && monotonic_ms() - *unheard_since_ms_ >= kUnheardMs) end_launcher();
    if (leaving_status_ && ready == 0) leave_launcher_behind();
  }
}

int Guardian::patience_ms() const {
  if (leaving_status_) return kLeavingMs;
  if (unheard_since_ms_) return kUnheardMs;
  // A seccomp filter has refused the timer. This clock stands still while the machine is suspended.
  if (!lease_timer_ && lease_timer_at_ms_) {
    return static_cast<int>(std::clamp<std::int64_t>(*lease_timer_at_ms_ - boottime_ms(), 0, kUnheardMs));
  }
  return -1;
}

void Guardian::keep_only_what_is_needed() {
  std::vector<int> numbers = settings_.signals;
  numbers.insert(numbers.end(), {SIGCHLD, SIGTSTP, SIGCONT, SIGWINCH});
  const sigset_t set = set_of(not_ignored(numbers));
  // The guardian keeps stderr, the signals, the channel, the timer and the local tasks' socket. It closes everything
  // else, so that the user's pipes do not stay open.
  UniqueFd local_tasks;  // at a number that none of the others gets
  if (settings_.local_tasks != nullptr)
    local_tasks = UniqueFd(fcntl(settings_.local_tasks->descriptor(), F_DUPFD_CLOEXEC, 7));
  channel_ = moved_to(4, std::move(channel_));
  signals_ = moved_to(3, UniqueFd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC)));
  ELASTIC_CHECK(signals_);
  lease_timer_ = moved_to(5, UniqueFd(timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)));
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  if (!lease_timer_) close(5);
  if (local_tasks) settings_.local_tasks->socket() = moved_to(6, std::move(local_tasks));
  close_descriptors_from(settings_.local_tasks != nullptr ? 7 : 6, settings_.descriptors_below);
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
    continue_wanted_ = true;
    return;
  }
  const GuardianMessage order{GuardianMessage::Kind::kSignal, signal};
  (void)!send(channel_.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (signal != SIGINT && signal != SIGTERM) return;
  const std::int64_t now = monotonic_ms();
  if (asked_to_stop_ && now - first_stop_ms_ >= kSecondSignalMs) {
    // This is a second signal. A launcher that is stopped or hangs cannot act on it.
    if (is_stopped_child(launcher_)) return end_launcher();
    if (!unheard_since_ms_) unheard_since_ms_ = now;
  }
  if (!asked_to_stop_) first_stop_ms_ = now;
  asked_to_stop_ = true;
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
      channel_ = UniqueFd();  // the launcher is ending; SIGCHLD follows
      return;
    }
    int attached = -1;
    const cmsghdr* first = CMSG_FIRSTHDR(&header);
    if (first != nullptr && first->cmsg_type == SCM_RIGHTS) std::memcpy(&attached, CMSG_DATA(first), sizeof attached);
    UniqueFd descriptor(attached);
    const bool is_whole = count == sizeof message && (header.msg_flags & MSG_TRUNC) == 0;
    if (is_whole) heard(message, std::move(descriptor));
  }
}

void Guardian::heard(GuardianMessage message, UniqueFd attached) {
  switch (message.kind) {
    case GuardianMessage::Kind::kWorker: workers_.push_back({message.value, std::move(attached)}); break;
    case GuardianMessage::Kind::kRoundOver: workers_.clear(); break;
    case GuardianMessage::Kind::kPaused: pause(); break;
    case GuardianMessage::Kind::kHeard: unheard_since_ms_.reset(); break;
    case GuardianMessage::Kind::kLeaving: leaving_status_ = message.value; break;
    case GuardianMessage::Kind::kLease:   // the lease is judged whenever the guardian wakes up
    case GuardianMessage::Kind::kSignal:  // only the guardian sends it
      break;
  }
}

// Ctrl-Z: the workers are stopped already. The launcher is stopped now, and then this process, so that the shell sees
// it. This process stops itself by SIGTSTP with its default action, which the kernel ignores where nobody could
// continue it (no shell with job control, PID 1). Then, as after SIGCONT, all go on.
void Guardian::pause() {
  sigset_t pending;
  sigpending(&pending);
  // If this process has been continued meanwhile, the launcher must not stay stopped.
  continue_wanted_ = true;
  if (!pause_wanted_ || sigismember(&pending, SIGCONT) == 1) return;
  pause_wanted_ = false;
  kill(launcher_, SIGSTOP);
  kill(getpid(), SIGTSTP);
  const sigset_t stop = set_of({SIGTSTP});
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
}

void Guardian::resume() {
  kill(launcher_, SIGCONT);
  const GuardianMessage order{GuardianMessage::Kind::kSignal, SIGCONT};
  (void)!send(channel_.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Reaps what has ended: the launcher, and orphans that became our children (all orphans, as PID 1). A worker becomes
// our child only when the launcher dies, and is not reaped before that has been handled: until then its pid
// still names its process group.
void Guardian::reap() {
  while (const auto child = ended_child()) {
    if (const auto status = reap_child(launcher_)) {
      if (channel_) read_channel();
      launcher_ended(*status);
    }
    // A launcher of several threads that is killed may give us its workers before it can be waited for.
    kill_group_of_worker(child->pid);
    reap_child(child->pid);
  }
}

void Guardian::judge_lease() {
  const std::optional<std::int64_t> until_ms = board_.lease();
  if (!until_ms || until_ms == ended_lease_ms_) return set_lease_timer({});
  const std::int64_t at_ms = *until_ms + kHeadStartMs;
  if (boottime_ms() < at_ms) return set_lease_timer(at_ms);
  set_lease_timer({});
  ended_lease_ms_ = until_ms;
  end_workers_of_lease(*until_ms);
}

void Guardian::set_lease_timer(std::optional<std::int64_t> at_ms) {
  if (at_ms == lease_timer_at_ms_) return;
  lease_timer_at_ms_ = at_ms;
  itimerspec setting{};  // zero: off
  if (at_ms) {
    setting.it_value.tv_sec = *at_ms / 1000;
    setting.it_value.tv_nsec = *at_ms % 1000 * 1'000'000;
  }
  (void)timerfd_settime(lease_timer_.get(), TFD_TIMER_ABSTIME, &setting, nullptr);
}

namespace {

// Children that this process had before it became elastic-run (a shell that executed us); they must not be killed.
std::vector<pid_t> children_before() {
  if (!has_children()) return {};
  std::vector<pid_t> out;
  for (const ProcessFacts& facts : descendants_of(getpid())) out.push_back(facts.pid);
  return out;
}

// If the guardian is killed while the launcher is stopped (Ctrl-Z), the launcher has to go on and end the
// workers: the kernel sends it SIGCONT. As an orphaned process group that is stopped it is sent SIGHUP, too, which
// must not kill it.
void go_on_when_the_guardian_dies() {
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  const sigset_t hangup = set_of({SIGHUP});
  sigprocmask(SIG_BLOCK, &hangup, nullptr);
}

}  // namespace

Result<GuardianChannel> split_off_launcher(const GuardianSettings& settings) {
  std::vector<int> numbers = settings.signals;
  // The guardian decides about the terminal's stop signals; SIGTTOU must never stop the launcher.
  numbers.insert(numbers.end(), {SIGCHLD, SIGTSTP, SIGCONT, SIGTTIN, SIGTTOU, SIGWINCH});
  const sigset_t set = set_of(numbers);
  ELASTIC_CHECK(sigprocmask(SIG_BLOCK, &set, nullptr) == 0);
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  ELASTIC_CHECK(sigaction(SIGCHLD, &default_action, nullptr) == 0);
  ELASTIC_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  std::vector<pid_t> other_children = children_before();
  auto board = GuardianBoard::make();
  if (!board) return std::unexpected(board.error());
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
    return GuardianChannel{UniqueFd(ends[1]), std::move(*board)};
  }
  close(ends[1]);
  setpgid(launcher, launcher);  // both processes do this, whichever runs first
  Guardian(settings, launcher, {UniqueFd(ends[0]), std::move(*board)}, std::move(other_children)).run();
}

}  // namespace elastic::process
