#include "cli/run/job_report.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include "cli/run/whole_file.h"
#include "cli/run/worker_environment.h"
#include "rendezvous/protocol/limits.h"
#include "src/base/log.h"
#include "src/base/read_file.h"
#include "src/base/text.h"
#include "src/net/local_host.h"
#include "src/output/write_all.h"
#include "src/process/clock.h"
#include "src/report/crash.h"
#include "src/report/error_file.h"
#include "src/report/failure_json.h"
#include "src/report/likely_cause.h"
#include "src/report/merge.h"
#include "src/report/root_cause.h"
#include "src/report/short_report.h"

namespace elastic::run {
namespace {

// How much of a job that restarts for ever is kept: the last rounds, and the first failures of each.
constexpr std::size_t kRounds = 64;
constexpr std::size_t kFailuresOfARound = 4;
// How long the log directory may stand still when the report is written, so that all is over within 2 s.
constexpr std::int64_t kFilesPatienceMs = 1200;
static_assert(kRounds <= report::kJsonRounds && kFailuresOfARound <= report::kJsonFailuresOfARound);

// Returns what went wrong; empty if nothing did.
std::string write_for_parent(const std::string& parent_error_file, const std::string& text) {
  const int error = replace_file(parent_error_file, text);
  if (error == 0) return "";
  return format("cannot write TORCHELASTIC_ERROR_FILE={}: {}", printable(parent_error_file), errno_text(error));
}

void read_tail(report::FailedWorker& worker, const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    worker.tail.none_because = errno_text(errno);
    return;
  }
  const off_t start = std::max<off_t>(0, status.st_size - static_cast<off_t>(report::kTailBytes));
  worker.tail.source = path;
  worker.tail.bytes = read_file(path, report::kTailBytes, start).value_or("");
  if (start > 0) worker.tail.lines_before.reset();
}

// When a regular file was last written, in nanoseconds; 0 for another file, or if that is not known.
std::int64_t written_ns(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

// Reads what a worker of this node has left in files. Returns what stood in its error file.
std::string read_files(report::FailedWorker& worker, const std::vector<WorkerStderr>& stderrs,
                       const output::RunDirectory* logs, const output::Attempt& attempt) {
  const auto index = static_cast<std::size_t>(worker.local_rank);
  if (index < stderrs.size() && !stderrs[index].file.empty()) read_tail(worker, stderrs[index].file);
  if (logs == nullptr) return "";
  const std::string path = logs->rank_file(attempt, worker.local_rank, "error.json");
  auto text = read_file(path, report::kErrorFileBytes + 1);
  if (!text) {
    if (text.error() == ENOENT) return "";
    worker.error_file_problem = errno_text(text.error());
  }
  worker.error_file = path;
  if (!text) return "";
  auto parsed = report::parse_error_file(*text);
  if (parsed) {
    worker.error = std::move(*parsed);
    worker.error_written_ns = written_ns(path);
  } else {
    worker.error_file_problem = parsed.error().reason;
  }
  return std::move(*text);
}

std::optional<protocol::Crash> crash_of(const std::vector<report::FailedWorker>& workers) {
  const auto first = std::ranges::find(workers, false, &report::FailedWorker::stopped_by_us);
  const auto crash = first == workers.end() ? std::nullopt : report::crash_of(*first);
  if (!crash) return {};
  using Kind = protocol::Crash::Kind;
  switch (crash->kind) {
    case report::PythonCrash::Kind::kImport: return protocol::Crash{Kind::kImport, crash->digest()};
    case report::PythonCrash::Kind::kSyntax: return protocol::Crash{Kind::kSyntax, crash->digest()};
    case report::PythonCrash::Kind::kMissingFile: return protocol::Crash{Kind::kMissingFile, crash->digest()};
  }
  return {};
}

// The rule by which the first worker that failed by itself has died for lack of memory; empty: it has not.
std::string death_of_memory(const std::vector<report::FailedWorker>& workers) {
  constexpr std::array<std::string_view, 5> kRules = {"killed-for-memory", "cuda-out-of-memory", "host-memory",
                                                      "shared-memory", "dataloader-worker-killed"};
  const auto first = std::ranges::find(workers, false, &report::FailedWorker::stopped_by_us);
  const auto cause = first == workers.end() ? std::nullopt : report::likely_cause(*first);
  const bool is_of_memory = cause && std::ranges::find(kRules, cause->rule) != kRules.end();
  return is_of_memory ? std::string(cause->rule) : std::string();
}

// Overwrites the file, but does not create it. Returns what went wrong.
std::string write_termination_log(const std::string& path, const report::JobReport& report) {
  if (path.empty()) return "";
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file && errno == ENOENT) return "";
  const int error = file ? output::write_all(file.get(), report::short_report(report)) : errno;
  return error == 0 ? "" : format("cannot write {}: {}", printable(path), errno_text(error));
}

// Writes the first failure's error file (one of `texts`, by local rank), or why there was none, for our own parent.
// Returns what went wrong.
std::string write_parent_error_file(const std::string& path, const report::JobReport& report,
                                    const std::map<int, std::string>& texts) {
  const report::FailedWorker* first = report.first_failure();
  if (first == nullptr) return tell_parent(path, report.reason);
  if (path.empty() || first->node_rank != report.node_rank) return "";
  const auto copy = report::error_file_for_parent(texts.at(first->local_rank), first->exit.python_code());
  return copy ? write_for_parent(path, *copy) : "";
}

std::string write_failure_json(const std::string& directory, const report::JobReport& report) {
  const std::string path = directory + "/failure.json";
  const int error = replace_file(path, report::failure_json(report));
  return error == 0 ? "" : format("cannot write {}: {}", printable(path), errno_text(error));
}

// Returns what went wrong, for a warning; empty if nothing did.
std::string write_report(report::JobReport& report, const std::map<int, std::string>& error_files,
                         const output::RunDirectory* logs, const ReportFiles& files) {
  std::vector<std::string> problems;
  // A job that hung when it was stopped has failed, too.
  const bool hangs = report.hang && report.hang->end == report::HangEnd::kOpen;
  const bool is_stopped = report.outcome == report::JobReport::Outcome::kStopped;
  if (logs != nullptr && (report.outcome == report::JobReport::Outcome::kFailed || (is_stopped && hangs))) {
    report.log_directory = logs->path();
    problems.push_back(write_failure_json(logs->path(), report));
  }
  problems.push_back(write_parent_error_file(files.parent_error_file, report, error_files));
  problems.push_back(write_termination_log(files.termination_log, report));
  std::erase(problems, "");
  return join(problems, "; ");
}

}  // namespace

