#include "rendezvous/agent/shared_signals.h"

#include <algorithm>
#include <csignal>

#include "src/base/patience.h"

namespace elastic::agent {
namespace {

using Cause = SignalWorkers::Cause;

// Signals that end workers reach them once. Of the agent's own, only these may have come from outside, too.
bool ends(int signal) { return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT; }

}  // namespace

void SharedSignals::witnessed(int signal, std::int64_t now_ms) {
  Known& known = signals_[signal];
  reaches_us_only_ = false;
  if (known.due_ms) {
    known.due_ms.reset();
    known.reached = ends(signal);
    return;
  }
  known.witnessed_ms = now_ms;
}

bool SharedSignals::ordered(const SignalWorkers& order, std::int64_t now_ms) {
  if (order.cause == Cause::kOurs && !ends(order.signal)) return true;  // SIGKILL, SIGSTOP, SIGCONT
  Known& known = signals_[order.signal];
  if (known.reached) return false;
  const bool is_witnessed = known.witnessed_ms && now_ms - *known.witnessed_ms <= patient_ms(kFreshMs);
  known.witnessed_ms.reset();
  if (is_witnessed) {
    known.reached = ends(order.signal);
    return false;
  }
  if (order.cause == Cause::kOurs || reaches_us_only_) {
    known.due_ms.reset();
    return true;
  }
  known.from_outside = order.cause == Cause::kFromOutside;
  const std::int64_t due_ms = now_ms + patient_ms(known.from_outside ? kFromOutsideMs : kOthersOrderMs);
  known.due_ms = std::min(known.due_ms.value_or(due_ms), due_ms);
  return false;
}

std::optional<std::int64_t> SharedSignals::due_ms() const {
  std::optional<std::int64_t> first;
  for (const auto& [signal, known] : signals_) {
    if (known.due_ms) first = std::min(first.value_or(*known.due_ms), *known.due_ms);
  }
  return first;
}

std::vector<int> SharedSignals::take_due(std::int64_t now_ms) {
  std::vector<int> out;
  for (auto& [signal, known] : signals_) {
    if (!known.due_ms || *known.due_ms > now_ms) continue;
    known.due_ms.reset();
    if (known.from_outside) reaches_us_only_ = true;
    out.push_back(signal);
  }
  return out;
}

}  // namespace elastic::agent
