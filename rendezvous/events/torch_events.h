#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/json.h"

namespace elastic::events {

// Torchelastic's own events of this node, as torchrun --event-log-handler=console prints them: names, fields, order and
// form are PyTorch's (torch/distributed/elastic/events, agent/server/api.py). docs/observing.md says what differs.
class TorchEvents {
 public:
  struct Settings {
    std::string run_id;
    std::string role;
    std::string host;         // as Python's socket.getfqdn() has it
    std::string backend;      // "c10d", "static"
    std::string entry_point;  // the program's name without its directory
    int local_world_size = 1;
  };
  // The launch begins at this time of a monotonic clock, in milliseconds.
  TorchEvents(Settings settings, double now_ms)
      : settings_(std::move(settings)), began_ms_(now_ms), waits_since_ms_(now_ms) {}

  // Called like NodeEventLog. Return what is to be printed: whole lines, each with its newline.
  std::string on_event(const agent::Event& event, double now_ms);
  std::string on_effect(const agent::Effect& effect, double now_ms);
  // The job has ended. `error_files` are the texts of the error files of this node's workers, by local rank, empty
  // where there is none; the vector may be shorter.
  std::string ended(const protocol::JobResult& job_result, const std::vector<std::string>& error_files) const;

 private:
  struct Worker {
    std::int64_t pid = 0;
    std::optional<ExitStatus> exit = {};
    bool failed() const { return exit && !exit->success(); }
  };

  std::string agent_event(const char* state, std::optional<double> duration_ms,
                          const std::string& raw_error = {}) const;
  std::string worker_event(const char* state, int local_rank, const Json& raw_error) const;
  std::string line(const char* state, const Worker* worker, int local_rank, const Json& raw_error,
                   Json duration_ms) const;

  Settings settings_;
  double began_ms_;
  double waits_since_ms_;  // when the wait for the next round began
  double prepared_ms_ = 0;
  protocol::PrepareRound round_;  // the last one that was prepared
  Json group_rank_;               // in the last round whose workers were started; null before the first
  Json group_size_;
  int restart_count_ = 0;
  std::int64_t ran_s_ = 0;       // 0 before the end
  std::vector<Worker> workers_;  // those that were started, by local rank
  bool all_started_ = false;
};

}  // namespace elastic::events
