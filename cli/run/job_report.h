#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/run/output_host.h"
#include "rendezvous/protocol/messages.h"
#include "src/net/side_thread.h"
#include "src/output/log_files.h"
#include "src/process/evidence.h"
#include "src/report/failure.h"

namespace elastic::run {

// What a failure report has to know of the launch.
struct ReportSettings {
  std::string run_id;
  std::string title;                   // what torchrun's failure summary calls the job: the script as typed
  std::string executable;              // the file that every worker executes
  std::vector<std::string> arguments;  // a worker's argv
  int local_world_size = 1;
  int max_restarts = 0;
  bool alone = true;  // a job of one node
};

// The files beside the run's directory that are told why the job failed; an empty path: no such file.
struct ReportFiles {
  std::string parent_error_file;  // gets the first failure's error file, or why there is none
  std::string termination_log;    // gets report::short_report(), if the file is there
};

// Owns what is known about workers that failed on this node. It is gathered while the job runs; the report, the details
// for other nodes, and the crash by which a crash loop is recognised are made of it. The side thread reads and writes
// the files.
class JobReporter {
 public:
  // `files` is the thread for all that touches the logs; it and `output` outlive the reporter. `logs` may be null: then
  // nothing is kept.
  JobReporter(ReportSettings settings, net::SideThread& files, std::shared_ptr<output::RunDirectory> logs,
              const OutputHost& output);

  // The workers of a round run.
  void round_began(const protocol::PrepareRound& round);
  void workers_started(WorkerStart start);
  // The last hang that this node was told of, as it stands now (HangReporter::last()).
  void hang_is(std::optional<report::Hang> hang) { hang_ = std::move(hang); }
  // The worker with that pid, or a process that it has started, was signalled because a timer of it had expired.
  void timer_expired(std::int64_t worker, report::ExpiredTimer timer);
  // The round is over, with these failures.
  void round_ended(const std::vector<protocol::WorkerFailure>& failures);

  // Why a worker of this node has failed first.
  struct FirstFailure {
    std::optional<protocol::Crash> crash = {};  // another attempt may repeat it
    std::string memory = {};                    // the rule by which it was for lack of memory; empty: it was not
  };
  // Calls `found` with the first failure of a round on this node: at once where nothing is kept, otherwise from the
  // loop. `looks_for_memory`: whether that is looked for.
  void find_first_failure(const std::vector<protocol::WorkerFailure>& failures, bool looks_for_memory,
                          std::function<void(FirstFailure)> found);
  // Calls `gathered`, in the same way, with the details of the job result's first failure for the other nodes
  // (report::details_of).
  void gather_details(const protocol::JobResult& job_result, std::function<void(std::string)> gathered);

  struct Finished {
    report::JobReport report;
    std::vector<std::string> error_files;  // the contents of this node's workers' error files, by local rank
  };
  // Makes the whole report, once the job is over, and writes failure.json into the run's directory, and `files`. Waits
  // for the side thread as long as it makes progress: if the log directory hangs, the report lacks what the workers'
  // files contain. A file that cannot be written is a warning. `details`: another node's, of the first failure.
  Finished finish(const protocol::JobResult& job_result, std::string_view details, const ReportFiles& files);

 private:
  bool is_ours(const protocol::WorkerFailure& failure) const;
  report::FailedWorker failed_worker(const protocol::WorkerFailure& failure) const;
  std::optional<report::ExpiredTimer> timer_of(const protocol::WorkerFailure& failure) const;
  std::vector<report::FailedWorker> failed_workers(const std::vector<protocol::WorkerFailure>& failures,
                                                   const std::vector<WorkerStderr>& stderrs) const;
  void look_for_evidence();
  void add_evidence(report::FailedWorker& worker, bool is_first) const;
  // The report but for its failures.
  report::JobReport make(const protocol::JobResult& job_result);
  struct RoundOutput;
  RoundOutput round_output() const;
  // Reads these workers' files and applies `make`, both on the side thread where there are logs, and then calls `done`.
  template <typename Made>
  void read_and_make(const std::vector<protocol::WorkerFailure>& failures,
                     std::function<Made(const std::vector<report::FailedWorker>&)> make,
                     std::function<void(Made)> done) const;

  ReportSettings settings_;
  net::SideThread& files_;
  std::shared_ptr<output::RunDirectory> logs_;
  const OutputHost& output_;
  std::string host_;
  int node_rank_ = -1;                       // in the last round; -1: there was none
  std::vector<report::RoundReport> rounds_;  // the last ones
  std::optional<report::Hang> hang_;
  std::optional<process::OomCounter> oom_counter_;
  std::optional<process::KernelLog> kernel_log_;
  // Of the last round's workers, by their pids.
  struct TimerSignal {
    report::ExpiredTimer timer;
    std::int64_t wall_ms = 0;  // when it was sent
  };
  std::map<std::int64_t, TimerSignal> timers_;
  // What the workers of the last round may have died of.
  std::vector<process::KernelEvent> events_;
  process::OomCounter::Kills kills_;
};

// Writes to that file, of the process that started this elastic-run, why its job has failed
// (report::error_file_of_launcher) or was refused. Without effect for an empty path. Returns what went wrong, for a
// warning; empty if nothing did.
std::string tell_parent(const std::string& parent_error_file, const std::string& message);

}  // namespace elastic::run
