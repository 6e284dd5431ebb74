#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/agent/lifecycle_events.h"
#include "src/base/waiting.h"

namespace elastic::agent {

// The signals that tell this node to end, and what each of them means. Signals from workers count, too, but only a
// sender outside the job can insist by a second signal, since each rank may send one at its own time. An operator's
// order to leave counts as a SIGTERM whose sender sets no time. Times are milliseconds of the clock of
// Lifecycle::on_event.
class LeaveSignals {
 public:
  enum class Meaning {
    kLeave,    // the first one: the node is to end
    kInsists,  // the sender of an earlier one does not want to wait for the workers any longer
    kMore,     // another one with the same wish
  };

  // `shared`: the sender that signals elastic-run signals its workers, too, and means nothing by a second SIGTERM.
  // `interrupt_is_forwarded`: SIGINT goes to the workers instead of coming here.
  LeaveSignals(bool shared, bool interrupt_is_forwarded)
      : shared_(shared), interrupt_is_forwarded_(interrupt_is_forwarded) {}

  Meaning on_signal(const SignalReceived& event, std::int64_t now_ms);
  // An operator, or the scheduler, orders this node to leave. False: it has been told to end already.
  bool take_order(bool by_scheduler = false);
  // Called for each signal that does not kill the workers at once. True: it is the first SIGTERM from outside, which
  // begins the time that its sender allows the workers.
  bool is_first_termination(const SignalReceived& event);

  // A signal to end has come.
  bool has_come() const { return signal_ != 0; }
  // The first signal to end; 0: there was none.
  int signal() const { return signal_; }
  // What the coordinator is told of it.
  protocol::NodeLeaves message() const { return {signal_, by_ != By::kSignal, by_ == By::kScheduler}; }
  // What told the node to end: "SIGTERM", "an operator's order".
  std::string name() const;
  // Why the node ends, as a clause: "stopped by SIGTERM".
  std::string reason() const;
  // SIGTERM has come from outside.
  bool terminated() const { return terminated_; }
  // Adds to a wait for the workers' end whether the user has asked for it, and how to hurry it.
  void explain(Waiting& waiting) const;

  // Called after each event.
  void check_invariants() const;

 private:
  friend struct LifecycleBreaker;  // a test's

  bool shared_;
  bool interrupt_is_forwarded_;
  // Who has told the node to end. signal_ stands for an order, too.
  enum class By : std::uint8_t { kSignal, kOperator, kScheduler };
  By by_ = By::kSignal;
  bool terminated_ = false;
  int signal_ = 0;
  std::optional<std::int64_t> asked_ms_;  // when the first one that no worker had sent came
};

}  // namespace elastic::agent
