#include "cli/run/stacks_collector.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <utility>

#include "health/stacks/bounds.h"
#include "src/base/program_name.h"
#include "src/base/text.h"

namespace elastic::run {
namespace {

// Until a reader says what the kernel knows of a process: no lock delays that, but a busy host may.
// | `--stacks`: the time until a process is begun, that reading its memory may take, and all | {kBeginMs}, {kMemoryMs},
// {kCollectionMs} | that process has no stack, and the page says why |
constexpr std::int64_t kBeginMs = 5'000;
constexpr std::int64_t kMemoryMs = 1'000;       // from then on, until it has read the process's memory
constexpr std::int64_t kCollectionMs = 10'000;  // for all

}  // namespace

std::vector<pid_t> children_of(pid_t pid, const std::vector<process::ProcessFacts>& all) {
  std::set<pid_t> children;
  // The list may be in any order: a process with a known parent is found by the next turn at the latest.
  for (std::size_t before = SIZE_MAX; before != children.size();) {
    before = children.size();
    for (const process::ProcessFacts& facts : all) {
      if (facts.parent == pid || children.contains(facts.parent)) children.insert(facts.pid);
    }
  }
  return {children.begin(), children.end()};
}

StacksCollector::StacksCollector(net::Loop& loop, Handlers handlers)
    : loop_(loop), handlers_(std::move(handlers)), deadline_(loop) {}

void StacksCollector::collect(std::vector<StacksTarget> targets, OnDone on_done) {
  on_done_ = std::move(on_done);
  ends_ms_ = loop_.now_ms() + kCollectionMs;
  looks_.clear();
  places_.clear();
  at_ = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const StacksTarget& target = targets[i];
    const std::size_t count = std::min(target.children.size(), stacks::kMostChildren);
    looks_.push_back({.rank = target.rank, .more_children = static_cast<int>(target.children.size() - count)});
    places_.push_back({i, target.pid, false});
    for (std::size_t child = 0; child < count; ++child) places_.push_back({i, target.children[child], true});
  }
  deadline_.start(0, [this] { next(); });
}

void StacksCollector::next() {
  first_.reset();
  if (at_ == places_.size()) return end();
  const pid_t pid = places_[at_].pid;
  if (loop_.now_ms() >= ends_ms_)
    return keep(stacks::ProcessLook{.pid = pid, .problem = "there was no time for it", .is_late = true});
  if (const Status started = start_reader(); !started) return failed(started.error().text());
  const UniqueFd memory(open(format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
  const int error = memory ? 0 : errno;
  if (const Status asked = stacks::ask(channel_.get(), {.pid = pid, .error = error}, memory.get()); !asked) {
    return failed(asked.error().text());
  }
  deadline_.start(left_ms(kBeginMs),
                  [this] { failed(format("nothing was read of it within {} s", kBeginMs / 1000), true); });
}

void StacksCollector::end() {
  deadline_.stop();
  end_reader();
  const OnDone done = std::exchange(on_done_, nullptr);
  done(std::move(looks_));
}

Status StacksCollector::start_reader() {
  if (channel_) return {};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail_errno("cannot make a socket for the process that reads stacks", errno);
  }
  channel_ = UniqueFd(ends[0]);
  const UniqueFd its(ends[1]);
  const process::Command command{.path = "/proc/self/exe",
                                 .arguments = {std::string(program_name()), stacks::kReaderArgument},
                                 .environment = {},
                                 .variables = {},
                                 .channel = its.get()};
  const auto pid = handlers_.start(command);
  if (!pid) {
    channel_ = UniqueFd();
    return std::unexpected(pid.error());
  }
  reader_ = *pid;
  line_.clear();
  watch_.emplace(loop_, channel_.get(), [this] { read(); });
  return {};
}

void StacksCollector::end_reader() {
  watch_.reset();
  channel_ = UniqueFd();
  if (reader_ > 0) handlers_.kill(std::exchange(reader_, 0));
}

void StacksCollector::read() {
  char piece[16 * 1024];
  const ssize_t count = recv(channel_.get(), piece, sizeof piece, MSG_DONTWAIT);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return failed("the process that read it has ended");
  line_.append(piece, static_cast<std::size_t>(count));
  const std::size_t asked = at_;
  for (std::size_t end = 0; at_ == asked && (end = line_.find('\n')) != std::string::npos;) {
    const std::string line = line_.substr(0, end);
    line_.erase(0, end + 1);
    answered(line);
  }
  if (at_ != asked) {
    if (!line_.empty()) end_reader();  // it says more than it was asked
    return;
  }
  if (line_.size() > stacks::kMostAnswerBytes) failed("what was read of it is too long");
}

void StacksCollector::answered(std::string_view line) {
  auto answer = stacks::read_answer(line);
  const bool is_in_order = answer && answer->look.pid == places_[at_].pid && (answer->is_last || !first_);
  if (!is_in_order) return failed("what was read of it makes no sense");
  if (!answer->is_last) {
    first_ = std::move(answer->look);
    deadline_.start(left_ms(kMemoryMs),
                    [this] { failed(format("its memory could not be read within {} s", kMemoryMs / 1000), true); });
    return;
  }
  keep(std::move(answer->look));
}

std::int64_t StacksCollector::left_ms(std::int64_t most) const {
  return std::clamp<std::int64_t>(ends_ms_ - loop_.now_ms(), 1, most);
}

// Ends the look at a process that could not be read, and the reader with it.
void StacksCollector::failed(const std::string& why, bool is_late) {
  end_reader();
  stacks::ProcessLook look = first_ ? std::move(*first_) : stacks::ProcessLook{.pid = places_[at_].pid};
  if (look.problem.empty()) look.problem = why;
  look.is_late = is_late;
  keep(std::move(look));
}

void StacksCollector::keep(stacks::ProcessLook look) {
  const Place& place = places_[at_];
  if (look.threads.empty()) look.threads.push_back({.id = place.pid});
  stacks::RankLook& target = looks_[place.target];
  if (place.is_child) {
    target.children.push_back(std::move(look));
  } else {
    target.process = std::move(look);
  }
  ++at_;
  // In a turn of its own: what has called this is not done with the reader yet.
  deadline_.start(0, [this] { next(); });
}

}  // namespace elastic::run
