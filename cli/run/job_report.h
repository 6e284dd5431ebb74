#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/launch_settings.h"
#include "rendezvous/protocol/messages.h"
#include "src/net/side_thread.h"
#include "src/output/lines/tail.h"
#include "src/output/log_files.h"
#include "src/process/evidence.h"
#include "src/report/failure.h"

namespace elastic::run {

// What is known of one worker's stderr when the job has ended.
struct StderrOfWorker {
  output::TailText kept;
  std::string file;          // its log file, where the launcher has not seen the stream
  std::string none_because;  // why neither is there
};

// Gathers what a failure report is made of while the job runs, and writes it down at the end.
class JobReporter {
 public:
  explicit JobReporter(const LaunchSettings& settings);

  // A round's workers run.
  void round_began(const protocol::PrepareRound& round);
  // It is over, with these failures.
  void round_ended(const std::vector<protocol::WorkerFailure>& failures);

  // The report, but for what stands in files of this node's workers. `stderrs` by local rank; `details`: what another
  // node has told of the first failure (report::details_of).
  report::JobReport make(const protocol::Verdict& verdict, const std::vector<StderrOfWorker>& stderrs,
                         std::string_view details);
  // Of the same the first failure alone.
  report::FailedWorker first_failure(const protocol::Verdict& verdict, const std::vector<StderrOfWorker>& stderrs);
  // Of a round of this node that may be followed by others, without what the kernel knows.
  std::vector<report::FailedWorker> failed_workers(const std::vector<protocol::WorkerFailure>& failures,
                                                   const std::vector<StderrOfWorker>& stderrs) const;

 private:
  bool is_ours(const protocol::WorkerFailure& failure) const;
  report::FailedWorker failed_worker(const protocol::WorkerFailure& failure) const;
  void look_for_evidence();
  void add_evidence(report::FailedWorker& worker, bool is_first) const;
  report::FailedWorker whole(const protocol::WorkerFailure& failure, const std::vector<StderrOfWorker>& stderrs,
                             bool is_first) const;

  const LaunchSettings& settings_;
  std::string host_;
  int node_rank_ = -1;                       // of the last round
  std::vector<report::RoundReport> rounds_;  // the last ones
  std::optional<process::OomCounter> oom_counter_;
  std::optional<process::KernelLog> kernel_log_;
  // What the last round's workers may have died of.
  std::vector<process::KernelEvent> events_;
  process::OomCounter::Kills kills_;
};

// Reads what a worker of this node has left in files. Touches files only: for the side thread. Returns what stood in
// its error file.
std::string read_files(report::FailedWorker& worker, const std::vector<StderrOfWorker>& stderrs,
                       const output::RunDirectory* logs, const output::Attempt& attempt);

// What the first failure of these workers of one node was, if it may come again. Touches files, as read_files().
std::optional<protocol::Crash> read_crash(std::vector<report::FailedWorker> workers,
                                          const std::vector<StderrOfWorker>& stderrs, const output::RunDirectory* logs,
                                          const output::Attempt& attempt);

// Where it is written down why the job failed, beside the run's directory; empty: nowhere.
struct ReportFiles {
  std::string parent_error_file;  // the first failure's error file, or why there was none
  std::string termination_log;    // report::short_report(), if the file is there
};

// Reads what workers have left in files, writes failure.json into the run's directory, and `files`. Touches files only:
// for the side thread. Also into `error_files`, by local rank, where it is not null: what stood in the error files of
// this node's workers. Returns what went wrong, for a warning; empty if nothing did.
std::string complete_with_files(report::JobReport& report, const std::vector<StderrOfWorker>& stderrs,
                                const output::RunDirectory* logs, const output::Attempt& attempt,
                                const ReportFiles& files, std::vector<std::string>* error_files = nullptr);

// Writes to that file, of who started this elastic-run, why its job has failed (report::error_file_of_launcher) or was
// refused. Without effect for an empty path. Returns what went wrong, for a warning; empty if nothing did.
std::string tell_parent(const std::string& parent_error_file, const std::string& message);

}  // namespace elastic::run
