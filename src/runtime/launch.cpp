#include "src/runtime/launch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <bit>
#include <memory>

#include "src/base/console.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/process/cgroup.h"
#include "src/process/guardian.h"
#include "src/report/summary.h"
#include "src/runtime/agent_runner.h"
#include "src/runtime/coordinator_host.h"
#include "src/runtime/job_report.h"
#include "src/runtime/process_state.h"
#include "src/runtime/recording_file.h"

namespace elastic::runtime {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitSignal = 128;  // plus the signal's number

// How long the log directory may take to be made, and at the end to get on with what is left to be written, so
// that all is over within 2 s.
constexpr std::int64_t kOpenLogsMs = 2000;
constexpr std::int64_t kCloseLogsMs = 1200;

void rename_launcher(const ProcessTitle& title) {
  prctl(PR_SET_NAME, process::kLauncherName);
  const std::string text = format("{}: launcher of process {}", process::kLauncherName, getppid());
  for (std::size_t i = 0; i < title.size; ++i) title.begin[i] = i < text.size() && i + 1 < title.size ? text[i] : '\0';
}

// Descriptors for the workers: one for a connection to the store each, their log files, and what the launcher
// reads of them.
int descriptors_for(const LaunchSettings& settings) {
  int count = 0;
  for (const output::OutputFlags& flags : settings.output.ranks) {
    const unsigned tee = settings.logs.enabled ? flags.tee : 0;
    const unsigned logged = settings.logs.enabled ? flags.redirects | tee : 0;
    const bool keeps_tail = settings.output.stderr_tail && (logged & output::kStderrBit) == 0;
    const unsigned read = settings.output.log_max_bytes > 0 ? logged : tee;
    count += 1 + std::popcount(logged) + std::popcount(read) + (keeps_tail ? 1 : 0);
  }
  const bool filters = !settings.output.stdout_filters.empty() || !settings.output.stderr_filters.empty();
  const bool rotates = settings.output.log_max_bytes > 0;
  if (!settings.record_file.empty()) count += 2;  // the file, and the event of its thread
  return count + (filters ? 2 : 0) + (rotates ? 2 : 0);  // of one file at a time there are an old and a new one
}

// The first failure's own code, as a shell gives it.
int exit_code_of(const protocol::Verdict& verdict) {
  if (verdict.failures.empty()) return kExitFailed;
  const ExitStatus exit = verdict.failures.front().exit;
  return exit.signal != 0 ? kExitSignal + exit.signal : exit.code;
}

// The directory of this run; null if nothing is to be kept, or can't be. Fails where the user named a place
// that cannot be had.
Result<std::shared_ptr<output::RunDirectory>> open_logs(const LogSettings& settings, const std::string& run_id,
                                                        net::SideThread& files) {
  if (!settings.enabled) return nullptr;
  const std::string place = settings.base.value_or(settings.temporary);
  const auto made = std::make_shared<std::optional<Result<output::RunDirectory>>>();
  files.post(place, [made, settings, run_id] {
    *made = output::RunDirectory::create(settings.base, settings.temporary, run_id);
  });
  if (!files.wait(kOpenLogsMs)) {
    log::warning(format("{} does not answer; going on without log directory and error files", printable(place)));
    return nullptr;
  }
  if (!made->value()) {
    if (settings.base) return std::unexpected(std::move(made->value().error()));
    // Nobody asked for one: no reason not to train.
    log::warning(format("{}; going on without log directory and error files", made->value().error().text()));
    return nullptr;
  }
  log::info("log_directory", format("log directory: {}", made->value()->path()), {{"path", made->value()->path()}});
  return std::make_shared<output::RunDirectory>(std::move(*made->value()));
}

// Waits for the thread as long as it gets on. False if it hangs.
bool finish(net::SideThread& files) {
  for (;;) {
    if (files.wait(kCloseLogsMs)) {
      if (!files.run_done()) return true;
    } else if (files.stuck_for(kCloseLogsMs)) {
      return false;
    }
  }
}

// Reads and writes what the report needs of files, and clears away directories that nobody has written to.
// A log directory that hangs leaves the report as it is.
void complete_report(report::JobReport& report, std::vector<StderrOfWorker> stderrs,
                     const std::shared_ptr<output::RunDirectory>& logs, const output::Attempt& attempt,
                     const std::string& parent_error_file, net::SideThread& files) {
  struct Work {
    report::JobReport report;
    std::vector<StderrOfWorker> stderrs;
    std::string problem;
  };
  if (!logs && parent_error_file.empty()) return;
  const auto work = std::make_shared<Work>(report, std::move(stderrs), "");
  files.post(logs ? logs->path() : parent_error_file, [work, logs, attempt, parent_error_file] {
    work->problem = complete_with_files(work->report, work->stderrs, logs.get(), attempt, parent_error_file);
    if (logs && logs->remove_if_unused()) work->report.log_directory.clear();
  });
  if (!finish(files)) return;
  if (!work->problem.empty()) log::warning(work->problem);
  report = std::move(work->report);
}

int exit_status(const protocol::Verdict& verdict, bool propagate_exit_code) {
  if (verdict.outcome == protocol::Verdict::Outcome::kSucceeded) return 0;
  return propagate_exit_code ? exit_code_of(verdict) : kExitFailed;
}

// The job, from its beginning to its report. Returns the exit status.
int run(const LaunchSettings& settings, const std::shared_ptr<output::RunDirectory>& logs, net::SideThread& files,
        RecordingFile* recording, const process::SpawnContext& context, UniqueFd guardian) {
  net::Loop loop;
  protocol::Verdict verdict;
  CoordinatorHost coordinator(loop, {});
  if (recording != nullptr) {
    coordinator.record(settings.worker.run_id, [recording](std::string_view line) { recording->append(line); });
  }
  AgentRunner agent(loop, settings, files, logs, context, std::move(guardian),
                    {.to_coordinator =
                         [&](protocol::AgentMessage message) { coordinator.from_agent(message); },
                     .finished =
                         [&](protocol::Verdict end) {
                           verdict = std::move(end);
                           loop.stop();
                         }});
  coordinator.set_agent(
      [&](protocol::CoordinatorMessage message) { agent.from_coordinator(std::move(message)); });
  agent.begin();
  loop.run();
  report::JobReport report{.outcome = report::JobReport::Outcome::kSucceeded};
  if (verdict.outcome == protocol::Verdict::Outcome::kSucceeded) {
    if (logs) files.post(logs->path(), [logs] { logs->remove_if_unused(); });
    finish(files);
  } else {
    std::vector<StderrOfWorker> stderrs = agent.take_stderrs();
    report = agent.reporter().make(verdict, stderrs);
    complete_report(report, std::move(stderrs), logs, agent.attempt(), settings.parent_error_file, files);
  }
  agent.flush_output();
  const int status = exit_status(verdict, settings.propagate_exit_code);
  const bool recording_hangs = recording != nullptr && !recording->finish();
  const auto hangs = files.stuck_for(0);
  if (hangs) log::warning(format("{} does not answer; what was to be written there is lost", printable(*hangs)));
  // The thread that waits for it keeps this process from ending.
  if (hangs || recording_hangs) agent.leave(status);
  write_to_stderr(report::failure_summary(report));
  return status;
}

}  // namespace

