#include "health/probe/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/children.h"
#include "src/process/descendants.h"
#include "src/process/spawn.h"

namespace elastic::health {
namespace {

using How = CommandEnd::How;

// How long a process in an uninterruptible sleep, which SIGKILL does not end, is waited for.
// | processes of a hook or an external probe that SIGKILL does not end | {kStuckMs} | the check goes on without waiting
// for them |
constexpr std::int64_t kStuckMs = 2000;
// The time between two searches for processes that are left: one that was killed may have forked before.
constexpr int kLookAgainMs = 5;

// SIGCHLD as a descriptor for poll(). Children get the signal state that was there before.
class ChildSignals {
 public:
  ChildSignals() : inherited_(process::InheritedState::capture()) {
    // If a parent had left SIGCHLD ignored, our children's exit codes would be lost.
    struct sigaction default_action {};
    default_action.sa_handler = SIG_DFL;
    ELASTIC_CHECK(sigaction(SIGCHLD, &default_action, nullptr) == 0);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    ELASTIC_CHECK(sigprocmask(SIG_BLOCK, &child, nullptr) == 0);
    signals_ = UniqueFd(signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  ~ChildSignals() {
    clear();
    sigprocmask(SIG_SETMASK, &inherited_.signal_mask, nullptr);
    sigaction(SIGCHLD, &inherited_.child_action, nullptr);
  }
  ChildSignals(const ChildSignals&) = delete;
  ChildSignals& operator=(const ChildSignals&) = delete;

  const process::InheritedState& inherited() const { return inherited_; }
  int descriptor() const { return signals_.get(); }
  void clear() const {
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    }
  }

 private:
  process::InheritedState inherited_;
  UniqueFd signals_;
};

// Keeps the end of what comes through a pipe.
class Output {
 public:
  explicit Output(std::size_t most_bytes) : most_bytes_(most_bytes) {
    if (most_bytes == 0) return;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    reader_ = UniqueFd(ends[0]);
    writer_ = UniqueFd(ends[1]);
  }
  int reader() const { return reader_.get(); }
  int writer() const { return most_bytes_ == 0 ? STDERR_FILENO : writer_.get(); }
  bool is_open() const { return writer() >= 0; }

  void all_started() { writer_ = UniqueFd(); }
  // Reads what has come by now.
  void take() {
    char bytes[4096];
    while (reader_) {
      const ssize_t got = read(reader_.get(), bytes, sizeof bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got == 0) reader_ = UniqueFd();
      if (got <= 0) return;
      text_.append(bytes, static_cast<std::size_t>(got));
      if (text_.size() > 2 * most_bytes_) cut();
      if (static_cast<std::size_t>(got) < sizeof bytes)
        return;  // so that one command's output does not keep us from the others
    }
  }
  std::string text() {
    cut();
    return std::move(text_);
  }

 private:
  void cut() {
    if (text_.size() > most_bytes_) text_.erase(0, text_.size() - most_bytes_);
  }

  std::size_t most_bytes_;
  UniqueFd reader_;
  UniqueFd writer_;
  std::string text_;
};

std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=')); }

std::vector<std::string> without(std::span<const std::string> environment, const std::vector<std::string>& variables) {
  std::vector<std::string> left;
  for (const std::string& variable : environment) {
    const bool is_replaced =
        std::ranges::any_of(variables, [&](const std::string& other) { return name_of(other) == name_of(variable); });
    if (!is_replaced) left.push_back(variable);
  }
  return left;
}

class Run {
 public:
  Run(const std::vector<ShellCommand>& commands, const CommandRules& rules)
      : rules_(rules), output_(rules.output_bytes), ends_(commands.size()), pids_(commands.size(), 0) {
    ELASTIC_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    for (std::size_t i = 0; i < commands.size() && !patience_; ++i) start(i, commands[i]);
    output_.all_started();
  }

