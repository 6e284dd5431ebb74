#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/agent/agent.h"
#include "rendezvous/events/node_event_log.h"
#include "rendezvous/events/torch_events.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/waiting.h"
#include "src/net/loop.h"
#include "src/status/snapshot.h"

namespace elastic::run {

struct LaunchSettings;

// Tells those who watch what happens on this node: writes the event log, prints torchelastic's events if they are
// wanted, and counts workers for the status.
class NodeTelemetry {
 public:
  // `loop` outlives it.
  NodeTelemetry(net::Loop& loop, const LaunchSettings& settings);

  void began() const;
  // The agent is about to handle this event, or has just had this effect.
  void on_event(const agent::Event& event);
  void on_effect(const agent::Effect& effect);
  // The agent has handled this event.
  void count(const agent::AgentEvent& event, const agent::Lifecycle& lifecycle);
  // The link to the coordinator has logged this.
  void log_link(const std::string& text);
  // How the link is, after each event.
  void tell_link(const agent::Agent& agent);
  // What the node waits for, after each event.
  void waits_for(const std::optional<Waiting>& waits);
  // events::NodeEventLog::signalled_alone().
  void signalled_alone(int signal, const std::vector<int>& local_ranks) const;
  // Prints torchelastic's last events. `error_files` are the texts of the error files of this node's workers, by local
  // rank.
  void ended(const protocol::JobResult& job_result, const std::vector<std::string>& error_files) const;
  // The counts of workers.
  void fill_status(status::Node& node) const;

 private:
  net::Loop& loop_;
  events::NodeEventLog event_log_;
  std::optional<events::TorchEvents> torch_events_;  // if --event-log-handler=console wants them
  std::string link_problem_;                         // the last one that the link has logged
  std::int64_t workers_started_ = 0;
  std::int64_t workers_failed_ = 0;  // not counting those that were stopped
  std::int64_t warm_started_ = 0;    // of workers_started_
  std::int64_t spared_cpu_ms_ = 0;   // by the warm ones
};

}  // namespace elastic::run
