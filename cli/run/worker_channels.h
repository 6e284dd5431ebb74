#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/error_file_watch.h"
#include "cli/run/file_timers.h"
#include "cli/run/hang_host.h"
#include "cli/run/job_report.h"
#include "cli/run/launch_settings.h"
#include "cli/run/node_stacks.h"
#include "cli/run/output_host.h"
#include "cli/run/progress_host.h"
#include "cli/run/tuning_host.h"
#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/store/store_host.h"
#include "src/base/environment.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"
#include "src/process/tree.h"
#include "src/status/snapshot.h"

namespace elastic::run {

// What this process learns of its workers and tells them while a round runs, other than their output and their end:
// progress, the data loader's parameters, expired timers, error files, stacks, and evidence of a hang.
class WorkerChannels {
 public:
  // All but `directory` (process::make_job_directory, or empty) and `on_event`, which is for the agent, outlive it.
  WorkerChannels(net::Loop& loop, net::SideThread& files, const LaunchSettings& settings, const std::string& directory,
                 process::WorkerTree& workers, store::StoreHost& store, const OutputHost& output, JobReporter& reporter,
                 std::function<void(agent::Event)> on_event);

  // The variables by which a worker finds them, but for hang_variables().
  std::vector<Variable> variables(int local_rank) const;
  // The same over all rounds of the job, which warm workers need.
  const std::vector<Variable>& hang_variables();

  // TuningHost::lead_round().
  void lead_round(const protocol::PrepareRound& round) { tuning_.lead_round(round); }
  // The workers of this round are about to be started.
  void begin_round(const protocol::PrepareRound& round);
  void started(int local_rank, pid_t pid);
  void wrote(int local_rank, bool is_err, std::string_view bytes) { progress_.wrote(local_rank, is_err, bytes); }
  void ended(int local_rank) { hang_.ended(local_rank); }
  // The workers are being stopped: no timer counts any more.
  void stop_timers() { file_timers_.end_round(); }
  // TuningHost::rank_failed().
  void rank_failed(protocol::RoundNumber round, std::string_view memory) { tuning_.rank_failed(round, memory); }
  // No worker is left, or none that the node waits for. `has_failed`: one of them by itself.
  void end_round(bool has_failed);
  // There will be no other round.
  void finish() { tuning_.finish(); }

  void perform(const agent::HearLoader& effect) { tuning_.perform(effect); }
  void perform(const agent::ReadEvidence& effect) { hang_.perform(effect); }
  void perform(const agent::StopEvidence& effect) { hang_.perform(effect); }
  void perform(const agent::AwaitDumps& effect) { hang_.perform(effect); }
  void perform(const agent::TellHang& effect) { hang_.perform(effect); }
  void perform(const agent::TellHangOver& effect) { hang_.perform(effect); }
  // `node`: its status now.
  void perform(const agent::CollectStacks& effect, const status::Node& node) {
    stacks_.collect(effect.collection, node);
  }

  // Adds the progress of the workers to the node's status.
  void fill_status(status::Node& node) const { progress_.fill_status(node); }
  // A thread waits for an output file of a worker, or for that of its loader's parameters.
  bool files_hang() { return progress_.hangs() || tuning_.hangs(); }

 private:
  HangHost::Handlers hang_handlers(process::WorkerTree& workers, store::StoreHost& store);
  // Where files about a hang of this round belong; empty: nowhere.
  std::string hang_directory() const;
  void watch_error_files(protocol::RoundNumber round);

  const LaunchSettings& settings_;
  const OutputHost& output_;
  JobReporter& reporter_;
  std::function<void(agent::Event)> on_event_;
  std::optional<std::vector<Variable>> hang_variables_;  // once they are known
  ProgressHost progress_;
  TuningHost tuning_;
  NodeStacks stacks_;
  FileTimers file_timers_;
  HangHost hang_;
  std::optional<ErrorFileWatch> error_files_;  // where they stop rounds
};

}  // namespace elastic::run
