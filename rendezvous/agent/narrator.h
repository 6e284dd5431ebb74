#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/agent/lifecycle.h"
#include "rendezvous/agent/log_event.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/waiting.h"

namespace elastic::agent {

// Tells what a launch does on this node, in the order in which it happens: what users follow a job by as info, the rest
// as debug; what is worth a warning says the life cycle itself.
class Narrator {
 public:
  struct Settings {
    std::string run_id;
    std::string title;     // of the job, for people
    std::string endpoint;  // of its coordinator, for people; empty for a job of one node
    int local_world_size = 1;
    int max_restarts = 0;
    bool logs = false;  // there is a log directory
  };
  explicit Narrator(Settings settings) : settings_(std::move(settings)) {}

  // The launch begins.
  LogEvent began() const;
  // The life cycle is about to take this event, at this time of a monotonic clock.
  Happenings happened(const Event& event, std::int64_t now_ms);
  // This effect of it is about to be carried out.
  Happenings decided(const Effect& effect, std::int64_t now_ms);
  // What this node waits for by now, if for anything: told where it begins to wait for others, and where that ends.
  Happenings waits_for(const std::optional<Waiting>& waiting, std::int64_t now_ms);
  // The coordinator can be reached, or not, why not, and whether training depends on that. Told where it changes.
  Happenings coordinator_is(bool reached, bool matters, const std::string& problem);

 private:
  struct Worker {
    std::int64_t pid = 0;
    std::int64_t started_ms = 0;
  };

  void take(const FromCoordinator& event, Happenings& out);
  void take(const StoreOpened& event, Happenings& out);
  void take(const LogsOpened& event, Happenings& out);
  void take(const WorkerStarted& event, Happenings& out);
  void take(const WorkerNotStarted& event, Happenings& out);
  void take(const WorkerExited& event, Happenings& out);
  void take(const SignalReceived& event, Happenings& out);
  void take(const NodeChecked& event, Happenings& out);
  template <class Other>
  void take(const Other&, Happenings&) {}

  void carry(const SignalWorkers& effect, Happenings& out);
  void carry(const AwaitAllGone& effect, Happenings& out);
  void carry(const StartWorkers& effect, Happenings& out);
  void carry(const CheckNode& effect, Happenings& out);
  void carry(const LeaveBackground& effect, Happenings& out);
  void carry(const CloseStore& effect, Happenings& out);
  void carry(const Warn& effect, Happenings& out);
  void carry(const Finish& effect, Happenings& out);
  template <class Other>
  void carry(const Other&, Happenings&) {}

  void prepared(const protocol::PrepareRound& round, Happenings& out);
  void started(Happenings& out);
  bool is_alone() const { return settings_.endpoint.empty(); }

  Settings settings_;
  std::int64_t now_ms_ = 0;
  protocol::PrepareRound round_;
  std::vector<Worker> workers_;  // of the round, those that have started, by local rank
  std::string why_the_end_;      // why the job ends, once it does: what is left may be stopped later
  std::string why_;              // why a stop is ordered, if the event that is being taken orders one
  int sent_signal_ = 0;          // to the workers, last
  bool stopping_ = false;
  bool left_background_ = false;
  std::int64_t stopped_at_ms_ = 0;              // when the stop was ordered
  std::string standby_for_;                     // what the node was told to wait for, instead of nodes
  std::optional<std::int64_t> waits_since_ms_;  // for others
  bool reached_ = false;                        // the coordinator, before the last change
  bool loss_told_ = false;
};

}  // namespace elastic::agent
