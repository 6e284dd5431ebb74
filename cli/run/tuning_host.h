#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/launch_settings.h"
#include "health/tuning/loader_tuner.h"
#include "src/base/environment.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"

namespace elastic::run {

// Gives the workers DLRover's file of parameters, from which its ElasticDataLoader reads, and carries out what
// tuning::LoaderTuner decides about what stands in it (docs/auto-tunning.md).
class TuningHost {
 public:
  // `settings` outlive it. `directory`: of this launch, or empty. `last_step`: of the workers; nothing: none was seen
  // yet.
  TuningHost(net::Loop& loop, const TuningSettings& settings, const std::string& directory,
             std::function<std::optional<tuning::StepSeen>()> last_step);

  // The variable by which workers find the file; nothing where there is none.
  std::vector<Variable> variables() const;
  // The workers of a new round are about to be started. `may_restart`: another round would follow if one of them fails.
  void begin_round(bool may_restart);
  // The workers have ended. True: it is to be told, by explain_end(), why.
  bool end_round();
  // The same round has ended because a rank has failed, or not; `memory`: the rule by which that was for lack of
  // memory, or empty. Nothing happens if the next round has begun already.
  void explain_end(bool rank_failed, std::string_view memory);

  // A thread waits for the file, and keeps this process from ending.
  bool hangs() { return !thread_.wait(kLookEndsMs); }

 private:
  static constexpr std::int64_t kLookMs = 1000;
  static constexpr std::int64_t kLookEndsMs = 300;
  struct Look;

  void plan_look(std::int64_t after_ms);
  void look();
  void take(const Look& look);
  void perform(const tuning::LoaderTuner::Effects& effects);
  void stop(const std::string& why);

  net::Loop& loop_;
  const TuningSettings& settings_;
  std::function<std::optional<tuning::StepSeen>()> last_step_;
  std::string path_;  // empty: there is no file
  tuning::LoaderTuner tuner_;
  bool is_stopped_ = false;  // nothing is changed any more
  bool is_running_ = false;
  bool is_looking_ = false;
  bool is_explained_ = true;  // why the last round has ended
  int rounds_ = 0;
  std::string text_;                    // of the file, when it could be read last
  std::optional<std::string> unsaved_;  // what the file is to be
  net::SideThread thread_;
  net::ReadWatch done_watch_;
  net::Timer timer_;
};

}  // namespace elastic::run
