#include "cli/run/launch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/run/agent_runner.h"
#include "cli/run/check_reporter.h"
#include "cli/run/event_stream.h"
#include "cli/run/final_status.h"
#include "cli/run/job_coordinator.h"
#include "cli/run/job_report.h"
#include "cli/run/limits.h"
#include "cli/run/log_writer.h"
#include "cli/run/node_telemetry.h"
#include "cli/run/on_event.h"
#include "cli/run/part_settings.h"
#include "cli/run/recording_file.h"
#include "cli/run/status_host.h"
#include "health/progress/limits.h"
#include "health/report/drain_line.h"
#include "rendezvous/transport/coordinator_server.h"
#include "src/base/console.h"
#include "src/base/log.h"
#include "src/base/patience.h"
#include "src/base/program_name.h"
#include "src/base/text.h"
#include "src/net/limits.h"
#include "src/net/local_host.h"
#include "src/process/cgroup.h"
#include "src/process/clock.h"
#include "src/process/guardian.h"
#include "src/process/job_directory.h"
#include "src/process/process_state.h"
#include "src/report/summary.h"

namespace elastic::run {
namespace {

using Tell = void (*)(std::string_view event, std::string_view text, log::Fields fields);

constexpr int kExitUsage = 2;

// How long making the log directory may take; and how long, at the end, the thread that writes there may make no
// progress, so that all is over within 2 s.
constexpr std::int64_t kOpenLogsMs = 2000;
constexpr std::int64_t kCloseLogsMs = 1200;
// How long it may take to remove the entry that leads to this process.
constexpr std::int64_t kWithdrawMs = 1000;
// How long removing the launch's directory may take.
constexpr std::int64_t kRemoveMs = 300;
// From the end of this job until the user is told that other jobs still need the coordinator in this process.
constexpr std::int64_t kOthersMs = 1000;
// When a job ends because the outer process has died: from the end of the other nodes' last worker until those nodes
// have got the job result.
constexpr std::int64_t kJobResultMs = 2000;

void rename_launcher(const ProcessTitle& title) {
  prctl(PR_SET_NAME, process::kLauncherName);
  const std::string text = format("{}: launcher of process {}", process::kLauncherName, getppid());
  for (std::size_t i = 0; i < title.size; ++i) title.begin[i] = i < text.size() && i + 1 < title.size ? text[i] : '\0';
}

// How many file descriptors the launcher needs: for each worker a connection to the store, its log files and the pipes
// that the launcher reads, and for the files and connections of its own.
int descriptors_for(const LaunchSettings& settings) {
  int count = 0;
  for (const output::OutputFlags& flags : settings.output.ranks) {
    const unsigned tee = settings.logs.enabled ? flags.tee : 0;
    const unsigned logged = settings.logs.enabled ? flags.redirects | tee : 0;
    const bool keeps_tail = settings.output.stderr_tail && (logged & output::kStderrBit) == 0;
    const unsigned read = settings.output.log_max_bytes > 0 ? logged : tee;
    count += 1 + std::popcount(logged) + std::popcount(read) + (keeps_tail ? 1 : 0);
  }
  // For each worker its FIFO; the thread that looks at output files has an event, and one file open at a time.
  count += static_cast<int>(settings.output.ranks.size()) + 2;
  // For each worker, and for the launcher, a socket of NVRx's and its connections; one that is refused.
  if (settings.progress.serves_nvrx)
    count += 1 + static_cast<int>((settings.output.ranks.size() + 1) * (1 + limits::kNvrxConnections));
  // Their FIFO, and while a stack is read the way to its reader, the process's memory and its pidfd.
  if (settings.file_timers.are_served) count += 5;
  const bool filters = !settings.output.stdout_filters.empty() || !settings.output.stderr_filters.empty();
  const bool rotates = settings.output.log_max_bytes > 0;
  if (settings.rendezvous.place != transport::RendezvousSettings::Place::kEndpoint)
    count += 3;  // the event of its thread, and two files
  // The connections that are served, and as many that are refused and being closed.
  if (settings.http_port) count += 1 + 2 * static_cast<int>(limits::kHttpConnections);
  // For each worker that waits its socket and pidfd, and when it becomes one the ends of its streams; the server's
  // socket.
  const bool may_be_warm = settings.warm.rules.mode != warm::Mode::kOff && settings.warm.rules.never.empty();
  if (may_be_warm) count += 1 + 4 * static_cast<int>(settings.output.ranks.size());
  // The watch for error files, and one that is read.
  if (settings.warm.rules.mode != warm::Mode::kOff) count += 2;
  // The file, and the event of its thread.
  if (!settings.record_file.empty()) count += 2;
  if (!settings.events_file.empty()) count += 2;
  if (!settings.on_event.empty()) count += 2;
  if (!settings.segment_file.empty()) count += 2;
  return count + (filters ? 2 : 0) + (rotates ? 2 : 0);  // one file at a time is open twice, the old one and the new
}

// The log directory of this run; null if none is wanted, or none can be made. Fails if the user named a place where
// none can be made.
Result<std::shared_ptr<output::RunDirectory>> open_logs(const LogSettings& settings, const std::string& run_id,
                                                        net::SideThread& files) {
  if (!settings.enabled) return nullptr;
  const std::string place = settings.base.value_or(settings.temporary);
  const auto made = std::make_shared<std::optional<Result<output::RunDirectory>>>();
  files.post(place, [made, settings, run_id] {
    *made = output::RunDirectory::create(settings.base, settings.temporary, run_id);
  });
  if (!files.wait(patient_ms(kOpenLogsMs))) {
    log::warning("no_log_directory",
                 format("{} does not answer; going on without log directory and error files", printable(place)));
    return nullptr;
  }
  if (!made->value()) {
    if (settings.base) return std::unexpected(std::move(made->value().error()));
    // The user has not asked for a log directory: the job runs without one.
    log::warning("no_log_directory",
                 format("{}; going on without log directory and error files", made->value().error().text()));
    return nullptr;
  }
  log::info("log_directory", format("log directory: {}", made->value()->path()), {{"path", made->value()->path()}});
  return std::make_shared<output::RunDirectory>(std::move(*made->value()));
}

// Serves the nodes that are still connected: the job result may be on its way to them, and the job may go on without
// this node, or other jobs. Ends when all have left. At a signal it transfers the leadership of the jobs, or ends them;
// it ends at once at a second one, and where another node takes the jobs over by itself. A user signals the outer
// process; when that has died it ends after `stop_ms`, the milliseconds in which the other nodes' workers must have
// stopped, and some time for the job result.
void serve_the_others(net::Loop& loop, AgentRunner& agent, const std::string& job, std::int64_t stop_ms) {
  transport::CoordinatorServer& server = *agent.coordinator().server();
  if (!server.agent_has_ended()) return;
  net::Timer end(loop);
  if (agent.guardian_is_lost()) end.start(stop_ms + kJobResultMs, [&] { loop.stop(); });
  net::Timer patience(loop);
  patience.start(kOthersMs, [&] {
    if (server.jobs() == 0) return;
    const std::string own = server.serves(job) ? "the other nodes of its job" : "";
    const std::size_t others = server.jobs() - (own.empty() ? 0 : 1);
    log::answer("serves_others",
                format("this node is done; its coordinator keeps serving {}{}{} until {} over", own,
                       own.empty() || others == 0 ? "" : " and ", others == 0 ? "" : counted(others, "other job"),
                       server.jobs() == 1 ? "that is" : "they are"),
                {{"jobs", static_cast<std::int64_t>(server.jobs())}});
  });
  server.on_idle([&] { loop.stop(); });
  bool is_told = false;
  agent.on_signal([&](int signal) {
    if (std::exchange(is_told, true) || signal == 0 || server.only_ends()) return loop.stop();
    server.leave(signal);
    if (!server.only_ends()) loop.stop();
  });
  loop.run();
  agent.on_signal({});
  server.on_idle({});
}

// Nodes that look for the coordinator of a job of this name from now on are not led to this process any more.
void withdraw(net::Loop& loop, AgentRunner& agent) {
  struct State {
    bool is_done = false;
    bool waits = false;  // the loop runs: stopping one that does not would cut its next run short
  };
  const auto state = std::make_shared<State>();  // the answer may come when nobody waits any more
  agent.coordinator().withdraw([state, &loop] {
    state->is_done = true;
    if (state->waits) loop.stop();
  });
  if (state->is_done) return;
  net::Timer patience(loop);
  patience.start(kWithdrawMs, [&] { loop.stop(); });
  state->waits = true;
  loop.run();
  state->waits = false;
}

// Lets other nodes finish their failure reports: srun --kill-on-bad-exit kills all nodes when the first has ended with
// a failure. A signal ends the wait.
void let_others_finish(net::Loop& loop, AgentRunner& agent, std::int64_t wait_ms) {
  net::Timer patience(loop);
  patience.start(wait_ms, [&] { loop.stop(); });
  agent.on_signal([&](int) { loop.stop(); });
  loop.run();
  agent.on_signal({});
}

// Waits for the commands of --on-event. A signal ends the wait.
void let_commands_finish(net::Loop& loop, AgentRunner& agent, OnEvent& on_event) {
  if (!on_event.is_idle()) {
    net::Timer patience(loop);
    patience.start(limits::kEventCommandsEndMs, [&] { loop.stop(); });
    on_event.on_idle([&] { loop.stop(); });
    agent.on_signal([&](int) { loop.stop(); });
    loop.run();
    agent.on_signal({});
  }
  on_event.end();
}

// Connects a coordinator that is in this process, or may come to be at this node's peer port, with HTTP, recording and
// the reports of its checks.
void attend_to(transport::CoordinatorServer& coordinator, const std::string& job, RecordingFile* recording,
               CheckReporter& reporter, StatusHost& status) {
  coordinator.on_judged([&, job](const std::string& of_job, const coordinator::CheckJudged& check) {
    if (of_job == job) status.checked(job, reporter.judged(job, check));
  });
  coordinator.on_http([&status](std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes) {
    status.adopt(std::move(stream), bytes);
  });
  if (recording == nullptr) return;
  coordinator.record(job, [recording](std::string_view line) { recording->append(line); });
}

// Runs this node's part of the job until the agent has finished, and serves other nodes after it if they need that.
void run_agent(net::Loop& loop, const LaunchSettings& settings, AgentRunner& agent, StatusHost& status) {
  status.set_node([&agent] { return agent.status(); });
  status.set_whereabouts([&agent] { return agent.whereabouts(); });
  agent.begin();
  loop.run();
  // The coordinator of a job of one node has no status after the job; one that serves many jobs forgets the job by
  // itself.
  if (agent.coordinator().server() == nullptr) return status.set_coordinator(nullptr);
  // A node that has lost its guardian goes as if it had died, if another node can take its coordinator over.
  if (agent.guardian_is_lost() && settings.rendezvous.has_peer_server) return;
  serve_the_others(loop, agent, settings.worker.run_id, settings.node.shutdown_timeout_ms);
  // Without its entry a newcomer would begin the job anew that goes on elsewhere.
  if (agent.coordinator().server()->only_ends()) withdraw(loop, agent);
}

// Serves status and metrics on --http-port, if that is given. A port that the kernel has chosen is logged at every
// level.
Status serve_status(StatusHost& host, std::optional<std::uint16_t> wanted) {
  if (!wanted) return {};
  const auto port = host.listen(*wanted);
  if (!port) return std::unexpected(port.error());
  const std::string text = format("status and metrics are served on port {}", *port);
  const auto tell = *wanted == 0 ? static_cast<Tell>(log::answer) : static_cast<Tell>(log::info);
  tell("http_listens", text, {{"port", *port}});
  return {};
}

// Prints the line of --check-only to stdout: whether this node is healthy.
void print_drain_line(const AgentRunner& agent, const protocol::JobResult& job_result) {
  const status::Node node = agent.status();
  const bool is_fit = job_result.outcome == protocol::JobResult::Outcome::kSucceeded;
  health::NodeOutcome outcome{.was_checked = is_fit || job_result.reason.starts_with(coordinator::kFoundUnhealthy),
                              .why_not = job_result.reason,
                              .findings = agent.check_findings()};
  if (!is_fit && outcome.was_checked) {
    outcome.flaw = health::flaw_of_node(job_result.reason, node.node_rank);
    outcome.others_are_unhealthy = outcome.flaw.empty();
    // A job result names only the first few nodes and links.
    if (outcome.flaw.empty() && job_result.reason.ends_with(" more")) {
      outcome.was_checked = false;
      outcome.why_not = "more nodes or links are unfit than the verdict names; see the report of the check";
    }
  }
  const std::string line = health::drain_line(program_name(), outcome) + "\n";
  (void)!write(STDOUT_FILENO, line.data(), line.size());
}

// Runs the job from its beginning to its report. Returns the exit status.
int run(const LaunchSettings& settings, const std::shared_ptr<output::RunDirectory>& logs, const std::string& directory,
        net::SideThread& files, RecordingFile* recording, EventStream& events, OnEvent& on_event,
        const process::SpawnContext& context, process::GuardianChannel guardian) {
  const std::int64_t began_ms = process::monotonic_ms();
  net::Loop loop;
  StatusHost status_host(loop, settings.rendezvous.secret, settings.rendezvous.status_open);
  if (const Status served = serve_status(status_host, settings.http_port); !served) {
    tell_refusal(served.error(), settings.parent_error_file);
    if (logs) files.post(logs->path(), [logs] { logs->remove_if_unused(); });
    files.finish(patient_ms(kCloseLogsMs));
    events.finish();
    return kExitUsage;
  }
  CheckReporter reporter(files, logs, settings.check.page);
  on_event.begin(loop);
  protocol::JobResult job_result;
  std::string details;  // see AgentRunner::Handlers::finished
  transport::CoordinatorServer* peer_server = nullptr;
  AgentRunner agent(loop, settings, files, logs, directory, context, std::move(guardian),
                    {.on_hosting =
                         [&](transport::CoordinatorServer& coordinator) {
                           if (&coordinator != peer_server) {
                             attend_to(coordinator, settings.worker.run_id, recording, reporter, status_host);
                           }
                           status_host.set_coordinator(&coordinator);
                         },
                     .on_peer_server =
                         [&](transport::CoordinatorServer& opened) {
                           // Its first event as a coordinator may come before this node's own agent knows of it.
                           peer_server = &opened;
                           attend_to(opened, settings.worker.run_id, recording, reporter, status_host);
                         },
                     .finished =
                         [&](protocol::JobResult how, std::string what) {
                           job_result = std::move(how);
                           details = std::move(what);
                           loop.stop();
                         }});
  run_agent(loop, settings, agent, status_host);
  report::JobReport report{.outcome = report::JobReport::Outcome::kSucceeded};
  std::vector<std::string> error_files;
  if (job_result.outcome == protocol::JobResult::Outcome::kSucceeded) {
    if (logs) files.post(logs->path(), [logs] { logs->remove_if_unused(); });
    files.finish(patient_ms(kCloseLogsMs));
  } else {
    auto finished =
        agent.reporter().finish(job_result, details, {settings.parent_error_file, settings.termination_log});
    report = std::move(finished.report);
    error_files = std::move(finished.error_files);
    log_failure(report);
  }
  agent.flush_output();
  agent.telemetry().ended(job_result, error_files);
  let_commands_finish(loop, agent, on_event);
  const int status = final_status({.job_result = job_result,
                                   .first = report.first_failure(),
                                   .failures = agent.failures(),
                                   .local_world_size = settings.node.local_world_size},
                                  settings.propagate_exit_code);
  const bool recording_hangs = recording != nullptr && !recording->finish();
  const auto hangs = files.stuck_for(0);
  if (hangs) {
    log::warning("log_file_lost", format("{} does not answer; output for it is lost", printable(*hangs)));
  }
  log_end(status, process::monotonic_ms() - began_ms);
  const bool events_hang = !events.finish();
  // A thread that waits for a file system that hangs keeps this process from ending.
  if (hangs || recording_hangs || events_hang || agent.coordinator().discovery_hangs() || agent.files_hang())
    agent.leave(status);
  write_to_stderr(report::failure_summary(report));
  if (agent.guardian_is_lost() && !directory.empty()) process::remove_job_directory(directory, kRemoveMs);
  if (settings.node.check.only) print_drain_line(agent, job_result);
  if (job_result.outcome == protocol::JobResult::Outcome::kFailed && settings.parting_ms > 0) {
    let_others_finish(loop, agent, settings.parting_ms);
  }
  return status;
}

// The directory of this launch; empty where none is needed, or none can be made: the job does without it.
std::string make_directory(const LaunchSettings& settings) {
  if (settings.node.check.only || settings.progress.parent.empty()) return {};
  auto made = process::make_job_directory(settings.progress.parent);
  if (made) return std::move(*made);
  log::info("no_progress_pipes", format("{}; workers get no ELASTIC_RUN_PROGRESS", made.error().text()));
  return {};
}

process::LocalTaskPlace local_task_place(const LocalTasksSettings& settings) {
  return {.name = settings.name, .index = settings.index, .members = settings.members};
}

// The node's other tasks, which wait for this one. None if there are none, or they cannot be told how this one ends.
std::optional<process::LocalTasksHost> gather_local_tasks(const LocalTasksSettings& settings) {
  if (settings.members < 2) return {};
  auto opened = process::LocalTasksHost::open(local_task_place(settings));
  if (opened) return std::move(*opened);
  log::warning("company",
               format("{}; the other tasks on this node will not get the job's exit status", opened.error().text()));
  return {};
}

}  // namespace

int wait_for_launcher(const LocalTasksSettings& settings) {
  const auto status = process::wait_for_local_tasks(local_task_place(settings), [&] {
    log::info("waits", format("task {} of this node waits for task 0, which runs the job, and exits with its status",
                              settings.index));
  });
  if (status) return *status;
  log::critical("no_launcher", status.error().text());
  return kExitFailed;
}

void tell_refusal(const Error& error, const std::string& parent_error_file) {
  log::critical(error.text());
  const std::string problem = tell_parent(parent_error_file, error.text());
  if (!problem.empty()) log::warning("report_incomplete", problem);
}

int launch(const LaunchSettings& settings, const process::InheritedState& inherited, const ProcessTitle& title) {
  const std::string input = format("--nproc-per-node={}", settings.node.local_world_size);
  if (const Status prepared = process::prepare_process(input, descriptors_for(settings)); !prepared) {
    tell_refusal(prepared.error(), settings.parent_error_file);
    return kExitFailed;
  }
  const std::string directory = make_directory(settings);
  const std::unique_ptr<process::Cgroup> cgroup = settings.use_cgroup ? process::Cgroup::make() : nullptr;
  std::optional<process::LocalTasksHost> local_tasks = gather_local_tasks(settings.local_tasks);
  auto guardian =
      process::split_off_launcher({settings.signals, cgroup ? cgroup->path() : "", inherited.open_files.rlim_cur,
                                   local_tasks ? &*local_tasks : nullptr, directory});
  local_tasks.reset();
  if (!guardian) {
    if (cgroup) rmdir(cgroup->path().c_str());
    if (!directory.empty()) process::remove_job_directory(directory, kRemoveMs);
    tell_refusal(guardian.error(), settings.parent_error_file);
    return kExitFailed;
  }
  rename_launcher(title);
  OnEvent on_event(on_event_settings(settings), inherited);  // it forks, and must do so before there is a second thread
  const process::SpawnContext context{.inherited = inherited,
                                      .cgroup = cgroup ? cgroup->descriptor() : -1,
                                      .cgroup_procs = cgroup ? cgroup->procs_descriptor() : -1};
  std::unique_ptr<RecordingFile> recording;
  if (!settings.record_file.empty()) {
    auto opened = RecordingFile::open(settings.record_file);
    if (!opened) {
      tell_refusal(opened.error(), settings.parent_error_file);
      return kExitUsage;
    }
    recording = std::move(*opened);
  }
  const bool has_events = !settings.events_file.empty() || on_event.is_wanted();
  EventStream::Listener listener;
  if (on_event.is_wanted()) {
    listener = [&on_event](std::string_view event, const std::string& line) { on_event.on_event(event, line); };
  }
  EventStream events(
      settings.events_file,
      {.job = settings.worker.run_id, .host = has_events ? net::full_host_name() : "", .launcher = getpid()},
      std::move(listener));
  net::SideThread files;
  const auto logs = open_logs(settings.logs, settings.worker.run_id, files);
  if (!logs) {
    tell_refusal(logs.error(), settings.parent_error_file);
    events.finish();
    return kExitUsage;
  }
  const int status =
      run(settings, *logs, directory, files, recording.get(), events, on_event, context, std::move(*guardian));
  if (cgroup && status != 0) rmdir(cgroup->path().c_str());
  return status;
}

}  // namespace elastic::run
