#include "src/process/tree.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <string>
#include <system_error>

#include "src/base/check.h"
#include "src/base/text.h"
#include "src/process/children.h"
#include "src/process/guardian.h"

namespace elastic::process {
namespace {

// The end of each child wakes us at once. This interval is for a zombie that is not our child: its
// living parent, outside our process groups, has not reaped it.
constexpr std::int64_t kLookAgainMs = 50;
// The time between two searches for processes that have left their group; they are killed, and may have forked before.
constexpr std::int64_t kLookForStraysMs = 5;

// Sets SIGCHLD to its default action and returns it. If our parent has left it ignored, the kernel would reap our
// children, and their exit codes would be lost.
std::vector<int> child_signal() {
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  ELASTIC_CHECK(sigaction(SIGCHLD, &default_action, nullptr) == 0);
  return {SIGCHLD};
}

// Whether the process group of a worker that has been reaped still has a process. The number is the worker's group as
// long as that is so, and may be reused afterwards: only our descendants count, where /proc shows them.
bool group_outlived(pid_t worker) {
  if (kill(-worker, 0) != 0 && errno == ESRCH) return false;
  if (!processes_can_be_seen()) return true;
  const std::vector<ProcessFacts> all = descendants_of(getpid());
  return std::any_of(all.begin(), all.end(), [worker](const ProcessFacts& facts) { return facts.group == worker; });
}

// What the worker does with the signal at this moment.
Handles what_it_does(pid_t worker, int signal_number) {
  if (!may_go_alone(signal_number)) return Handles::kNo;
  const Handles does = handles(signal_number, status_text(worker));
  if (does != Handles::kYes) return does;  // a shell that has no trap dies at once, as any other program
  const std::string executable = executable_of(worker);
  return executable.empty() || is_shell(executable) ? Handles::kNo : does;
}

constexpr std::array<std::string_view, 12> kShells = {"ash", "bash",  "busybox", "csh", "dash", "fish",
                                                      "ksh", "ksh93", "mksh",    "sh",  "tcsh", "zsh"};

// Whether a line such as "SigCgt:\t0000000180004002" has the bit of the signal, which is bit 0 for signal 1. None where
// there is no such line.
std::optional<bool> bit(std::string_view status, std::string_view name, int signal_number) {
  const std::size_t line = status.find(name);
  if (line == std::string_view::npos) return std::nullopt;
  const std::string_view digits = status.substr(line + name.size());
  std::uint64_t mask = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16);
  if (read.ec != std::errc()) return std::nullopt;
  return ((mask >> (signal_number - 1)) & 1) != 0;
}

// Whether the process does not die of a signal now: it is stopped, or in a sleep that no signal ends.
bool lives_on(std::string_view status) {
  constexpr std::string_view kName = "\nState:\t";
  const std::size_t line = status.find(kName);
  return line != std::string_view::npos && std::string_view("DTt").contains(status[line + kName.size()]);
}

// Whether a process dies of the signal that neither handles nor ignores it (signal(7)).
bool ends_by_default(int signal_number) {
  constexpr std::array kHarmless = {SIGCHLD, SIGURG, SIGWINCH, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
  return std::ranges::find(kHarmless, signal_number) == kHarmless.end();
}

}  // namespace

Result<std::unique_ptr<WorkerBarrier>> WorkerBarrier::make(net::Loop& loop, int workers) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail_errno("cannot make a socket at which workers wait for each other", errno);
  }
  return std::unique_ptr<WorkerBarrier>(new WorkerBarrier(loop, {UniqueFd(ends[0]), UniqueFd(ends[1])}, workers));
}

WorkerBarrier::WorkerBarrier(net::Loop& loop, Ends ends, int workers)
    : workers_(workers),
      ours_(std::move(ends.ours)),
      theirs_(std::move(ends.theirs)),
      watch_(std::make_unique<net::ReadWatch>(loop, ours_.get(), [this] { hear(); })) {}

void WorkerBarrier::done(int local_rank) {
  if (local_rank < 0 || local_rank >= workers_) return;
  done_.insert(local_rank);
  if (std::cmp_equal(done_.size(), workers_)) open();
}

