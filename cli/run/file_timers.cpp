#include "cli/run/file_timers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "health/timers/limits.h"
#include "src/base/log.h"
#include "src/base/screen_text.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/base/wall_time.h"
#include "src/process/clock.h"

namespace elastic::run {
namespace {

constexpr const char* kVariable = "TORCHELASTIC_TIMER_FILE";
// A client that finds the FIFO full raises an exception in its script, so it holds what a busy node says in a while.
constexpr int kFifoBytes = 1024 * 1024;
constexpr std::size_t kNameBytes = 256;

// Another launcher serves this FIFO.
bool is_read(const std::string& path) {
  return static_cast<bool>(UniqueFd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)));
}

// What an earlier launch, or a script that has chosen the name by making a file, has left at the user's path.
void remove_left_over(const std::string& path) {
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0) return;
  const bool is_empty_file = S_ISREG(there.st_mode) && there.st_size == 0;
  if (is_empty_file || (S_ISFIFO(there.st_mode) && !is_read(path))) unlink(path.c_str());
}

// The ends of names say most.
std::string end_of(const std::string& name) {
  std::string shown = printable(name, name.size() * 4);
  return shown.size() <= kNameBytes ? shown : std::string(last_bytes(shown, kNameBytes));
}

report::HangStack stack_of(const stacks::ProcessLook& look) {
  report::HangStack out;
  if (look.threads.empty()) return out;
  for (const stacks::Frame& frame : look.threads.front().frames) {
    if (out.size() == report::kHangFrames) break;
    out.push_back({end_of(frame.function), end_of(frame.file), frame.line});
  }
  return out;
}

bool is_gone(const process::ProcessFacts& then) {
  const process::ProcessFacts now = process::process_facts(then.pid);
  return now.started != then.started || now.state == '?' || now.state == 'Z' || now.state == 'X';
}

}  // namespace

FileTimers::FileTimers(net::Loop& loop, const FileTimerSettings& settings, const std::string& directory,
                       Handlers handlers)
    : loop_(loop),
      settings_(settings),
      handlers_(std::move(handlers)),
      fifo_(loop, [this](std::string_view bytes) { read_requests(bytes); }),
      timer_(loop),
      deadline_(loop) {
  if (!settings_.are_served) return;
  const Status opened = open(directory);
  if (!opened) log::warning("no_file_timers", format("{}; workers get no {}", opened.error().text(), kVariable));
}

FileTimers::~FileTimers() {
  if (!settings_.path.empty() && fifo_.is_at(path_)) unlink(path_.c_str());
}

Status FileTimers::open(const std::string& directory) {
  if (settings_.path.empty() && directory.empty()) {
    return fail("cannot serve file timers", "there is no directory for temporary files that can be written");
  }
  path_ = settings_.path.empty() ? directory + "/file_timer" : settings_.path;
  if (!settings_.path.empty()) remove_left_over(path_);
  return fifo_.make(path_, kFifoBytes);
}

std::vector<Variable> FileTimers::variables() const {
  std::vector<Variable> out;
  if (fifo_.is_open()) out.emplace_back(kVariable, path_);
  return out;
}

void FileTimers::begin_round(int base_rank) {
  end_round();
  fifo_.empty();
  lines_.clear();
  base_rank_ = base_rank;
  is_running_ = fifo_.is_open();
}

void FileTimers::started(int local_rank, pid_t pid) {
  if (!is_running_) return;
  workers_[pid] = {.local_rank = local_rank, .worker = pid, .facts = process::process_facts(pid)};
}

void FileTimers::end_round() {
  is_running_ = false;
  workers_.clear();
  clients_.clear();
  table_.clear();
  overdue_.clear();
  collector_.reset();
  timer_.stop();
  deadline_.stop();
}

void FileTimers::read_requests(std::string_view bytes) {
  if (!is_running_) return;
  lines_.push(bytes, [this](std::string_view line) {
    if (const auto request = timers::read_timer_request(line)) take_request(*request);
  });
  plan_look();
}

