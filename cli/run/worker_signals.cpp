#include "cli/run/worker_signals.h"

#include <signal.h>

#include <algorithm>
#include <cstdint>

#include "cli/run/launch_settings.h"
#include "cli/run/node_telemetry.h"
#include "rendezvous/agent/lifecycle.h"

namespace elastic::run {

WorkerSignals::WorkerSignals(net::Loop& loop, const LaunchSettings& settings, process::WorkerTree& workers,
                             const agent::Lifecycle& lifecycle, const NodeTelemetry& telemetry, OnSignal on_signal)
    : loop_(loop),
      settings_(settings),
      workers_(workers),
      lifecycle_(lifecycle),
      telemetry_(telemetry),
      on_signal_(std::move(on_signal)),
      timer_(loop),
      own_(loop, settings.signals, [this](const process::ReceivedSignal& signal) { launcher_got(signal); }) {}

bool WorkerSignals::ends_job(int signal) const {
  return std::ranges::find(settings_.signals, signal) != settings_.signals.end() &&
         !settings_.node.forward_signals.contains(signal);
}

bool WorkerSignals::tell_end(int signal) const {
  if (!on_end_) return false;
  on_end_(signal);
  return true;
}

void WorkerSignals::pass_on(int signal, pid_t worker) {
  if (ends_job(signal) && tell_end(signal)) return;
  on_signal_(signal, worker);
}

// This process is the workers' parent, which they may signal as they would torchrun. All other signals count when they
// reach the outer process.
void WorkerSignals::launcher_got(const process::ReceivedSignal& signal) {
  if (ends_job(signal.number) && workers_.is_from_workers(signal)) return pass_on(signal.number, signal.sender);
  if (!settings_.node.signals_are_shared) return;
  shared_.witnessed(signal.number, loop_.now_ms());
  plan_shared();
}

void WorkerSignals::perform(const agent::SignalWorkers& order) {
  // A worker that hangs is to tell its stack, and not to write all its memory to a disk.
  if (order.signal == SIGABRT && order.cause == agent::SignalWorkers::Cause::kOurs) workers_.forbid_core_dumps();
  const bool now = !settings_.node.signals_are_shared || shared_.ordered(order, loop_.now_ms());
  if (now) signal_now(order.signal, {.only = order.only, .spared = order.spared});
  plan_shared();
}

void WorkerSignals::signal_now(int signal, process::WorkerTree::Whom whom) {
  // A signal after which the job goes on may be long past when a worker that has succeeded leaves processes behind.
  whom.helpers_follow = !lifecycle_.runs_workers() || !settings_.node.leave_background;
  telemetry_.signalled_alone(signal, workers_.signal_groups(signal, whom));
}

void WorkerSignals::plan_shared() {
  const auto due_ms = shared_.due_ms();
  if (!due_ms) return timer_.stop();
  timer_.start(std::max<std::int64_t>(*due_ms - loop_.now_ms(), 0), [this] {
    for (const int signal : shared_.take_due(loop_.now_ms())) signal_now(signal, {});
    plan_shared();
  });
}

}  // namespace elastic::run