void WorkerBarrier::open() {
  watch_.reset();
  ours_ = UniqueFd();
  theirs_ = UniqueFd();
}

// Each worker sends one message. A message that is not a number was written there by a script, by mistake.
void WorkerBarrier::hear() {
  std::array<char, 16> text{};
  while (ours_) {
    const ssize_t bytes = recv(ours_.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (bytes < 0) return;
    const auto local_rank = parse_int(std::string_view(text.data(), static_cast<std::size_t>(bytes)));
    if (local_rank && std::in_range<int>(*local_rank)) done(static_cast<int>(*local_rank));
  }
}

WorkerTree::WorkerTree(net::Loop& loop, SpawnContext context, Handlers handlers)
    : loop_(loop),
      context_(std::move(context)),
      handlers_(std::move(handlers)),
      child_signals_(loop, child_signal(), [this](const ReceivedSignal&) { reap(); }),
      look_again_timer_(loop),
      childless_timer_(loop) {
  ELASTIC_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
}

WorkerTree::~WorkerTree() = default;

Status WorkerTree::let_wait_for_each_other(int count) {
  auto gate = WorkerBarrier::make(loop_, count);
  if (!gate) return std::unexpected(std::move(gate.error()));
  worker_barrier_ = std::move(*gate);
  return {};
}

Result<pid_t> WorkerTree::start(int local_rank, Command command, BindingRefusal* refusal) {
  ELASTIC_CHECK(!workers_.contains(local_rank));
  if (worker_barrier_ && local_rank != kHelper) command.channel = worker_barrier_->workers_end();
  const auto pid = spawn(command, context_, refusal);
  if (pid) workers_.emplace(local_rank, Worker{.pid = *pid});
  return pid;
}

void WorkerTree::adopt(int local_rank, pid_t pid) {
  ELASTIC_CHECK(!workers_.contains(local_rank));
  workers_.emplace(local_rank, Worker{.pid = pid});
  if (context_.guardian >= 0) introduce_to_guardian(context_.guardian, pid);
}

Result<pid_t> WorkerTree::start_outside(const Command& command) const {
  SpawnContext context = context_;
  context.cgroup = context.cgroup_procs = -1;
  return spawn(command, context);
}

Result<pid_t> WorkerTree::start_aside(const Command& command) {
  ELASTIC_CHECK(aside_ == 0);
  const auto pid = start_outside(command);
  if (pid) aside_ = *pid;
  return pid;
}

Result<pid_t> WorkerTree::start_onlooker(const Command& command) {
  const auto pid = start_outside(command);
  if (pid) onlookers_.insert(*pid);
  return pid;
}

void WorkerTree::end_onlooker(pid_t pid) {
  if (onlookers_.erase(pid) == 0) return;
  kill(-pid, SIGKILL);
  ended_asides_.insert(pid);
}

// What it has forked is in its group as long as it is in its session: a process with its own session is a worker.
void WorkerTree::kill_aside() {
  if (aside_ != 0) kill(-aside_, SIGKILL);
}

void WorkerTree::end_aside() {
  if (aside_ == 0) return;
  kill_aside();
  ended_asides_.insert(std::exchange(aside_, 0));
}

Result<pid_t> WorkerTree::start_helper(const Command& command) { return start(kHelper, command); }

void WorkerTree::kill_helper() {
  const auto helper = workers_.find(kHelper);
  if (helper != workers_.end()) kill(-helper->second.pid, SIGKILL);
}

void WorkerTree::signal_group_of(Worker& worker, int signal_number) {
  if (worker.exited && !worker.group_gone) worker.group_gone = !group_outlived(worker.pid);
  if (!worker.group_gone) kill(-worker.pid, signal_number);
}

void WorkerTree::forbid_core_dumps() {
  // Of 1 byte no file is made, and a program that takes dumps from a pipe is not started either (core(5)).
  constexpr rlimit kNone{1, 1};
  for (const auto& [local_rank, worker] : workers_) {
    if (!worker.exited) (void)prlimit(worker.pid, RLIMIT_CORE, &kNone, nullptr);
  }
}

std::vector<int> WorkerTree::signal_groups(int signal_number, const Whom& whom) {
  ELASTIC_CHECK(signal_number != SIGKILL || (!whom.only && !whom.spared));
  std::vector<int> alone;
  for (auto& [local_rank, worker] : workers_) {
    if (whom.only.value_or(local_rank) != local_rank || whom.spared == local_rank) continue;
    const bool can_handle = local_rank != kHelper && !worker.exited;
    const Handles does = can_handle ? what_it_does(worker.pid, signal_number) : Handles::kNo;
    if (does == Handles::kNo || (does == Handles::kUnknown && !whom.helpers_follow)) {
      signal_group_of(worker, signal_number);
      continue;
    }
    kill(worker.pid, signal_number);
    if (whom.helpers_follow) worker.follows = signal_number;
    if (does == Handles::kYes) alone.push_back(local_rank);
  }
  if (signal_number == SIGKILL) {
    killing_ = true;
    kill_all();
  }
  return alone;
}

bool WorkerTree::is_from_workers(const ReceivedSignal& signal) const {
  if (signal.sender <= 0 || signal.sender == getpid()) return false;
  if (is_descendant(signal.sender, getpid())) return true;
  const bool has_ended = kill(signal.sender, 0) != 0 && errno == ESRCH;
  if (has_ended) return !workers_.empty() && signal.user == getuid();
  if (processes_can_be_seen()) return false;
  // A worker's session has the worker's pid as its number.
  const pid_t session = getsid(signal.sender);
  return std::ranges::any_of(workers_, [session](const auto& entry) { return entry.second.pid == session; });
}

void WorkerTree::kill_all() {
  if (context_.cgroup >= 0) {
    const UniqueFd file(openat(context_.cgroup, "cgroup.kill", O_WRONLY | O_CLOEXEC));
    if (file) (void)!write(file.get(), "1", 1);
    context_.born_in_cgroup = false;
  }
  for (const ProcessFacts& facts : survivors()) kill_process(facts);
}

void WorkerTree::expect_all_gone() {
  expecting_all_gone_ = true;
  worker_barrier_.reset();
  look_again_timer_.start(0, [this] { look_at_groups(); });
}

// Only the timer calls this, so that /proc is not read again for each process that ends.
void WorkerTree::look_again() {
  if (killing_) kill_all();
  look_at_groups();
}

// Whether this process has children that workers have left or are, zombies included.
bool WorkerTree::has_children() const {
  if (!process::has_children()) return false;
  return (aside_ == 0 && ended_asides_.empty() && onlookers_.empty()) || !survivors().empty();
}

// Reaps what has ended: workers, and orphans that became our children because we are their subreaper.
void WorkerTree::reap() {
  while (const auto child = reap_any_child()) reaped(child->pid, child->status);
  if (expecting_all_gone_) look_at_groups();
  if (on_childless_ && !has_children()) told_childless();
}

void WorkerTree::await_childless(std::int64_t patience_ms, std::function<void()> done) {
  on_childless_ = std::move(done);
  if (!has_children()) return told_childless();
  childless_timer_.start(patience_ms, [this] { told_childless(); });
}

void WorkerTree::told_childless() {
  childless_timer_.stop();
  std::exchange(on_childless_, nullptr)();
}

std::vector<WorkerTree::Background> WorkerTree::background() const {
  std::vector<Background> found;
  if (!has_children()) return found;
  for (ProcessFacts& facts : survivors()) {
    const auto worker = std::ranges::find_if(
        workers_, [&](const auto& entry) { return entry.first != kHelper && entry.second.pid == facts.session; });
    const auto rank = worker == workers_.end() ? std::nullopt : std::optional(worker->first);
    found.push_back({std::move(facts), rank});
  }
  return found;
}

void WorkerTree::reaped(pid_t pid, ExitStatus status) {
  std::erase_if(abandoned_, [pid](const auto& known) { return known.first == pid; });
  if (ended_asides_.erase(pid) > 0 || onlookers_.erase(pid) > 0) return;
  if (pid == aside_) {
    aside_ = 0;
    if (handlers_.on_aside_exit) handlers_.on_aside_exit(status);
    return;
  }
  for (auto& [local_rank, worker] : workers_) {
    if (worker.pid != pid || worker.exited) continue;
    if (local_rank == kHelper) {
      workers_.erase(kHelper);
      kill_what_helper_left();
      if (handlers_.on_helper_exit) handlers_.on_helper_exit(status);
      return;
    }
    worker.exited = true;
    worker.group_gone = !group_outlived(pid);
    if (!worker.group_gone && worker.follows != 0) kill(-pid, worker.follows);
    if (worker_barrier_ && status.success()) worker_barrier_->done(local_rank);
    handlers_.on_exit(local_rank, status);
    return;
  }
}

// Without workers, every child that is left is an orphan of the helper. Processes that fork while they are killed are
// killed when the round ends.
void WorkerTree::kill_what_helper_left() {
  if (!workers_.empty() || !has_children()) return;
  for (const ProcessFacts& facts : survivors()) kill_process(facts);
}

void WorkerTree::look_at_groups() {
  if (!expecting_all_gone_) return;
  bool waiting_for_others = false;
  bool waiting_for_workers = false;
  for (auto& [local_rank, worker] : workers_) {
    if (worker.group_gone) continue;
    if (!worker.exited) {
      waiting_for_workers = true;
      continue;
    }
    worker.group_gone = !group_outlived(worker.pid);
    waiting_for_others = waiting_for_others || !worker.group_gone;
  }
  const bool groups_gone = !waiting_for_workers && !waiting_for_others;
  if (groups_gone) waiting_for_others = strays_left();
  if (waiting_for_others || (waiting_for_workers && killing_)) {
    look_again_timer_.start(groups_gone ? kLookForStraysMs : kLookAgainMs, [this] { look_again(); });
  }
  if (waiting_for_workers || waiting_for_others) return;
  expecting_all_gone_ = false;
  killing_ = false;
  workers_.clear();
  handlers_.on_all_gone();
}

// When the groups are empty, every child that is left is an orphan that has a session or group of its own.
bool WorkerTree::strays_left() {
  if (!has_children()) return false;
  kill_all();
  // There is a child. If /proc does not show it, it forks and ends faster than /proc is read, or it was abandoned,
  // or /proc is not mounted.
  return !survivors().empty() || (abandoned_.empty() && processes_can_be_seen());
}

std::vector<ProcessFacts> WorkerTree::survivors() const {
  std::vector<ProcessFacts> left = descendants_of(getpid());
  std::erase_if(left, [this](const ProcessFacts& facts) {
    return is_beside(facts.session) || abandoned_.contains({facts.pid, facts.started});
  });
  return left;
}

bool WorkerTree::is_beside(pid_t session) const {
  return (aside_ != 0 && session == aside_) || ended_asides_.contains(session) || onlookers_.contains(session);
}

void WorkerTree::abandon() {
  for (const ProcessFacts& facts : survivors()) abandoned_.insert({facts.pid, facts.started});
  expecting_all_gone_ = false;
  worker_barrier_.reset();
  killing_ = false;
  workers_.clear();
}

bool may_go_alone(int signal_number) {
  constexpr std::array kNever = {SIGINT, SIGABRT, SIGKILL, SIGSTOP, SIGCONT, SIGTSTP};
  return std::ranges::find(kNever, signal_number) == kNever.end();
}

Handles handles(int signal_number, std::string_view status) {
  const std::optional<bool> catches = bit(status, "\nSigCgt:\t", signal_number);
  const std::optional<bool> blocks = bit(status, "\nSigBlk:\t", signal_number);
  const std::optional<bool> ignores = bit(status, "\nSigIgn:\t", signal_number);
  if (!may_go_alone(signal_number) || !catches || !blocks || !ignores) return Handles::kNo;
  if (*catches || *blocks) return Handles::kYes;
  return *ignores || lives_on(status) || !ends_by_default(signal_number) ? Handles::kNo : Handles::kUnknown;
}

bool is_shell(std::string_view executable) {
  constexpr std::string_view kReplaced = " (deleted)";  // as the kernel marks a file that has been removed since
  if (executable.ends_with(kReplaced)) executable.remove_suffix(kReplaced.size());
  const std::string_view name = executable.substr(executable.rfind('/') + 1);
  return std::ranges::find(kShells, name) != kShells.end();
}

}  // namespace elastic::process
