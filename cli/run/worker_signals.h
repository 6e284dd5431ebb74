#pragma once

#include <sys/types.h>

#include <functional>
#include <utility>

#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/agent/shared_signals.h"
#include "src/net/loop.h"
#include "src/process/signal_source.h"
#include "src/process/tree.h"

namespace elastic::agent {
class Lifecycle;
}

namespace elastic::run {

class NodeTelemetry;
struct LaunchSettings;

// The signals between this process and its workers: those that the agent wants them to get, and those that they send
// to it, as they would to torchrun.
class WorkerSignals {
 public:
  // A signal to elastic-run; `worker` is the sender, if that is a worker or what one has started, else 0.
  using OnSignal = std::function<void(int signal, pid_t worker)>;
  // All but `on_signal` outlive it.
  WorkerSignals(net::Loop& loop, const LaunchSettings& settings, process::WorkerTree& workers,
                const agent::Lifecycle& lifecycle, const NodeTelemetry& telemetry, OnSignal on_signal);

  // New workers run, which no signal has reached.
  void workers_began() { shared_.workers_began(); }
  void perform(const agent::SignalWorkers& order);
  // Reports the signals that have arrived by now: a worker may have sent one before it ended.
  void read_all() { own_.read_all(); }

  // A signal has come to the outer process.
  void received(int signal) { pass_on(signal, 0); }
  // From now on `call` is called, and not `on_signal`, at a signal that ends the job, and when
  // the outer process has died (tell_end()); empty: no more.
  void on_end(std::function<void(int signal)> call) { on_end_ = std::move(call); }
  // Makes that call, with a signal, or with 0 when the outer process has died. False: there is none to be made.
  bool tell_end(int signal) const;

 private:
  // It is one of the signals that end the job (--signals-to-handle), and not one that is forwarded.
  bool ends_job(int signal) const;
  void pass_on(int signal, pid_t worker);
  void launcher_got(const process::ReceivedSignal& signal);
  void signal_now(int signal, process::WorkerTree::Whom whom);
  void plan_shared();

  net::Loop& loop_;
  const LaunchSettings& settings_;
  process::WorkerTree& workers_;
  const agent::Lifecycle& lifecycle_;
  const NodeTelemetry& telemetry_;
  OnSignal on_signal_;
  std::function<void(int)> on_end_;
  agent::SharedSignals shared_;
  net::Timer timer_;
  process::SignalSource own_;  // signals to this process itself
};

}  // namespace elastic::run
