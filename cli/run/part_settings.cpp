#include "cli/run/part_settings.h"

#include "cli/run/check_runner.h"
#include "cli/run/evidence_order.h"
#include "cli/run/job_report.h"
#include "cli/run/launch_settings.h"
#include "health/probe/probe_process.h"
#include "rendezvous/membership/training_port.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "src/net/local_host.h"
#include "src/process/devices.h"

namespace elastic::run {

CheckRunnerSettings check_settings(const LaunchSettings& settings) {
  return {.task = {.check = settings.check,
                   .local_world_size = settings.node.local_world_size,
                   .log_directory = settings.logs.base.value_or(""),
                   .python = settings.program,
                   .temporary = settings.logs.temporary},
          .address = settings.node.address,
          .environment = settings.worker.environment};
}

EvidenceSettings evidence_settings(const LaunchSettings& settings) {
  const Environment& environment = settings.worker.environment;
  const process::GpuInventory gpus = process::find_gpus(lookup(environment, health::kProbeVariables[4]).value_or("/"));
  return {.environment = environment,
          .asks_gpus = process::visible_gpus(gpus, lookup(environment, "CUDA_VISIBLE_DEVICES")) > 0,
          .gpu_program = settings.check.gpu_program,
          .temporary = settings.logs.temporary};
}

std::shared_ptr<const protocol::TrainingPorts> training_ports(const LaunchSettings& settings) {
  if (settings.worker.training_port == 0) return {};
  return std::make_shared<const protocol::TrainingPorts>(
      membership::look_at_ports(settings.worker.training_port, net::is_port_free));
}

ReportSettings report_settings(const LaunchSettings& settings) {
  return {.run_id = settings.worker.run_id,
          .title = settings.title,
          .executable = settings.program,
          .arguments = settings.worker.arguments,
          .local_world_size = settings.node.local_world_size,
          .max_restarts = settings.max_restarts,
          .alone = settings.rendezvous.alone};
}

OnEvent::Settings on_event_settings(const LaunchSettings& settings) {
  return {.command = settings.on_event, .kinds = settings.on_event_kinds, .environment = settings.worker.environment};
}

events::NodeEventLog::Settings node_event_log_settings(const LaunchSettings& settings) {
  return {.run_id = settings.worker.run_id,
          .title = settings.title,
          .endpoint = settings.rendezvous.alone ? "" : transport::endpoint_text(settings.rendezvous),
          .local_world_size = settings.node.local_world_size,
          .max_restarts = settings.max_restarts,
          .logs = settings.logs.enabled,
          .loss_timeout_ms = settings.rendezvous.gives_loss_timeout ? settings.rendezvous.loss_timeout_ms : 0};
}

}  // namespace elastic::run
