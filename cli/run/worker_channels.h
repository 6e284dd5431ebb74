#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/hang_host.h"
#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/environment.h"
#include "src/net/loop.h"

namespace elastic::net {
class SideThread;
}
namespace elastic::process {
class WorkerTree;
}
namespace elastic::status {
struct Node;
}
namespace elastic::store {
class StoreHost;
}

namespace elastic::run {

class ErrorFileWatch;
class FileTimers;
class JobReporter;
class NodeStacks;
class OutputHost;
class ProgressHost;
class TuningHost;
struct LaunchSettings;

// What this process learns of its workers and tells them while a round runs, other than their output and their end:
// progress, the data loader's parameters, expired timers, error files, stacks, and evidence of a hang.
class WorkerChannels {
 public:
  // All but `directory` (process::make_job_directory, or empty) and `on_event`, which is for the agent, outlive it.
  WorkerChannels(net::Loop& loop, net::SideThread& files, const LaunchSettings& settings, const std::string& directory,
                 process::WorkerTree& workers, store::StoreHost& store, const OutputHost& output, JobReporter& reporter,
                 std::function<void(agent::Event)> on_event);
  ~WorkerChannels();

  // The variables by which a worker finds them, but for hang_variables().
  std::vector<Variable> variables(int local_rank) const;
  // The same over all rounds of the job, which warm workers need.
  const std::vector<Variable>& hang_variables();

  // TuningHost::lead_round().
  void lead_round(const protocol::PrepareRound& round);
  // The workers of this round are about to be started.
  void begin_round(const protocol::PrepareRound& round);
  void started(int local_rank, pid_t pid);
  void wrote(int local_rank, bool is_err, std::string_view bytes);
  void ended(int local_rank) { hang_.ended(local_rank); }
  // The workers are being stopped: no timer counts any more.
  void stop_timers();
  // TuningHost::rank_failed().
  void rank_failed(protocol::RoundNumber round, std::string_view memory);
  // No worker is left, or none that the node waits for. `has_failed`: one of them by itself.
  void end_round(bool has_failed);
  // There will be no other round.
  void finish();

  void perform(const agent::HearLoader& effect);
  void perform(const agent::ReadEvidence& effect) { hang_.perform(effect); }
  void perform(const agent::StopEvidence& effect) { hang_.perform(effect); }
  void perform(const agent::AwaitDumps& effect) { hang_.perform(effect); }
  void perform(const agent::TellHang& effect) { hang_.perform(effect); }
  void perform(const agent::TellHangOver& effect) { hang_.perform(effect); }
  // `node`: its status now.
  void perform(const agent::CollectStacks& effect, const status::Node& node);

  // Adds the progress of the workers to the node's status.
  void fill_status(status::Node& node) const;
  // A thread waits for an output file of a worker, or for that of its loader's parameters.
  bool files_hang();

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
  std::unique_ptr<ProgressHost> progress_;
  std::unique_ptr<TuningHost> tuning_;
  std::unique_ptr<NodeStacks> stacks_;
  std::unique_ptr<FileTimers> file_timers_;
  HangHost hang_;
  std::unique_ptr<ErrorFileWatch> error_files_;  // null where they stop no rounds
};

}  // namespace elastic::run
