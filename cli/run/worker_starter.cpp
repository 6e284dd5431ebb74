#include "cli/run/worker_starter.h"

#include <cstdint>
#include <utility>

#include "cli/run/check_runner.h"
#include "cli/run/job_report.h"
#include "cli/run/launch_settings.h"
#include "cli/run/output_host.h"
#include "cli/run/worker_channels.h"
#include "cli/run/worker_environment.h"
#include "cli/run/wrap.h"
#include "rendezvous/protocol/fence.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::run {

WorkerStarter::WorkerStarter(net::Loop& loop, const LaunchSettings& settings, process::WorkerTree& workers,
                             int cgroup_procs, CheckRunner& check, OutputHost& output, WorkerChannels& channels,
                             JobReporter& reporter, Handlers handlers)
    : settings_(settings),
      workers_(workers),
      check_(check),
      output_(output),
      channels_(channels),
      reporter_(reporter),
      handlers_(std::move(handlers)),
      bindings_(settings.placements),
      warm_(loop, {settings.warm, settings.program, settings.node.local_world_size}, workers, cgroup_procs),
      gpus_timer_(loop) {}

// The probe's GPU memory is free only when the probe has ended, and a GPU in exclusive mode can be used only then.
void WorkerStarter::perform(const agent::StartWorkers& order) {
  constexpr std::int64_t kGpusComeBackMs = 5'000;
  if (settings_.check.gpus == 0 || !check_.leave()) {
    check_.stop();
    return begin_round(order);
  }
  awaits_gpus_ = order;
  gpus_timer_.start(kGpusComeBackMs, [this] { workers_.kill_helper(); });
}

void WorkerStarter::probe_has_ended() {
  gpus_timer_.stop();
  if (const auto order = std::exchange(awaits_gpus_, {})) begin_round(*order);
}

void WorkerStarter::begin_round(const agent::StartWorkers& order) {
  handlers_.on_begin(order.round);
  start_workers(order);
  reporter_.round_began(order.round);
}

void WorkerStarter::could_not_start(int local_rank, const std::string& why) const {
  handlers_.on_event(agent::WorkerNotStarted{local_rank, why});
}

// Only now is the size of the world known. One node warns, once.
void WorkerStarter::warn_of_ranks_that_are_not_there(const agent::StartWorkers& order) {
  const auto rank = rank_outside(settings_.wrap, order.round.place.world_size);
  if (!rank || order.round.place.node_rank != 0 || std::exchange(warned_of_wrap_, true)) return;
  log::warning("wrap", format("--wrap names rank {}, but the job has {} ranks, counted from 0", *rank,
                              order.round.place.world_size));
}

void WorkerStarter::start_workers(const agent::StartWorkers& order) {
  warn_of_ranks_that_are_not_there(order);
  if (settings_.workers_end_together) {
    const Status made = workers_.let_wait_for_each_other(settings_.node.local_world_size);
    if (!made) return could_not_start(0, made.error().text());
  }
  restarts_left_ = order.round.max_restarts - order.round.restart_count;
  if (!warm_.may_start(settings_.node.local_world_size)) return start_fresh(order);
  // All of them are told what they are before any of them runs.
  std::vector<process::Command> commands;
  for (int local_rank = 0; local_rank < settings_.node.local_world_size; ++local_rank) {
    auto command = worker_command(order, local_rank);
    if (!command) return could_not_start(local_rank, command.error().text());
    commands.push_back(std::move(*command));
  }
  commands_ = std::move(commands);
  if (!warm_.start_workers(commands_, [this](const std::vector<pid_t>& pids) { run_commands(pids); })) run_commands({});
}

