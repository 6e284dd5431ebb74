#include "rendezvous/agent/leave_signals.h"

#include <csignal>
#include <utility>

#include "src/base/check.h"
#include "src/base/signals.h"

namespace elastic::agent {

namespace {

// A second signal sooner than this after the first is taken for the same wish (Slurm, an impatient script); later it
// means "now".
constexpr std::int64_t kSecondSignalMs = 1000;

bool by_worker(const SignalReceived& event) { return event.worker != 0; }

}  // namespace

LeaveSignals::Meaning LeaveSignals::on_signal(const SignalReceived& event, std::int64_t now_ms) {
  const bool asks_again = !by_worker(event) && asked_ms_ && now_ms - *asked_ms_ >= kSecondSignalMs;
  if (!by_worker(event) && !asked_ms_) asked_ms_ = now_ms;
  if (!has_come()) {
    signal_ = event.signal;
    return Meaning::kLeave;
  }
  const bool insists = asks_again && (event.signal == SIGINT || (event.signal == SIGTERM && !shared_));
  return insists ? Meaning::kInsists : Meaning::kMore;
}

bool LeaveSignals::take_order(bool by_scheduler) {
  if (has_come()) return false;
  signal_ = SIGTERM;
  by_ = by_scheduler ? By::kScheduler : By::kOperator;
  return true;
}

std::string LeaveSignals::name() const {
  switch (by_) {
    case By::kOperator: return "an operator's order";
    case By::kScheduler: return "the scheduler's order";
    case By::kSignal: break;
  }
  return signal_name(signal_);
}

std::string LeaveSignals::reason() const { return protocol::why_it_left(message()); }

bool LeaveSignals::is_first_termination(const SignalReceived& event) {
  return event.signal == SIGTERM && !by_worker(event) && !std::exchange(terminated_, true);
}

void LeaveSignals::check_invariants() const {
  ELASTIC_CHECK(has_come() || !asked_ms_);
  ELASTIC_CHECK(by_ == By::kSignal || signal_ == SIGTERM);
  ELASTIC_CHECK(asked_ms_ || !terminated_);
}

void LeaveSignals::explain(Waiting& waiting) const {
  waiting.by_user = asked_ms_.has_value();
  if (asked_ms_ && !interrupt_is_forwarded_) waiting.hint = "press Ctrl-C again to kill now";
}

}  // namespace elastic::agent
