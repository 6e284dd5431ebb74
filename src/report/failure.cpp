#include "src/report/failure.h"

#include <algorithm>
#include <string_view>

#include "src/base/screen_text.h"
#include "src/base/text.h"

namespace elastic::report {
namespace {

// What JSON has around a call, with its line.
constexpr std::size_t kFrameBytes = 64;
// Of a timer's name, which by default is a path and a line.
constexpr std::size_t kScopeBytes = 60;

std::string scope_end(std::string_view scope) {
  std::string shown = printable(scope, scope.size() * 4);
  return shown.size() <= kScopeBytes ? shown : "..." + std::string(last_bytes(shown, kScopeBytes));
}

}  // namespace

std::string timer_name(const ExpiredTimer& timer, std::int64_t worker) {
  const std::string scope = scope_end(timer.scope);
  return timer.pid == worker ? format("its timer '{}'", scope)
                             : format("the timer '{}' of its process {}", scope, timer.pid);
}

std::string timer_place(const ExpiredTimer& timer) {
  if (timer.stack.empty()) return {};
  const HangFrame& frame = timer.stack.front();
  const std::string file = frame.file.substr(frame.file.rfind('/') + 1);
  return format("{} {}:{}", printable(frame.function), printable(file), frame.line);
}

bool may_have_ended(const ExpiredTimer& timer, std::int64_t worker, const ExitStatus& exit, std::int64_t after_ms) {
  constexpr std::int64_t kSoonMs = 30'000;
  const bool is_by_signal = timer.pid == worker && exit.signal != 0 && exit.signal == timer.signal;
  return is_by_signal || after_ms <= kSoonMs;
}

void shorten_stack(ExpiredTimer& timer, std::size_t most_bytes) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < timer.stack.size(); ++i) {
    bytes += kFrameBytes + timer.stack[i].function.size() + timer.stack[i].file.size();
    if (bytes > most_bytes) return timer.stack.resize(i);
  }
}

std::string FailedWorker::name() const {
  const std::string node = node_rank == 0 ? "" : format("node {}, ", node_rank);
  return format("rank {} ({}local rank {}, pid {})", rank, node, local_rank, pid);
}

const FailedWorker* JobReport::first_failure() const {
  const auto first = std::ranges::find(failures, false, &FailedWorker::stopped_by_us);
  return first == failures.end() ? nullptr : &*first;
}

}  // namespace elastic::report