void FileTimers::take_request(const timers::TimerRequest& request) {
  if (request.expires_ms) {
    const auto client = client_of(static_cast<pid_t>(request.pid));
    if (!client) {
      if (std::exchange(told_of_stranger_, true)) return;
      return log::info("foreign_timer", format("process {} is none of the workers', and gets no timer", request.pid));
    }
    clients_[request.pid] = *client;
  }
  const bool is_taken = table_.note_request(request, process::wall_clock_ms(), process::monotonic_ms());
  if (!table_.has(request.pid)) clients_.erase(request.pid);
  if (is_taken || std::exchange(warned_of_room_, true)) return;
  log::warning("too_many_timers",
               format("the workers have {} file timers at once: further ones are passed over", limits::kFileTimers));
}

// A worker leads its session, in which what it starts stays unless that leaves it.
std::optional<FileTimers::Client> FileTimers::client_of(pid_t pid) const {
  if (const auto worker = workers_.find(pid); worker != workers_.end()) return worker->second;
  process::ProcessFacts facts = process::process_facts(pid);
  if (facts.state == '?') return {};
  for (const auto& [worker, known] : workers_) {
    if (facts.session != worker && !process::is_descendant(pid, worker)) continue;
    return Client{.local_rank = known.local_rank, .worker = worker, .facts = std::move(facts)};
  }
  return {};
}

void FileTimers::plan_look() {
  if (!overdue_.empty()) return;
  const auto next_ms = table_.next_ms();
  if (!next_ms) return timer_.stop();
  timer_.start(std::max<std::int64_t>(*next_ms - loop_.now_ms(), 0), [this] { find_expired(); });
}

void FileTimers::find_expired() {
  fifo_.read_all();  // a release that came in time may wait there
  for (timers::Expired& expired : table_.take_expired(loop_.now_ms())) {
    const auto client = clients_.extract(expired.pid);
    if (client.empty() || is_gone(client.mapped().facts)) continue;
    overdue_.push_back({.client = client.mapped(), .expired = std::move(expired)});
  }
  if (overdue_.empty()) return plan_look();
  timer_.stop();
  for (Overdue& overdue : overdue_) overdue.problem = "there was no time for it";
  deadline_.start(limits::kFileTimerStacksMs, [this] {
    collector_.reset();
    signal_all();
  });
  at_ = 0;
  read_next();
}

// One after the other, so that what was read of some is there when another one takes all the time.
void FileTimers::read_next() {
  if (at_ == overdue_.size()) return signal_all();
  const Client& client = overdue_[at_].client;
  if (!collector_) collector_.emplace(loop_, handlers_.stacks);
  collector_->collect({{.rank = base_rank_ + client.local_rank, .pid = client.facts.pid}},
                      [this](const std::vector<stacks::RankLook>& looks) { has_read(looks); });
}

void FileTimers::has_read(const std::vector<stacks::RankLook>& looks) {
  Overdue& overdue = overdue_[at_++];
  overdue.problem.clear();
  if (!looks.empty()) {
    overdue.stack = stack_of(looks.front().process);
    overdue.problem = end_of(looks.front().process.problem);
  }
  read_next();
}

void FileTimers::signal_all() {
  deadline_.stop();
  for (const Overdue& overdue : std::exchange(overdue_, {})) signal(overdue);
  plan_look();
}

void FileTimers::signal(const Overdue& overdue) {
  const Client& client = overdue.client;
  if (is_gone(client.facts)) return;
  const report::ExpiredTimer timer{.scope = end_of(overdue.expired.scope),
                                   .late_ms = std::max<std::int64_t>(loop_.now_ms() - overdue.expired.due_ms, 0),
                                   .signal = overdue.expired.signal,
                                   .pid = client.facts.pid,
                                   .stack = overdue.stack,
                                   .problem = overdue.problem};
  const int rank = base_rank_ + client.local_rank;
  const std::string place = report::timer_place(timer);
  log::warning("timer_expired",
               format("rank {}: {} expired {} ago (file timer){}; {}", rank, report::timer_name(timer, client.worker),
                      span_text(timer.late_ms), place.empty() ? "" : ", at " + place,
                      timer.signal > 0 ? format("process {} gets {}", timer.pid, signal_name(timer.signal))
                                       : "the timer names no signal, so nothing is done"),
               {{"rank", rank},
                {"local_rank", client.local_rank},
                {"pid", timer.pid},
                {"scope", timer.scope},
                {"milliseconds", timer.late_ms},
                {"at", place}});
  if (timer.signal <= 0) return;
  handlers_.on_signalled(client.worker, timer);
  process::signal_process(client.facts, timer.signal);
}

}  // namespace elastic::run
