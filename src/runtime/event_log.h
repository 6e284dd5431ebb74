#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "src/agent/lifecycle.h"
#include "src/runtime/launch_settings.h"

namespace elastic::runtime {

// Writes what a launch does to the launcher's log, one line an event: what users follow a job by as info, the rest
// as debug. What is worth a warning says the life cycle itself.
class EventLog {
 public:
  // Settings outlive it.
  explicit EventLog(const LaunchSettings& settings) : settings_(settings) {}

  // The launch begins.
  void began() const;
  // The life cycle is about to take this event, at this time of the loop.
  void happened(const agent::Event& event, std::int64_t now_ms);
  // This effect of it is about to be carried out.
  void decided(const agent::Effect& effect);

 private:
  void take(const agent::FromCoordinator& event);
  void take(const agent::StoreOpened& event);
  void take(const agent::LogsOpened& event);
  void take(const agent::WorkerStarted& event);
  void take(const agent::WorkerExited& event);
  void take(const agent::SignalReceived& event);
  template <class Other>
  void take(const Other&) {}

  void prepared(const protocol::PrepareRound& round);
  void started();
  void stop_ordered();
  void ended(const protocol::Verdict& verdict) const;

  const LaunchSettings& settings_;
  std::int64_t now_ms_ = 0;
  protocol::PrepareRound round_;
  std::vector<std::int64_t> pids_;  // of the round's workers that have started, by local rank
  std::string why_;          // why a stop is ordered, if the event that is being taken orders one
  int sent_signal_ = 0;      // to the workers, last
  bool stopping_ = false;
  std::int64_t stopped_at_ms_ = 0;  // when the stop was ordered
};

}  // namespace elastic::runtime