// What the workers of a round have left in files. The side thread uses it, so it owns all that it touches.
struct JobReporter::RoundOutput {
  std::vector<WorkerStderr> stderrs;           // by local rank
  std::shared_ptr<output::RunDirectory> logs;  // null: nothing is kept
  output::Attempt attempt;
  int node_rank = 0;                            // of this node
  std::map<int, std::string> error_files = {};  // the contents of this node's workers' error files, by local rank

  // Reads the files of this node's workers, and puts the first failure first.
  void read(std::vector<report::FailedWorker>& workers) {
    for (report::FailedWorker& worker : workers) {
      if (worker.node_rank != node_rank) continue;  // its files are on its own node
      error_files[worker.local_rank] = read_files(worker, stderrs, logs.get(), attempt);
    }
    report::put_first_error_first(workers, node_rank);
  }
};

JobReporter::JobReporter(ReportSettings settings, net::SideThread& files, std::shared_ptr<output::RunDirectory> logs,
                         const OutputHost& output)
    : settings_(std::move(settings)),
      files_(files),
      logs_(std::move(logs)),
      output_(output),
      host_(net::full_host_name()) {}

void JobReporter::round_began(const protocol::PrepareRound& round) {
  if (!oom_counter_) {
    oom_counter_.emplace();
    if (auto log = process::KernelLog::open()) kernel_log_ = std::move(*log);
  } else {
    oom_counter_->mark();
  }
  if (kernel_log_) (void)kernel_log_->read_new();
  events_.clear();
  timers_.clear();
  node_rank_ = round.place.node_rank;
  rounds_.push_back({.round = round.round,
                     .restart_count = round.restart_count,
                     .node_rank = round.place.node_rank,
                     .host = host_,
                     .began_ms = process::wall_clock_ms(),
                     .ended_ms = 0,
                     .first_rank = round.place.base_rank,
                     .rank_count = settings_.local_world_size,
                     .start = WorkerStart::kFresh,
                     .reason = round.reason,
                     .failures = {}});
  if (rounds_.size() > kRounds) rounds_.erase(rounds_.begin());
}

void JobReporter::workers_started(WorkerStart start) {
  if (!rounds_.empty()) rounds_.back().start = start;
}

void JobReporter::round_ended(const std::vector<protocol::WorkerFailure>& failures) {
  if (rounds_.empty()) return;
  report::RoundReport& round = rounds_.back();
  round.ended_ms = process::wall_clock_ms();
  // If this is the last round, its failures are reported in full from the job result.
  for (const protocol::WorkerFailure& failure : failures) {
    if (failure.stopped_by_us || round.failures.size() == kFailuresOfARound) continue;
    round.failures.push_back(failed_worker(failure));
  }
}

