#include "cli/run/node_telemetry.h"

#include <algorithm>
#include <chrono>

#include "cli/run/launch_settings.h"
#include "cli/run/log_writer.h"
#include "cli/run/part_settings.h"
#include "src/base/log.h"
#include "src/net/local_host.h"

namespace elastic::run {
namespace {

// PyTorch's events have durations with fractions of a millisecond.
double fine_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

std::optional<events::TorchEvents> make_torch_events(const LaunchSettings& settings) {
  if (!settings.torch_events) return {};
  return events::TorchEvents({.run_id = settings.worker.run_id,
                              .role = settings.node.role,
                              .host = net::full_host_name(),
                              .backend = settings.rdzv_backend,
                              .entry_point = settings.entry_point,
                              .local_world_size = settings.node.local_world_size},
                             fine_ms());
}

void print_torch(const std::string& lines) {
  if (!lines.empty()) log::print(lines);
}

}  // namespace

NodeTelemetry::NodeTelemetry(net::Loop& loop, const LaunchSettings& settings)
    : loop_(loop), event_log_(node_event_log_settings(settings)), torch_events_(make_torch_events(settings)) {}

void NodeTelemetry::began() const { write_log(event_log_.began()); }

void NodeTelemetry::on_event(const agent::Event& event) {
  write_log(event_log_.on_event(event, loop_.now_ms()));
  if (torch_events_) print_torch(torch_events_->on_event(event, fine_ms()));
}

void NodeTelemetry::on_effect(const agent::Effect& effect) {
  write_log(event_log_.on_effect(effect, loop_.now_ms()));
  if (torch_events_) print_torch(torch_events_->on_effect(effect, fine_ms()));
}

void NodeTelemetry::count(const agent::AgentEvent& event, const agent::Lifecycle& lifecycle) {
  const auto* life = std::get_if<agent::Event>(&event);
  if (life == nullptr) return;
  if (const auto* started = std::get_if<agent::WorkerStarted>(life)) {
    ++workers_started_;
    if (started->start == WorkerStart::kWarm) ++warm_started_;
    spared_cpu_ms_ += started->spared_cpu_ms;
  }
  const auto* exited = std::get_if<agent::WorkerExited>(life);
  if (exited == nullptr || exited->exit.success()) return;
  if (std::ranges::any_of(lifecycle.failures(), [exited](const protocol::WorkerFailure& failure) {
        return failure.local_rank == exited->local_rank && !failure.stopped_by_us;
      })) {
    ++workers_failed_;
  }
}

void NodeTelemetry::log_link(const std::string& text) {
  link_problem_ = text;
  log::info("coordinator_link", text);
}

void NodeTelemetry::tell_link(const agent::Agent& agent) {
  const agent::Lifecycle& life = agent.lifecycle();
  write_log(event_log_.coordinator_is(agent.link().attached(), life.needs_lease() && !life.has_job_result(),
                                      link_problem_, agent.link().loss_timeout_ms()));
}

void NodeTelemetry::waits_for(const std::optional<Waiting>& waits) {
  write_log(event_log_.waits_for(waits, loop_.now_ms()));
}

void NodeTelemetry::signalled_alone(int signal, const std::vector<int>& local_ranks) const {
  write_log(event_log_.signalled_alone(signal, local_ranks));
}

void NodeTelemetry::ended(const protocol::JobResult& job_result, const std::vector<std::string>& error_files) const {
  if (torch_events_) print_torch(torch_events_->ended(job_result, error_files));
}

void NodeTelemetry::fill_status(status::Node& node) const {
  node.workers_started = workers_started_;
  node.workers_failed = workers_failed_;
  node.warm_started = warm_started_;
  node.spared_cpu_ms = spared_cpu_ms_;
}

}  // namespace elastic::run
