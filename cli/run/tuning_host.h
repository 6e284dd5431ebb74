#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/launch_settings.h"
#include "health/tuning/node_tuner.h"
#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/environment.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"

namespace elastic::run {

// Gives the workers DLRover's file of parameters, from which its ElasticDataLoader reads, and carries out what
// tuning::NodeTuner decides about what stands in it (docs/auto-tunning.md).
class TuningHost {
 public:
  struct Handlers {
    // The last step of the workers; not set: none was seen yet.
    std::function<std::optional<tuning::StepSeen>()> last_step;
    // For the other nodes of the round.
    std::function<void(protocol::LoaderSays)> say;
  };
  // `settings` outlive it. `directory`: of this launch, or empty.
  TuningHost(net::Loop& loop, const TuningSettings& settings, const std::string& directory, Handlers handlers);

  // The variable by which workers find the file; empty where there is none.
  std::vector<Variable> variables() const;
  // A round forms in which this node is the one of group rank 0. What is said here reaches the other nodes before their
  // workers start.
  void lead_round(const protocol::PrepareRound& round);
  // The workers of a new round are about to be started.
  void begin_round(const protocol::PrepareRound& round);
  // A rank has failed by itself; `memory`: the rule by which that was for lack of memory, or empty. To be called before
  // the coordinator hears that the node has stopped.
  void rank_failed(protocol::RoundNumber round, std::string_view memory);
  // The workers have ended. `rank_failed`: one of them by itself.
  void end_round(bool rank_failed);
  // There will be no other round.
  void finish();
  // Another node of the round has said something.
  void perform(const agent::HearLoader& effect);

  // A thread waits for the file, and keeps this process from ending.
  bool hangs() { return !thread_.wait(kLookEndsMs); }

 private:
  static constexpr std::int64_t kLookMs = 1000;
  static constexpr std::int64_t kLookEndsMs = 300;
  struct Look;

  void plan_look(std::int64_t after_ms);
  void look_at_file();
  void use_look(const Look& look);
  void perform(const tuning::NodeTuner::Effects& effects);
  void stop(const std::string& why);

  net::Loop& loop_;
  const TuningSettings& settings_;
  Handlers handlers_;
  std::string path_;  // empty: there is no file
  tuning::NodeTuner tuner_;
  bool is_stopped_ = false;  // nothing is changed any more
  bool is_running_ = false;
  bool is_looking_ = false;
  protocol::RoundNumber round_ = 0;
  int rounds_ = 0;
  std::string text_;                    // of the file, when it could be read last
  std::optional<std::string> unsaved_;  // what the file is to be
  net::SideThread thread_;
  net::ReadWatch done_watch_;
  net::Timer timer_;
};

}  // namespace elastic::run
