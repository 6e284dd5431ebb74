#include "src/runtime/launch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>

#include "src/agent/failure_report.h"
#include "src/base/console.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/process/cgroup.h"
#include "src/process/guardian.h"
#include "src/runtime/agent_runner.h"
#include "src/runtime/coordinator_host.h"
#include "src/runtime/process_state.h"

namespace elastic::runtime {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitSignal = 128;  // plus the signal's number

// How long the log directory may take to be made, and at the end to be cleared away.
constexpr std::int64_t kOpenLogsMs = 2000;
constexpr std::int64_t kCloseLogsMs = 500;

void rename_launcher(const ProcessTitle& title) {
  prctl(PR_SET_NAME, process::kLauncherName);
  const std::string text = format("{}: launcher of process {}", process::kLauncherName, getppid());
  for (std::size_t i = 0; i < title.size; ++i) title.begin[i] = i < text.size() && i + 1 < title.size ? text[i] : '\0';
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
  log::info(format("log directory: {}", made->value()->path()));
  return std::make_shared<output::RunDirectory>(std::move(*made->value()));
}

// Clears away what no worker has written to. Returns where the rest is. Nothing is waited for longer than
// kCloseLogsMs, after which `hangs` names what does not answer.
agent::LogPlaces close_logs(const std::shared_ptr<output::RunDirectory>& logs, const protocol::Verdict& verdict,
                            net::SideThread& files, std::string& hangs) {
  const auto places = std::make_shared<agent::LogPlaces>();
  if (logs) {
    files.post(logs->path(), [places, logs, verdict] {
      if (logs->remove_if_unused()) return;
      places->directory = logs->path();
      if (verdict.failures.empty()) return;
      std::string file = logs->error_file(verdict.restarts_used, verdict.failures.front().local_rank);
      if (access(file.c_str(), F_OK) == 0) places->error_file = std::move(file);
    });
  }
  if (files.wait(kCloseLogsMs)) return *places;
  hangs = files.stuck_for(0).value_or("the log directory");
  return {};
}

int exit_status(const protocol::Verdict& verdict, bool propagate_exit_code) {
  if (verdict.outcome == protocol::Verdict::Outcome::kSucceeded) return 0;
  return propagate_exit_code ? exit_code_of(verdict) : kExitFailed;
}

// The job, from its beginning to its report. Returns the exit status.
int run(const LaunchSettings& settings, const std::shared_ptr<output::RunDirectory>& logs, net::SideThread& files,
        const process::SpawnContext& context, UniqueFd guardian) {
  net::Loop loop;
  protocol::Verdict verdict;
  CoordinatorHost coordinator({.nodes = 1, .max_restarts = settings.max_restarts});
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
  std::string hangs;
  const agent::LogPlaces places = close_logs(logs, verdict, files, hangs);
  const int status = exit_status(verdict, settings.propagate_exit_code);
  if (!hangs.empty()) {
    log::warning(format("{} does not answer; what was to be written there is lost", printable(hangs)));
    // The thread that waits for it keeps this process from ending.
    agent.leave(status);
  }
  write_to_stderr(agent::failure_report(verdict, settings.max_restarts, places));
  return status;
}

}  // namespace

int launch(const LaunchSettings& settings, const process::InheritedState& inherited,
           const ProcessTitle& title) {
  if (const Status prepared = prepare_process(settings.node.local_world_size); !prepared) {
    log::error(prepared.error().text());
    return kExitFailed;
  }
  const std::unique_ptr<process::Cgroup> cgroup = settings.use_cgroup ? process::Cgroup::make() : nullptr;
  auto guardian = process::split_off_launcher(
      {settings.signals, cgroup ? cgroup->path() : "", inherited.open_files.rlim_cur});
  if (!guardian) {
    if (cgroup) rmdir(cgroup->path().c_str());
    log::error(guardian.error().text());
    return kExitFailed;
  }
  rename_launcher(title);
  const process::SpawnContext context{.inherited = inherited,
                                      .cgroup = cgroup ? cgroup->descriptor() : -1,
                                      .cgroup_procs = cgroup ? cgroup->procs_descriptor() : -1};
  net::SideThread files;
  const auto logs = open_logs(settings.logs, settings.worker.run_id, files);
  if (!logs) {
    log::error(logs.error().text());
    return kExitUsage;
  }
  const int status = run(settings, *logs, files, context, std::move(*guardian));
  if (cgroup && status != 0) rmdir(cgroup->path().c_str());
  return status;
}

}  // namespace elastic::runtime
