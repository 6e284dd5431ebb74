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

void rename_launcher(const ProcessTitle& title) {
  prctl(PR_SET_NAME, process::kLauncherName);
  const std::string text = format("{}: launcher of process {}", process::kLauncherName, getppid());
  for (std::size_t i = 0; i < title.size; ++i) title.begin[i] = i < text.size() && i + 1 < title.size ? text[i] : '\0';
}

protocol::Verdict run(const LaunchSettings& settings, output::RunDirectory* logs,
                      const process::SpawnContext& context, UniqueFd guardian) {
  net::Loop loop;
  protocol::Verdict verdict;
  CoordinatorHost coordinator({.nodes = 1, .max_restarts = settings.max_restarts});
  AgentRunner agent(loop, settings, logs, context, std::move(guardian),
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
  return verdict;
}

// The first failure's own code, as a shell gives it.
int exit_code_of(const protocol::Verdict& verdict) {
  if (verdict.failures.empty()) return kExitFailed;
  const ExitStatus exit = verdict.failures.front().exit;
  return exit.signal != 0 ? kExitSignal + exit.signal : exit.code;
}

agent::LogPlaces places_of(const protocol::Verdict& verdict, const output::RunDirectory& logs) {
  agent::LogPlaces places{.error_file = {}, .directory = logs.path()};
  if (verdict.failures.empty()) return places;
  std::string file = logs.error_file(verdict.restarts_used, verdict.failures.front().local_rank);
  if (access(file.c_str(), F_OK) == 0) places.error_file = std::move(file);
  return places;
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
  std::optional<output::RunDirectory> logs;
  if (settings.logs.enabled) {
    auto made = output::RunDirectory::create(settings.logs.base, settings.logs.temporary,
                                             settings.worker.run_id);
    if (made) {
      logs = std::move(*made);
      log::info(format("log directory: {}", logs->path()));
    } else if (settings.logs.base) {
      log::error(made.error().text());
      return kExitUsage;
    } else {
      // Nobody asked for one: no reason not to train.
      log::warning(format("{}; going on without log directory and error files", made.error().text()));
    }
  }
  const protocol::Verdict verdict = run(settings, logs ? &*logs : nullptr, context, std::move(*guardian));
  const bool logs_kept = logs && !logs->remove_if_unused();
  if (verdict.outcome == protocol::Verdict::Outcome::kSucceeded) return 0;
  const agent::LogPlaces places = logs_kept ? places_of(verdict, *logs) : agent::LogPlaces{};
  const std::string report = agent::failure_report(verdict, settings.max_restarts, places);
  write_to_stderr(report);
  if (cgroup) rmdir(cgroup->path().c_str());
  return settings.propagate_exit_code ? exit_code_of(verdict) : kExitFailed;
}

}  // namespace elastic::runtime
