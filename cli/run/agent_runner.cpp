#include "cli/run/agent_runner.h"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/run/check_runner.h"
#include "cli/run/final_status.h"
#include "cli/run/guardian_orders.h"
#include "cli/run/job_coordinator.h"
#include "cli/run/job_report.h"
#include "cli/run/launch_settings.h"
#include "cli/run/node_telemetry.h"
#include "cli/run/output_host.h"
#include "cli/run/part_settings.h"
#include "cli/run/segment_file.h"
#include "cli/run/worker_channels.h"
#include "cli/run/worker_signals.h"
#include "cli/run/worker_starter.h"
#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/random_id.h"
#include "rendezvous/store/store_host.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "src/base/overloaded.h"
#include "src/base/patience.h"
#include "src/base/text.h"
#include "src/net/local_host.h"
#include "src/process/clock.h"
#include "src/process/random.h"

namespace elastic::run {
namespace {

agent::NodeSettings node_settings(const LaunchSettings& settings, bool logs) {
  agent::NodeSettings node = settings.node;
  node.training_ports = training_ports(settings);
  node.logs = logs;
  node.has_segment_file = !settings.segment_file.empty();
  node.tells_crashes = true;
  node.finds_deaths = settings.tuning.gives_file;
  node.error_files_stop = settings.warm.rules.mode != warm::Mode::kOff;
  if (settings.rendezvous.alone) return node;
  node.agent = protocol::random_id(process::random_number());
  node.shares_details = true;
  node.addresses = join(net::own_addresses(), " ");
  if (node.addresses.size() > limits::kAgentAddressesBytes)
    node.addresses.clear();  // then the store admits every address
  if (node.address.empty()) node.address = net::full_host_name();
  node.hosts_coordinator = false;  // until the connection says so
  node.coordinator_may_move = settings.rendezvous.has_peer_server;
  return node;
}

agent::LinkSettings link_settings(const LaunchSettings& settings, protocol::AgentId agent) {
  if (settings.rendezvous.alone) return {.job = settings.worker.run_id, .agent = agent, .local = true};
  return {.job = settings.worker.run_id,
          .endpoint = transport::endpoint_text(settings.rendezvous),
          .agent = agent,
          .secret = settings.rendezvous.secret,
          .join_timeout_ms = settings.node.rules.join_timeout_ms,
          .rejoin_ms = settings.rendezvous.rejoin_ms,
          .seed = process::random_number(),
          .may_meet_others = settings.rendezvous.serves_own_job_only,
          .discovery_explains = settings.rendezvous.place == transport::RendezvousSettings::Place::kFile};
}

agent::Agent make_agent(const LaunchSettings& settings, bool logs) {
  agent::NodeSettings node = node_settings(settings, logs);
  agent::LinkSettings link = link_settings(settings, node.agent);
  return agent::Agent(std::move(node), std::move(link));
}

process::SpawnContext with_guardian(process::SpawnContext context, const GuardianOrders& guardian) {
  context.guardian = guardian.descriptor();
  return context;
}

}  // namespace

AgentRunner::AgentRunner(net::Loop& loop, const LaunchSettings& settings, net::SideThread& files,
                         std::shared_ptr<output::RunDirectory> logs, const std::string& directory,
                         process::SpawnContext context, process::GuardianChannel guardian, Handlers handlers)
    : loop_(loop),
      settings_(settings),
      handlers_(std::move(handlers)),
      agent_(make_agent(settings, logs != nullptr)),
      telemetry_(std::make_unique<NodeTelemetry>(loop, settings)),
      store_(std::make_unique<store::StoreHost>(loop, settings.store)),
      check_(std::make_unique<CheckRunner>(
          loop, check_settings(settings),
          CheckRunner::Handlers{
              .on_checked = [this](agent::NodeChecked checked) { on_event(std::move(checked)); },
              .start = [this](const process::Command& command) { return workers_.start_helper(command); },
              .kill = [this] { workers_.kill_helper(); }})),
      output_(std::make_unique<OutputHost>(
          loop, settings.output, files, logs,
          OutputHost::Handlers{
              .on_opened = [this](protocol::RoundNumber round) { on_event(agent::LogsOpened{round}); },
              .on_failed =
                  [this](protocol::RoundNumber round, std::string reason) {
                    on_event(agent::LogsFailed{round, std::move(reason)});
                  },
              .on_read = [this](int local_rank, bool is_err,
                                std::string_view bytes) { channels_->wrote(local_rank, is_err, bytes); }})),
      reporter_(std::make_unique<JobReporter>(report_settings(settings), files, std::move(logs), *output_)),
      timer_(loop),
      guardian_(std::make_unique<GuardianOrders>(loop, std::move(guardian), settings.worker.run_id,
                                                 GuardianOrders::Handlers{.on_signal =
                                                                              [this](int signal) {
                                                                                if (signal == SIGWINCH)
                                                                                  return output_->resize();
                                                                                if (signal == SIGCONT)
                                                                                  output_->show_status();
                                                                                signals_->received(signal);
                                                                              },
                                                                          .on_lost =
                                                                              [this](pid_t pid) {
                                                                                if (!signals_->tell_end(0))
                                                                                  on_event(agent::GuardianLost{pid});
                                                                              }})),
      workers_(loop, with_guardian(context, *guardian_),
               {.on_exit =
                    [this](int local_rank, ExitStatus status) {
                      signals_->read_all();  // it may have signalled the launcher before it ended
                      output_->ended(local_rank);
                      channels_->ended(local_rank);
                      on_event(agent::WorkerExited{local_rank, status, process::wall_clock_ms()});
                    },
                .on_helper_exit =
                    [this](ExitStatus status) {
                      check_->exited(status);
                      starter_->probe_has_ended();
                    },
                .on_aside_exit = [this](ExitStatus status) { starter_->aside_has_ended(status); },
                .on_all_gone = [this] { on_event(agent::AllGone{training_ports(settings_)}); }}),
      signals_(std::make_unique<WorkerSignals>(loop, settings, workers_, agent_.lifecycle(), *telemetry_,
                                               [this](int signal, pid_t worker) {
                                                 on_event(agent::SignalReceived{signal, worker});
                                               })),
      channels_(std::make_unique<WorkerChannels>(loop, files, settings, directory, workers_, *store_, *output_,
                                                 *reporter_,
                                                 [this](agent::Event event) { on_event(std::move(event)); })),
      starter_(std::make_unique<WorkerStarter>(
          loop, settings, workers_, context.cgroup_procs, *check_, *output_, *channels_, *reporter_,
          WorkerStarter::Handlers{.on_begin = [this](const protocol::PrepareRound& round) { begin_round(round); },
                                  .on_event = [this](agent::Event event) { on_event(std::move(event)); }})),
      coordinator_(std::make_unique<JobCoordinator>(
          loop, settings, agent_.link().agent(),
          JobCoordinator::Handlers{
              .on_event = [this](agent::AgentEvent event) { on_event(std::move(event)); },
              .on_hosting = handlers_.on_hosting,
              .on_peer_server = handlers_.on_peer_server,
              .to_store = [this](std::unique_ptr<net::Stream> stream,
                                 std::span<const std::uint8_t> bytes) { store_->adopt(std::move(stream), bytes); }})) {
  if (!settings.segment_file.empty()) {
    segment_ = std::make_unique<SegmentFile>(
        loop, settings.segment_file,
        SegmentFile::Handlers{
            .is_idle = [this] { return agent_.lifecycle().is_idle(); },
            .on_seen = [this](std::string drained) { on_event(agent::SegmentSeen{std::move(drained)}); }});
  }
}

AgentRunner::~AgentRunner() = default;

bool AgentRunner::guardian_is_lost() const { return guardian_->is_lost(); }

void AgentRunner::on_signal(std::function<void(int signal)> call) { signals_->on_end(std::move(call)); }

const std::vector<health::Finding>& AgentRunner::check_findings() const { return check_->findings(); }

bool AgentRunner::files_hang() { return channels_->files_hang() || (segment_ && segment_->hangs()); }

void AgentRunner::flush_output() { output_->flush(); }

void AgentRunner::leave(int status) const { guardian_->leave(status); }

void AgentRunner::begin() {
  telemetry_->began();
  if (!segment_) return on_event(agent::Begin{});
  segment_->look_at_file([this] { on_event(agent::Begin{}); });
}

// Effects may bring about further events at once, which wait in the queue until the present event is done.
void AgentRunner::on_event(agent::AgentEvent event) {
  events_.push_back(std::move(event));
  if (deciding_) return;
  deciding_ = true;
  while (!events_.empty()) {
    const agent::AgentEvent next = std::move(events_.front());
    events_.pop_front();
    if (const auto* life = std::get_if<agent::Event>(&next)) telemetry_->on_event(*life);
    // The lease goes on while the machine is suspended, and so does this clock.
    for (const agent::AgentEffect& effect : agent_.on_event(next, process::boottime_ms())) perform(effect);
    telemetry_->count(next, agent_.lifecycle());
    if (events_.empty() && coordinator_->is_own_over(agent_.link())) events_.push_back(agent::OwnCoordinatorOver{});
  }
  telemetry_->tell_link(agent_);
  guardian_->renew(agent_.lifecycle(), agent_.link(), *coordinator_);
  coordinator_->renew_peer_facts(agent_.link(), process::boottime_ms());
  std::optional<Waiting> waits = waiting();
  telemetry_->waits_for(waits);
  output_->wait_for(std::move(waits));
  deciding_ = false;
}

void AgentRunner::perform(const agent::AgentEffect& effect) {
  std::visit(Overloaded{
                 [&](const agent::Effect& e) {
                   telemetry_->on_effect(e);
                   perform(e);
                 },
                 [&](const agent::Link::Connect& e) { coordinator_->perform(e, agent_.link()); },
                 [&](const agent::Link::Disconnect& e) { coordinator_->perform(e); },
                 [&](const agent::Link::Write& e) { coordinator_->perform(e); },
                 [&](const agent::Link::Deliver& e) { telemetry_->on_event(agent::FromCoordinator{e.message}); },
                 [&](const agent::Link::Log& e) { telemetry_->log_link(e.text); },
                 [&](const agent::StartLinkTimer& e) { coordinator_->perform(e); },
             },
             effect);
}

std::optional<Waiting> AgentRunner::waiting() const {
  std::optional<Waiting> waiting = agent_.waiting();
  if (!waiting) return waiting;
  // Waiting is drawn by the loop's clock.
  const std::int64_t behind_ms = process::boottime_ms() - loop_.now_ms();
  waiting->since_ms -= behind_ms;
  waiting->because_ms -= behind_ms;
  if (waiting->until_ms) *waiting->until_ms -= behind_ms;
  // Who waits here for the first round may wait for nodes that were told another place.
  if (waiting->for_others && agent_.link().attached() && agent_.link().own_incarnation() == 0) {
    discovery::EndpointAdvice advice = coordinator_->advice();
    if (!advice.is_told) waiting->advice = std::move(advice.text);
    waiting->advice_at_once = advice.is_mistake;
  }
  return waiting;
}

status::Node AgentRunner::status() const {
  status::Node node = agent_.lifecycle().status();
  node.job = settings_.worker.run_id;
  if (node.name.empty()) node.name = net::full_host_name();
  if (const auto waits = waiting(); waits && !node.ready()) {
    node.waits_for = waits->because.empty() ? waits->what : format("{}; {}", waits->what, waits->because);
  }
  telemetry_->fill_status(node);
  node.warm = starter_->warm_status();
  node.store = store_->status();
  channels_->fill_status(node);
  const status::Whereabouts is = whereabouts();
  node.hosts_coordinator = coordinator_->is_hosted_here() && is.kind == status::Whereabouts::Kind::kHere;
  if (is.kind == status::Whereabouts::Kind::kElsewhere) node.coordinator_at = status::place_for(is, {});
  node.endpoint = agent_.link().endpoint();
  node.connected = agent_.link().attached();
  return node;
}

status::Whereabouts AgentRunner::whereabouts() const {
  return coordinator_->whereabouts(agent_.link(), agent_.lifecycle().has_job_result());
}

void AgentRunner::perform(const agent::Effect& effect) {
  std::visit(
      Overloaded{
          [](const agent::ToCoordinator&) {},  // the link has written it
          [&](const agent::CheckNode& e) { check_->perform(e); },
          [&](const agent::OpenStore& e) {
            channels_->lead_round(agent_.lifecycle().order());
            open_store(e.admits);
          },
          [&](const agent::CloseStore&) {
            starter_->give_up();
            check_->stop();
            guardian_->end_round();
            reporter_->round_ended(agent_.lifecycle().failures());
            starter_->round_ended(has_failed());
            store_->close();
            output_->end_round();
            channels_->end_round(has_failed());
          },
          [&](const agent::StartWorkers& e) { starter_->perform(e); },
          [&](const agent::OpenLogs& e) { output_->open_round(e.round, e.restart_count); },
          [&](const agent::PrepareLogs&) { output_->prepare_round(); },
          [&](const agent::GiveUpLogs&) { output_->give_up_logs(); },
          [&](const agent::SignalWorkers& e) {
            starter_->give_up();
            if (!agent_.lifecycle().runs_workers()) channels_->stop_timers();  // they are being stopped
            signals_->perform(e);
          },
          [&](const agent::AwaitAllGone&) {
            starter_->give_up();
            workers_.expect_all_gone();
          },
          [&](const agent::NameSurvivors&) { name_survivors(); },
          [&](const agent::FindBackground&) { find_background(); },
          [&](const agent::LeaveBackground&) {
            workers_.abandon();
            guardian_->leave_background();
          },
          [&](const agent::AbandonWorkers&) { workers_.abandon(); },
          [&](const agent::Paused&) {
            output_->hide_status();  // the shell is about to use the terminal
            guardian_->pause();
          },
          [&](const agent::StartTimer& e) { timer_.start(e.delay_ms, [this] { on_event(agent::TimerFired{}); }); },
          [&](const agent::StopTimer&) { timer_.stop(); },
          [&](const agent::Warn&) {},  // telemetry_ has logged it
          [&](const agent::GatherDetails&) {
            reporter_->gather_details(*agent_.lifecycle().job_result(), [this](std::string details) {
              on_event(agent::DetailsGathered{std::move(details)});
            });
          },
          [&](const agent::CollectStacks& e) { channels_->perform(e, agent_.lifecycle().status()); },
          [&](const agent::FindCrash& e) {
            output_->end_round();
            find_first_failure(e.round);
          },
          [&](const agent::Finish& e) {
            channels_->finish();
            starter_->finish();
            guardian_->finish(!e.job_result.left_behind.empty());
            protocol::JobResult job_result = e.job_result;
            const bool has_been_in_round = agent_.lifecycle().order().place.world_size > 0;
            job_result.reason = final_reason(job_result, has_been_in_round, coordinator_->advice().text);
            handlers_.finished(std::move(job_result), e.details);
          },
          [&](const agent::ReadEvidence& e) { channels_->perform(e); },
          [&](const agent::StopEvidence& e) { channels_->perform(e); },
          [&](const agent::AwaitDumps& e) {
            channels_->stop_timers();  // the round is being stopped
            store_->ask_for_dumps();
            channels_->perform(e);
          },
          [&](const agent::TellHang& e) { channels_->perform(e); },
          [&](const agent::TellHangOver& e) { channels_->perform(e); },
          [&](const agent::HearLoader& e) { channels_->perform(e); },
          [&](const agent::LookAtSegment&) { segment_->look_at_file(); },
      },
      effect);
}

void AgentRunner::open_store(const std::string& admits) {
  const auto endpoint = store_->open(admits.empty() ? store::Admission() : store::Admission(split(admits, ' ')));
  if (endpoint) {
    on_event(agent::StoreOpened{*endpoint});
  } else {
    on_event(agent::StoreFailed{endpoint.error().text()});
  }
}

void AgentRunner::begin_round(const protocol::PrepareRound& round) {
  signals_->workers_began();
  output_->begin_round();
  channels_->begin_round(round);
  guardian_->begin_round(round.round, agent_.link(), *coordinator_);
}

bool AgentRunner::has_failed() const {
  return std::ranges::any_of(agent_.lifecycle().failures(), [](const auto& failure) { return !failure.stopped_by_us; });
}

void AgentRunner::find_first_failure(protocol::RoundNumber round) {
  reporter_->find_first_failure(agent_.lifecycle().failures(), settings_.tuning.gives_file,
                                [this, round](const JobReporter::FirstFailure& found) {
                                  channels_->rank_failed(round, found.memory);
                                  on_event(agent::CrashFound{round, found.crash});
                                });
}

void AgentRunner::name_survivors() {
  std::vector<std::string> names;
  for (const process::ProcessFacts& facts : workers_.survivors()) {
    names.push_back(process::describe(process::process_facts(facts.pid)));
  }
  if (!names.empty()) on_event(agent::SurvivorsNamed{join(names, ", ")});
}

// Processes of a worker that end by themselves do so within a moment of its end, and are not named.
void AgentRunner::find_background() {
  constexpr std::int64_t kEndsByItselfMs = 100;
  workers_.await_childless(patient_ms(kEndsByItselfMs),
                           [this] { on_event(agent::BackgroundFound{background_text(workers_.background())}); });
}

// "process 4711 (rank 3: aws s3 sync /ckpt s3://b), process 4712 (sleep 60) and 3 more"
std::string AgentRunner::background_text(const std::vector<process::WorkerTree::Background>& left) const {
  constexpr std::size_t kNamed = 8;
  constexpr std::size_t kCommandBytes = 160;
  std::vector<std::string> names;
  for (const auto& [facts, local_rank] : left) {
    if (names.size() == kNamed) break;
    const std::string command = process::command_line(facts.pid);
    const int rank = agent_.lifecycle().base_rank() + local_rank.value_or(0);
    names.push_back(format("process {} ({}{})", facts.pid, local_rank ? format("rank {}: ", rank) : "",
                           printable(command.empty() ? facts.name : command, kCommandBytes)));
  }
  const std::size_t more = left.size() - names.size();
  return join(names, ", ") + (more > 0 ? format(" and {} more", more) : "");
}

}  // namespace elastic::run
