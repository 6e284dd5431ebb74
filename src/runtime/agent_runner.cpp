#include "src/runtime/agent_runner.h"

#include <signal.h>

#include <utility>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/local_host.h"

namespace elastic::runtime {
namespace {

agent::NodeSettings with_logs(agent::NodeSettings settings, bool logs) {
  settings.logs = logs;
  return settings;
}

process::SpawnContext with_guardian(process::SpawnContext context, const process::GuardianLink& link) {
  context.guardian = link.descriptor();
  return context;
}

// One overload per effect: the compiler says which one is missing.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace

AgentRunner::AgentRunner(net::Loop& loop, const LaunchSettings& settings, net::SideThread& files,
                         std::shared_ptr<output::RunDirectory> logs, process::SpawnContext context,
                         UniqueFd guardian, Handlers handlers)
    : loop_(loop),
      settings_(settings),
      handlers_(std::move(handlers)),
      lifecycle_(with_logs(settings.node, logs != nullptr)),
      log_(settings),
      store_(loop, settings.store),
      output_(loop, settings, files, std::move(logs),
              {.on_opened = [this](protocol::RoundNumber round) { happened(agent::LogsOpened{round}); },
               .on_failed =
                   [this](protocol::RoundNumber round, std::string reason) {
                     happened(agent::LogsFailed{round, std::move(reason)});
                   }}),
      reporter_(settings),
      timer_(loop),
      guardian_(loop, std::move(guardian),
                {.on_signal =
                     [this](int signal) {
                       if (signal == SIGWINCH) return output_.resize();
                       if (signal == SIGCONT) output_.show_status();
                       happened(agent::SignalReceived{signal});
                     },
                 .on_lost = [this] { happened(agent::GuardianLost{}); }}),
      workers_(loop, with_guardian(context, guardian_),
               {.on_exit =
                    [this](int local_rank, ExitStatus status) {
                      output_.ended(local_rank);
                      happened(agent::WorkerExited{local_rank, status, wall_clock_ms()});
                    },
                .on_all_gone = [this] { happened(agent::AllGone{}); }}) {}

void AgentRunner::begin() {
  log_.began();
  happened(agent::Begin{});
}

void AgentRunner::from_coordinator(protocol::CoordinatorMessage message) {
  happened(agent::FromCoordinator{std::move(message)});
}

// Effects may bring about further events at once; they are taken one after the other, never nested.
void AgentRunner::happened(agent::Event event) {
  events_.push_back(std::move(event));
  if (deciding_) return;
  deciding_ = true;
  while (!events_.empty()) {
    const agent::Event next = std::move(events_.front());
    events_.pop_front();
    log_.happened(next, loop_.now_ms());
    for (const agent::Effect& effect : lifecycle_.on_event(next, loop_.now_ms())) {
      log_.decided(effect);
      carry_out(effect);
    }
  }
  output_.wait_for(lifecycle_.waiting());
  deciding_ = false;
}

void AgentRunner::carry_out(const agent::Effect& effect) {
  std::visit(Overloaded{
                 [&](const agent::ToCoordinator& e) {
                   if (const auto* stopped = std::get_if<protocol::NodeStopped>(&e.message)) {
                     reporter_.round_ended(stopped->failures);
                   }
                   handlers_.to_coordinator(e.message);
                 },
                 // No check is built in yet: every node is fit.
                 [&](const agent::CheckNode& e) { happened(agent::NodeChecked{e.round, e.phase, {}}); },
                 [&](const agent::OpenStore&) { open_store(); },
                 [&](const agent::CloseStore&) {
                   guardian_.send({process::GuardianMessage::Kind::kRoundOver, 0});
                   store_.close();
                   output_.end_round();
                 },
                 [&](const agent::StartWorkers& e) {
                   start_workers(e);
                   reporter_.round_began(e.round);
                 },
                 [&](const agent::OpenLogs& e) {
                   output_.open_round(e.round, e.restart_count);
                 },
                 [&](const agent::PrepareLogs&) { output_.prepare_round(); },
                 [&](const agent::GiveUpLogs&) { output_.give_up_logs(); },
                 [&](const agent::SignalWorkers& e) { workers_.signal_groups(e.signal); },
                 [&](const agent::AwaitAllGone&) { workers_.expect_all_gone(); },
                 [&](const agent::NameSurvivors&) { name_survivors(); },
                 [&](const agent::AbandonWorkers&) { workers_.abandon(); },
                 [&](const agent::Paused&) {
                   output_.hide_status();  // the terminal will be the shell's
                   guardian_.send({process::GuardianMessage::Kind::kPaused, 0});
                 },
                 [&](const agent::StartTimer& e) {
                   timer_.start(e.delay_ms, [this] { happened(agent::TimerFired{}); });
                 },
                 [&](const agent::StopTimer&) { timer_.stop(); },
                 [&](const agent::Warn& e) { log::warning(e.event, e.text); },
                 [&](const agent::Finish& e) { handlers_.finished(e.verdict); },
             },
             effect);
}

void AgentRunner::name_survivors() {
  std::vector<std::string> names;
  for (const process::ProcessFacts& facts : workers_.survivors()) {
    names.push_back(process::describe(process::process_facts(facts.pid)));
  }
  if (!names.empty()) happened(agent::SurvivorsNamed{join(names, ", ")});
}

void AgentRunner::open_store() {
  const auto endpoint = store_.open();
  if (endpoint) {
    happened(agent::StoreOpened{*endpoint});
  } else {
    happened(agent::StoreFailed{endpoint.error().text()});
  }
}

void AgentRunner::start_workers(const agent::StartWorkers& order) {
  for (int local_rank = 0; local_rank < settings_.node.local_world_size; ++local_rank) {
    const auto pid = start_worker(order, local_rank);
    if (!pid) return happened(agent::WorkerNotStarted{local_rank, pid.error().text()});
    happened(agent::WorkerStarted{local_rank, *pid});
  }
}

Result<pid_t> AgentRunner::start_worker(const agent::StartWorkers& order, int local_rank) {
  const agent::WorkerPlace place{
      .local_rank = local_rank,
      .restart_count = order.round.restart_count,
      .max_restarts = order.round.max_restarts,
      .node = order.round.place,
      .master_addr = order.store.address,
      .master_port = format("{}", order.store.port),
      .error_file = output_.error_file(local_rank),
  };
  const auto variables = agent::worker_variables(settings_.worker, place);
  if (!variables) return std::unexpected(variables.error());
  if (!inherited_environment_) {
    inherited_environment_ = agent::without_variables(settings_.worker.environment, *variables);
  }
  const auto ends = output_.open_worker(local_rank, order.round.place.base_rank + local_rank);
  if (!ends) return std::unexpected(ends.error());
  const auto pid = workers_.start(local_rank, {.path = settings_.program,
                                               .arguments = agent::worker_arguments(settings_.worker, local_rank),
                                               .environment = *inherited_environment_,
                                               .variables = agent::as_environment(*variables),
                                               .standard_output = ends->out,
                                               .standard_error = ends->err});
  output_.started(local_rank);
  return pid;
}

}  // namespace elastic::runtime
