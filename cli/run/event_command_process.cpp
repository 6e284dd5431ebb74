#include "cli/run/event_command_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "cli/run/limits.h"
#include "health/probe/command.h"
#include "rendezvous/events/limits.h"
#include "src/process/children.h"
#include "src/process/descendants.h"
#include "src/process/spawn.h"

namespace elastic::run {
namespace {

constexpr int kChannel = 3;
constexpr int kChildSignals = 4;
// How long the end waits for a process that SIGKILL does not end: one in an uninterruptible sleep.
constexpr std::int64_t kStuckMs = 2000;
constexpr int kLookAgainMs = 5;

void answer(EventReport report, const std::string& text) {
  std::string packet(sizeof report, '\0');
  std::memcpy(packet.data(), &report, sizeof report);
  packet += text;
  (void)!send(kChannel, packet.data(), packet.size(), MSG_NOSIGNAL);
}

// Makes stdin a pipe that holds the whole line, so that writing it waits for no command that does not read. False if
// that fails.
bool becomes_stdin(const std::string& line) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  fcntl(writer.get(), F_SETFL, O_NONBLOCK);
  return write(writer.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
         dup2(reader.get(), STDIN_FILENO) == STDIN_FILENO;
}

// The process of one command, which waits for it and ends what it leaves running.
[[noreturn]] void run_one(std::uint32_t number, const std::string& line, const std::string& command,
                          const Environment& environment, const process::InheritedState& inherited) {
  using How = health::CommandEnd::How;
  close(kChildSignals);
  if (!becomes_stdin(line)) {
    answer({.number = number, .how = EventReport::How::kNotStarted}, "no pipe can be made for its stdin");
    _exit(0);
  }
  health::CommandsEnd all = health::run_commands({{.text = command}},
                                                 {.environment = environment,
                                                  .output_bytes = limits::kEventCommandOutputBytes,
                                                  .keeps_stderr = true,
                                                  .inherited = inherited},
                                                 health::Deadline(limits::kEventCommandMs));
  const health::CommandEnd& end = all.commands.front();
  EventReport report{.number = number, .code = end.status.code, .signal = end.status.signal};
  if (end.how == How::kAtDeadline) report.how = EventReport::How::kAtDeadline;
  if (!end.why_not_started.empty()) report.how = EventReport::How::kNotStarted;
  answer(report, end.why_not_started.empty() ? all.output : end.why_not_started);
  _exit(0);
}

class EventProcess {
 public:
  EventProcess(const std::string& command, const Environment& environment, const process::InheritedState& inherited)
      : command_(command), environment_(environment), inherited_(inherited) {}

  [[noreturn]] void run() {
    for (;;) {
      pollfd watched[] = {{kChannel, POLLIN, 0}, {kChildSignals, POLLIN, 0}};
      if (poll(watched, std::size(watched), -1) < 0) continue;
      if (watched[1].revents != 0) reap();
      if (watched[0].revents != 0 && !take_order()) break;
    }
    end_all();
    _exit(0);
  }

 private:
  // False if the launcher has ended.
  bool take_order() {
    char packet[sizeof(EventOrder) + limits::kEventLineBytes];
    const ssize_t count = recv(kChannel, packet, sizeof packet, MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count < static_cast<ssize_t>(sizeof(EventOrder))) return false;
    EventOrder order;
    std::memcpy(&order, packet, sizeof order);
    start(order.number, std::string(packet + sizeof order, static_cast<std::size_t>(count) - sizeof order));
    return true;
  }

  void start(std::uint32_t number, const std::string& line) {
    const pid_t self = getpid();
    const auto child = process::fork_child([&]() -> int {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self) return 1;
      run_one(number, line, command_, environment_, inherited_);
    });
    if (child) {
      running_.emplace(*child, number);
    } else {
      answer({.number = number, .how = EventReport::How::kNotStarted}, "no process can be made for it");
    }
  }

  // A process that was killed has not answered itself.
  void reap() {
    signalfd_siginfo info;
    while (read(kChildSignals, &info, sizeof info) == sizeof info) {
    }
    while (const auto child = process::reap_any_child()) {
      const auto found = running_.find(child->pid);
      if (found == running_.end()) continue;
      const std::uint32_t number = found->second;
      running_.erase(found);
      if (child->status.signal != 0) answer({.number = number, .signal = child->status.signal}, "");
    }
  }

  void end_all() {
    const health::Deadline deadline(kStuckMs);
    while (!deadline.has_passed()) {
      process::reap_children();
      if (!process::has_children()) return;
      for (const process::ProcessFacts& facts : process::descendants_of(getpid())) process::kill_process(facts);
      poll(nullptr, 0, kLookAgainMs);
    }
  }

  const std::string& command_;
  const Environment& environment_;
  const process::InheritedState& inherited_;
  std::map<pid_t, std::uint32_t> running_;  // the number of each process's command
};

// Closes the launcher's descriptors, and ignores signals that are sent to all processes of a job: the process ends
// after the launcher.
bool settle(UniqueFd channel, const process::InheritedState& inherited) {
  setsid();
  prctl(PR_SET_NAME, kEventProcessName);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &default_action, nullptr);
  {
    const UniqueFd aside(fcntl(channel.get(), F_DUPFD_CLOEXEC, kChildSignals + 1));
    channel = UniqueFd();
    if (!aside || dup2(aside.get(), kChannel) < 0) return false;
  }
  const int nothing = open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (nothing < 0 || dup2(nothing, stream) < 0) return false;
  }
  process::close_descriptors_from(kChannel + 1, inherited.open_files.rlim_max);
  fcntl(kChannel, F_SETFD, FD_CLOEXEC);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  return signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC) == kChildSignals;
}

}  // namespace

Result<UniqueFd> start_event_process(const std::string& command, const Environment& environment,
                                     const process::InheritedState& inherited) {
  int ends[2];
  const char* const what = "cannot start the process that runs the commands of --on-event";
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno(what, errno);
  UniqueFd ours(ends[0]);
  UniqueFd its(ends[1]);
  // It is forked by a process that ends at once, so that as an orphan it becomes the guardian's child.
  const auto run = [&]() -> int {
    ours = UniqueFd();
    if (!settle(std::move(its), inherited)) return 1;
    EventProcess(command, environment, inherited).run();
  };
  const auto between = process::fork_child([&] {
    (void)process::fork_child(run);
    return 0;
  });
  if (!between) return fail_errno(what, errno);
  process::wait_for_child(*between);
  return ours;
}

}  // namespace elastic::run