  CommandsEnd finish(const Deadline& deadline) {
    while (std::ranges::any_of(pids_, [](pid_t pid) { return pid > 0; })) {
      wait(patience_.value_or(deadline).left_ms());
      reap();
      if (patience_ && patience_->has_passed()) break;
      if (!patience_ && deadline.has_passed()) stop(How::kAtDeadline);
    }
    end_leftovers();
    output_.take();
    return {.commands = std::move(ends_), .output = output_.text()};
  }

 private:
  void start(std::size_t index, const ShellCommand& command) {
    if (!output_.is_open()) {
      ends_[index].why_not_started = "cannot make a pipe for its output";
      return stop(How::kStopped);
    }
    const std::vector<std::string> environment = without(rules_.environment, command.variables);
    const auto pid = process::spawn({.path = "/bin/sh",
                                     .arguments = {"sh", "-c", command.text},
                                     .environment = environment,
                                     .variables = command.variables,
                                     .standard_output = output_.writer(),
                                     .standard_error = rules_.keeps_stderr ? output_.writer() : -1},
                                    {.inherited = rules_.inherited.value_or(signals_.inherited())});
    if (pid) {
      pids_[index] = *pid;
    } else {
      ends_[index].why_not_started = pid.error().text();
      stop(How::kStopped);
    }
  }

  void wait(int timeout_ms) {
    const int news = std::exchange(rules_.news, -1);
    pollfd polled[] = {{signals_.descriptor(), POLLIN, 0}, {output_.reader(), POLLIN, 0}, {news, POLLIN, 0}};
    if (poll(polled, std::size(polled), timeout_ms) < 0) polled[0].revents = polled[1].revents = polled[2].revents = 0;
    if (polled[0].revents != 0) signals_.clear();
    if (polled[1].revents != 0) output_.take();
    if (polled[2].revents == 0) {
      rules_.news = news;
    } else if (!rules_.goes_on_after_news()) {
      stop(How::kStopped);
    }
  }

  // A shell's group is killed before the shell is reaped: after that its number may belong to another group.
  void reap() {
    while (const auto child = process::ended_child()) {
      const auto found = std::ranges::find(pids_, child->pid);
      if (found != pids_.end()) kill(-child->pid, SIGKILL);
      process::reap_child(child->pid);
      if (found == pids_.end()) continue;
      *found = 0;
      const auto index = static_cast<std::size_t>(found - pids_.begin());
      CommandEnd& end = ends_[index];
      if (end.how != How::kNotStarted) continue;  // stop() has ended it
      end = {.how = How::kByItself, .status = child->status};
      if (rules_.goes_on && !rules_.goes_on(index)) stop(How::kStopped);
    }
  }

  // Kills the commands that still run. They have to be reaped afterwards.
  void stop(How how) {
    if (!patience_) patience_ = Deadline(kStuckMs);
    for (std::size_t i = 0; i < pids_.size(); ++i) {
      if (pids_[i] <= 0) continue;
      kill(-pids_[i], SIGKILL);
      if (ends_[i].how == How::kNotStarted) ends_[i].how = how;
    }
  }

  // All shells have ended, so every child that is left was adopted by us.
  void end_leftovers() {
    if (!patience_) patience_ = Deadline(kStuckMs);
    for (;;) {
      reap();
      if (!process::has_children() || patience_->has_passed()) return;
      for (const process::ProcessFacts& facts : process::descendants_of(getpid())) process::kill_process(facts);
      wait(kLookAgainMs);
    }
  }

  CommandRules rules_;
  ChildSignals signals_;
  Output output_;
  std::vector<CommandEnd> ends_;      // kNotStarted while the command runs
  std::vector<pid_t> pids_;           // the shells that run; 0: the shell has ended
  std::optional<Deadline> patience_;  // set when all have to end: after it, processes that are left are given up
};

}  // namespace

CommandsEnd run_commands(const std::vector<ShellCommand>& commands, const CommandRules& rules,
                         const Deadline& deadline) {
  return Run(commands, rules).finish(deadline);
}

}  // namespace elastic::health
