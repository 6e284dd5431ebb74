#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/nvrx_sockets.h"
#include "cli/run/progress_pipes.h"
#include "cli/run/progress_settings.h"
#include "health/progress/node_progress.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/environment.h"
#include "src/net/loop.h"
#include "src/output/file_tails.h"
#include "src/status/snapshot.h"

namespace elastic::run {

// Watches how far the workers of this node are, by all that they write.
class ProgressHost {
 public:
  // `settings` outlive it. `directory`: of this launch (process::make_job_directory); empty: there is none.
  // `on_report`: the coordinator is to be told.
  ProgressHost(net::Loop& loop, const ProgressSettings& settings, std::string directory, int workers,
               std::function<void(const protocol::NodeProgress&)> on_report);

  // The workers of a new round are about to be started.
  void begin_round(protocol::RoundNumber round, int base_rank);
  // A worker's variables; the same names for all.
  std::vector<Variable> variables(int local_rank) const;
  void started(int local_rank, pid_t pid);
  // A worker has written these bytes to a stream that passes through us.
  void wrote(int local_rank, bool is_err, std::string_view bytes);
  void end_round();
  // Tells the coordinator what it does not know yet, at once.
  void report_news();
  // How far a worker is; not set: no progress was seen yet.
  std::optional<progress::Progress> of_worker(int local_rank) const;

  // The last step of one rank, by which the job's speed is measured; not set: none was seen yet.
  std::optional<progress::NodeProgress::Step> last_step() const;

  // Of this launch; empty: there is none.
  const std::string& directory() const { return directory_; }
  // Adds what is known to this node's status.
  void fill_status(status::Node& node) const;
  // A thread waits for a file, and keeps this process from ending.
  bool hangs() { return tails_.hangs(); }

 private:
  void open(const std::string& directory);
  void read_pieces(const std::vector<output::FileTails::Piece>& pieces);
  void heard(int local_rank, const progress::NvrxWord& word);
  void plan_report();
  void report();
  protocol::ProgressOfRank of_rank(const progress::NodeProgress::Speaker& speaker) const;
  std::optional<int> rank_of(const progress::NodeProgress::Speaker& speaker) const;
  bool reads_metrics_files() const;
  std::string metrics_file(int local_rank) const;

  net::Loop& loop_;
  const ProgressSettings& settings_;
  std::string directory_;
  int workers_;
  std::function<void(const protocol::NodeProgress&)> on_report_;
  progress::NodeProgress node_;
  protocol::RoundNumber round_ = 0;
  int base_rank_ = 0;
  bool is_running_ = false;
  ProgressPipes pipes_;
  NvrxSockets nvrx_;
  output::FileTails tails_;
  net::Timer timer_;
  bool timer_runs_ = false;
};

}  // namespace elastic::run