int launch(const LaunchSettings& settings, const process::InheritedState& inherited,
           const ProcessTitle& title) {
  const std::string input = format("--nproc-per-node={}", settings.node.local_world_size);
  if (const Status prepared = prepare_process(input, descriptors_for(settings)); !prepared) {
    log::critical(prepared.error().text());
    return kExitFailed;
  }
  const std::unique_ptr<process::Cgroup> cgroup = settings.use_cgroup ? process::Cgroup::make() : nullptr;
  auto guardian = process::split_off_launcher(
      {settings.signals, cgroup ? cgroup->path() : "", inherited.open_files.rlim_cur});
  if (!guardian) {
    if (cgroup) rmdir(cgroup->path().c_str());
    log::critical(guardian.error().text());
    return kExitFailed;
  }
  rename_launcher(title);
  const process::SpawnContext context{.inherited = inherited,
                                      .cgroup = cgroup ? cgroup->descriptor() : -1,
                                      .cgroup_procs = cgroup ? cgroup->procs_descriptor() : -1};
  std::unique_ptr<RecordingFile> recording;
  if (!settings.record_file.empty()) {
    auto opened = RecordingFile::open(settings.record_file);
    if (!opened) {
      log::critical(opened.error().text());
      return kExitUsage;
    }
    recording = std::move(*opened);
  }
  net::SideThread files;
  const auto logs = open_logs(settings.logs, settings.worker.run_id, files);
  if (!logs) {
    log::critical(logs.error().text());
    return kExitUsage;
  }
  const int status = run(settings, *logs, files, recording.get(), context, std::move(*guardian));
  if (cgroup && status != 0) rmdir(cgroup->path().c_str());
  return status;
}

}  // namespace elastic::runtime