// Whether the worker ran on this node, in the last round that this node was in.
bool JobReporter::is_ours(const protocol::WorkerFailure& failure) const {
  return settings_.alone || failure.node_rank == node_rank_;
}

report::FailedWorker JobReporter::failed_worker(const protocol::WorkerFailure& failure) const {
  report::FailedWorker worker;
  worker.host = is_ours(failure) || failure.host.empty() ? host_ : failure.host;
  worker.node_rank = failure.node_rank;
  worker.rank = failure.rank;
  worker.local_rank = failure.local_rank;
  worker.pid = failure.pid;
  worker.exit = failure.exit;
  worker.wall_ms = failure.failed_ms();
  worker.stopped_by_us = failure.stopped_by_us;
  worker.start = failure.start;
  worker.timer = timer_of(failure);
  return worker;
}

std::optional<report::ExpiredTimer> JobReporter::timer_of(const protocol::WorkerFailure& failure) const {
  const auto found = timers_.find(failure.pid);
  if (found == timers_.end() || !is_ours(failure) || failure.stopped_by_us) return {};
  const auto& [timer, wall_ms] = found->second;
  if (!report::may_have_ended(timer, failure.pid, failure.exit, failure.failed_ms() - wall_ms)) return {};
  return timer;
}

void JobReporter::timer_expired(std::int64_t worker, report::ExpiredTimer timer) {
  timers_[worker] = {std::move(timer), process::wall_clock_ms()};
}

void JobReporter::look_for_evidence() {
  if (oom_counter_) kills_ = oom_counter_->since_mark();
  if (kernel_log_) std::ranges::move(kernel_log_->read_new(), std::back_inserter(events_));
}

void JobReporter::add_evidence(report::FailedWorker& worker, bool is_first) const {
  for (const process::KernelEvent& event : events_) {
    if (event.kind == process::KernelEvent::Kind::kXid) worker.kernel_log += event.text + "\n";
    if (event.kind == process::KernelEvent::Kind::kOomKill && event.pid == worker.pid) worker.oom_evidence = event.text;
  }
  // The count does not say which process was killed: it is taken to be the first worker that SIGKILL ended by itself.
  const bool may_be_it =
      worker.exit.signal == SIGKILL && !worker.timer && is_first && oom_counter_ && !oom_counter_->is_whole_host();
  if (worker.oom_evidence.empty() && may_be_it && kills_.count > 0) worker.oom_evidence = kills_.evidence;
  if (!worker.exit.core_dumped) return;
  std::error_code error;
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  const process::CrashedProcess crashed{
      .pid = static_cast<pid_t>(worker.pid),
      .signal = worker.exit.signal,
      .name = std::filesystem::path(settings_.executable).filename().string().substr(0, 15),
      .executable = settings_.executable,
      .working_directory = std::filesystem::current_path(error).string(),
      .hostname = net::host_name(),
      .uid = getuid(),
      .gid = getgid(),
      .core_limit_bytes = limit.rlim_cur};
  worker.core_file = process::core_place(crashed).text(crashed.pid);
}

std::vector<report::FailedWorker> JobReporter::failed_workers(const std::vector<protocol::WorkerFailure>& failures,
                                                              const std::vector<WorkerStderr>& stderrs) const {
  std::vector<report::FailedWorker> workers;
  bool is_first = true;
  for (const protocol::WorkerFailure& failure : failures) {
    report::FailedWorker& worker = workers.emplace_back(failed_worker(failure));
    const auto index = static_cast<std::size_t>(failure.local_rank);
    if (!is_ours(failure)) {
      worker.tail.none_because = "it ran on another node";
    } else if (index < stderrs.size()) {
      worker.tail.bytes = stderrs[index].kept.bytes;
      worker.tail.lines_before = stderrs[index].kept.lines_before;
      worker.tail.none_because = stderrs[index].none_because;
    }
    if (failure.stopped_by_us || !is_ours(failure)) continue;
    add_evidence(worker, std::exchange(is_first, false));
  }
  return workers;
}

JobReporter::RoundOutput JobReporter::round_output() const {
  return {
      .stderrs = output_.stderrs(), .logs = logs_, .attempt = output_.attempt(), .node_rank = std::max(node_rank_, 0)};
}