// One after the other, so that the ends of their streams are open for one of them at a time.
void WorkerStarter::start_fresh(const agent::StartWorkers& order) {
  for (int local_rank = 0; local_rank < settings_.node.local_world_size; ++local_rank) {
    const auto command = worker_command(order, local_rank);
    if (!command) return could_not_start(local_rank, command.error().text());
    process::BindingRefusal refusal;
    const auto pid = workers_.start(local_rank, *command, &refusal);
    output_.started(local_rank);
    bindings_.started(local_rank, refusal);
    if (!pid) return could_not_start(local_rank, pid.error().text());
    channels_.started(local_rank, *pid);
    handlers_.on_event(agent::WorkerStarted{local_rank, *pid});
    if (local_rank == 0) warm_.round_began(false, restarts_left_, *command, *pid);
  }
  bindings_.warn_of_unbound();
}

// `warm`: the pids of workers that are there already; without them fresh ones are started.
void WorkerStarter::run_commands(const std::vector<pid_t>& warm) {
  const std::vector<process::Command> commands = std::exchange(commands_, {});
  const WorkerStart start = warm.empty() ? WorkerStart::kFresh : WorkerStart::kWarm;
  for (int local_rank = 0; local_rank < settings_.node.local_world_size; ++local_rank) {
    const auto index = static_cast<std::size_t>(local_rank);
    if (!warm.empty()) workers_.adopt(local_rank, warm[index]);
    const auto pid = warm.empty() ? workers_.start(local_rank, commands[index]) : Result<pid_t>(warm[index]);
    output_.started(local_rank);
    if (!pid) return could_not_start(local_rank, pid.error().text());
    channels_.started(local_rank, *pid);
    handlers_.on_event(agent::WorkerStarted{.local_rank = local_rank,
                                            .pid = *pid,
                                            .start = start,
                                            .spared_cpu_ms = warm.empty() ? 0 : warm_.spared_cpu_ms()});
    if (local_rank == 0) warm_.round_began(!warm.empty(), restarts_left_, commands.front(), *pid);
  }
  reporter_.workers_started(start);
}

// The round is stopped before its workers are there.
void WorkerStarter::give_up() {
  awaits_gpus_.reset();
  warm_.give_up_starting();
  const std::size_t count = std::exchange(commands_, {}).size();
  for (std::size_t local_rank = 0; local_rank < count; ++local_rank) output_.started(static_cast<int>(local_rank));
}

// If the worker is to run, its stdout and stderr are open until output_.started().
Result<process::Command> WorkerStarter::worker_command(const agent::StartWorkers& order, int local_rank) {
  const WorkerPlace place{
      .local_rank = local_rank,
      .restart_count = order.round.restart_count,
      .max_restarts = order.round.max_restarts,
      .node = order.round.place,
      .master_addr = order.store.address,
      .master_port = format("{}", order.store.port),
      .error_file = output_.error_file(local_rank),
      .fence = protocol::text_of_fence(order.round.fence, order.round.round),
      .training_port = order.round.training_port,
      .channels = channels_.variables(local_rank),
      .hang = channels_.hang_variables(),
  };
  const auto variables = worker_variables(settings_.worker, place);
  if (!variables) return std::unexpected(variables.error());
  if (!inherited_environment_) {
    inherited_environment_ = without_variables(settings_.worker.environment, *variables);
  }
  const int rank = order.round.place.base_rank + local_rank;
  const auto ends = output_.open_worker(local_rank, rank);
  if (!ends) return std::unexpected(ends.error());
  WorkerCommand command = wrapped(settings_.wrap,
                                  {.rank = rank,
                                   .local_rank = local_rank,
                                   .node_rank = order.round.place.node_rank,
                                   .restart_count = order.round.restart_count,
                                   .job = settings_.worker.run_id},
                                  {settings_.program, worker_arguments(settings_.worker, local_rank)});
  return process::Command{.path = command.program,
                          .arguments = std::move(command.arguments),
                          .environment = *inherited_environment_,
                          .variables = as_environment(*variables),
                          .standard_output = ends->out,
                          .standard_error = ends->err,
                          .binding = bindings_.of(local_rank)};
}

}  // namespace elastic::run