template <typename Made>
void JobReporter::read_and_make(const std::vector<protocol::WorkerFailure>& failures,
                                std::function<Made(const std::vector<report::FailedWorker>&)> make,
                                std::function<void(Made)> done) const {
  struct Work {
    RoundOutput output;
    std::vector<report::FailedWorker> workers = {};
    Made made = {};
  };
  const auto work = std::make_shared<Work>(round_output());
  work->workers = failed_workers(failures, work->output.stderrs);
  if (!output_.keeps_logs()) work->output.logs = nullptr;  // those that were given up hang
  const auto read = [work, make = std::move(make)] {
    work->output.read(work->workers);
    work->made = make(work->workers);
  };
  const auto then = [work, done = std::move(done)] { done(std::move(work->made)); };
  if (work->output.logs) return files_.post(work->output.logs->path(), read, then);
  read();
  then();
}

void JobReporter::find_first_failure(const std::vector<protocol::WorkerFailure>& failures, bool looks_for_memory,
                                     std::function<void(FirstFailure)> found) {
  if (looks_for_memory) look_for_evidence();
  read_and_make<FirstFailure>(
      failures,
      [looks_for_memory](const std::vector<report::FailedWorker>& workers) {
        return FirstFailure{.crash = crash_of(workers), .memory = looks_for_memory ? death_of_memory(workers) : ""};
      },
      std::move(found));
}

void JobReporter::gather_details(const protocol::JobResult& job_result, std::function<void(std::string)> gathered) {
  look_for_evidence();
  const auto first = std::ranges::find(job_result.failures, false, &protocol::WorkerFailure::stopped_by_us);
  std::vector<protocol::WorkerFailure> failures;
  if (first != job_result.failures.end()) failures.push_back(*first);
  read_and_make<std::string>(
      failures,
      [run_id = settings_.run_id](const std::vector<report::FailedWorker>& workers) {
        return report::details_of(workers.empty() ? report::FailedWorker{} : workers.front(), run_id,
                                  limits::kAgentDetailsBytes);
      },
      std::move(gathered));
}

report::JobReport JobReporter::make(const protocol::JobResult& job_result) {
  report::JobReport report;
  report.version = ELASTIC_RUN_VERSION;
  report.run_id = settings_.run_id;
  report.title = settings_.title;
  report.program = command_text(settings_.arguments);
  report.executable = settings_.executable;
  report.outcome = job_result.outcome;
  report.reason = job_result.reason;
  report.restarts_used = job_result.restarts_used;
  report.max_restarts = settings_.max_restarts;
  report.left_behind = job_result.left_behind;
  report.host = host_;
  report.node_rank = std::max(node_rank_, 0);
  report.utc_offset_s = process::utc_offset_s();
  report.hang = std::move(hang_);
  report.rounds = std::move(rounds_);
  if (!report.rounds.empty()) {
    report.rounds.back().failures.clear();  // the last round's stand below
    if (report.rounds.back().ended_ms == 0) report.rounds.back().ended_ms = process::wall_clock_ms();
  }
  return report;
}

JobReporter::Finished JobReporter::finish(const protocol::JobResult& job_result, std::string_view details,
                                          const ReportFiles& files) {
  struct Work {
    RoundOutput output;
    report::JobReport report;
    std::string problem = {};
  };
  const auto work = std::make_shared<Work>(round_output(), make(job_result));
  report::JobReport& report = work->report;
  look_for_evidence();
  report.failures = failed_workers(job_result.failures, work->output.stderrs);
  // For a worker of our own, this node knows more than the details say.
  const report::FailedWorker* first = report.first_failure();
  if (first != nullptr && first->node_rank != report.node_rank) report::add_details(report, details);
  const auto whose = std::ranges::find(job_result.failures, false, &protocol::WorkerFailure::stopped_by_us);
  report.first_failed_elsewhere = whose != job_result.failures.end() && !is_ours(*whose);
  report::JobReport without_files = report;
  // The file that is named if the file system does not respond.
  const std::string& place = files.parent_error_file.empty() ? files.termination_log : files.parent_error_file;
  files_.post(logs_ ? logs_->path() : place, [work, files] {
    work->output.read(work->report.failures);
    work->problem = write_report(work->report, work->output.error_files, work->output.logs.get(), files);
    if (work->output.logs && work->output.logs->remove_if_unused()) work->report.log_directory.clear();
  });
  if (!files_.finish(kFilesPatienceMs)) return {std::move(without_files), {}};
  if (!work->problem.empty()) log::warning("report_incomplete", work->problem);
  Finished finished{std::move(work->report), {}};
  for (auto& [local_rank, text] : work->output.error_files) {
    finished.error_files.resize(static_cast<std::size_t>(local_rank) + 1);
    finished.error_files.back() = std::move(text);
  }
  return finished;
}

std::string tell_parent(const std::string& parent_error_file, const std::string& message) {
  if (parent_error_file.empty()) return "";
  return write_for_parent(parent_error_file, report::error_file_of_launcher(message, process::wall_clock_ms() / 1000));
}

}  // namespace elastic::run
