#include "cli/run/worker_channels.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/run/error_file_watch.h"
#include "cli/run/file_timers.h"
#include "cli/run/hang_variables.h"
#include "cli/run/job_report.h"
#include "cli/run/launch_settings.h"
#include "cli/run/node_stacks.h"
#include "cli/run/output_host.h"
#include "cli/run/part_settings.h"
#include "cli/run/progress_host.h"
#include "cli/run/tuning_host.h"
#include "rendezvous/store/store_host.h"
#include "src/net/local_host.h"
#include "src/process/clock.h"
#include "src/process/tree.h"
#include "src/status/snapshot.h"

namespace elastic::run {

WorkerChannels::WorkerChannels(net::Loop& loop, net::SideThread& files, const LaunchSettings& settings,
                               const std::string& directory, process::WorkerTree& workers, store::StoreHost& store,
                               const OutputHost& output, JobReporter& reporter,
                               std::function<void(agent::Event)> on_event)
    : settings_(settings),
      output_(output),
      reporter_(reporter),
      on_event_(std::move(on_event)),
      progress_(std::make_unique<ProgressHost>(
          loop, settings.progress, directory, settings.node.local_world_size,
          [this](const protocol::NodeProgress& made) { on_event_(agent::ProgressMade{made}); })),
      tuning_(std::make_unique<TuningHost>(
          loop, settings.tuning, directory,
          TuningHost::Handlers{
              .last_step = [this]() -> std::optional<tuning::StepSeen> {
                const auto seen = progress_->last_step();
                if (!seen) return {};
                return tuning::StepSeen{.source = seen->source, .step = seen->step, .at_ms = seen->at_ms};
              },
              .say = [this](protocol::LoaderSays says) { on_event_(agent::LoaderSaid{std::move(says)}); }})),
      stacks_(std::make_unique<NodeStacks>(
          loop, workers, [this](protocol::NodeStacks told) { on_event_(agent::StacksCollected{std::move(told)}); })),
      file_timers_(std::make_unique<FileTimers>(
          loop, settings.file_timers, directory,
          FileTimers::Handlers{
              .stacks = {
                  .start = [&workers](const process::Command& command) { return workers.start_onlooker(command); },
                  .kill = [&workers](pid_t pid) { workers.end_onlooker(pid); }},
              .on_signalled = [this](
                                  pid_t worker,
                                  report::ExpiredTimer timer) { reporter_.timer_expired(worker, std::move(timer)); }})),
      hang_(loop, files, evidence_settings(settings), settings.worker.run_id,
            settings.node.rules.hang != protocol::JobRules::Hang::kOff, hang_handlers(workers, store)) {
  if (settings.warm.rules.mode == warm::Mode::kOff) return;
  error_files_ = std::make_unique<ErrorFileWatch>(loop, files, [this](protocol::RoundNumber round, int local_rank) {
    on_event_(agent::ErrorFileWritten{round, local_rank, process::wall_clock_ms()});
  });
}

WorkerChannels::~WorkerChannels() = default;

HangHost::Handlers WorkerChannels::hang_handlers(process::WorkerTree& workers, store::StoreHost& store) {
  return {.evidence = {.start = [&workers](const process::Command& command) { return workers.start_onlooker(command); },
                       .kill = [&workers](pid_t pid) { workers.end_onlooker(pid); },
                       .store = [&store](int world_size) { return store.view(world_size); }},
          .on_event = on_event_,
          .tell_progress = [this] { progress_->report_news(); },
          .progress_of = [this](int local_rank) { return progress_->of_worker(local_rank); },
          .hang_is = [this](const std::optional<report::Hang>& hang) { reporter_.hang_is(hang); }};
}

std::vector<Variable> WorkerChannels::variables(int local_rank) const {
  std::vector<Variable> variables = progress_->variables(local_rank);
  std::ranges::move(tuning_->variables(), std::back_inserter(variables));
  std::ranges::move(file_timers_->variables(), std::back_inserter(variables));
  return variables;
}

// Beside the directories of the attempt's ranks.
std::string WorkerChannels::hang_directory() const {
  const std::string file = output_.error_file(0);
  const std::size_t rank = file.rfind('/', file.rfind('/') - 1);
  return file.empty() || rank == std::string::npos ? "" : file.substr(0, rank) + "/hang";
}

// Where logs are kept, dumps lie beside the attempts.
const std::vector<Variable>& WorkerChannels::hang_variables() {
  if (hang_variables_) return *hang_variables_;
  hang_variables_.emplace();
  if (!settings_.node.rules.restarts_hangs()) return *hang_variables_;
  const std::string attempt = hang_directory();  // .../attempt_0/hang
  const std::size_t run = attempt.rfind('/', attempt.rfind('/') - 1);
  const bool has_logs = !attempt.empty() && run != std::string::npos;
  hang_variables_ = run::hang_variables(settings_.worker.environment,
                                        {.pipes = progress_->directory(),
                                         .dumps = has_logs ? attempt.substr(0, run) : progress_->directory(),
                                         .ras_port = net::free_port()});
  return *hang_variables_;
}

void WorkerChannels::watch_error_files(protocol::RoundNumber round) {
  if (!error_files_ || !output_.keeps_logs()) return;
  std::vector<std::string> paths;
  for (int local_rank = 0; local_rank < settings_.node.local_world_size; ++local_rank) {
    paths.push_back(output_.error_file(local_rank));
  }
  error_files_->begin_round(round, std::move(paths));
}

void WorkerChannels::lead_round(const protocol::PrepareRound& round) { tuning_->lead_round(round); }

void WorkerChannels::begin_round(const protocol::PrepareRound& round) {
  progress_->begin_round(round.round, round.place.base_rank);
  tuning_->begin_round(round);
  file_timers_->begin_round(round.place.base_rank);
  hang_.begin_round(round, hang_directory(), hang_variables());
  watch_error_files(round.round);
}

void WorkerChannels::started(int local_rank, pid_t pid) {
  progress_->started(local_rank, pid);
  hang_.started(local_rank, pid);
  file_timers_->started(local_rank, pid);
}

void WorkerChannels::wrote(int local_rank, bool is_err, std::string_view bytes) {
  progress_->wrote(local_rank, is_err, bytes);
}

void WorkerChannels::stop_timers() { file_timers_->end_round(); }

void WorkerChannels::rank_failed(protocol::RoundNumber round, std::string_view memory) {
  tuning_->rank_failed(round, memory);
}

void WorkerChannels::end_round(bool has_failed) {
  if (error_files_) error_files_->end_round();
  tuning_->end_round(has_failed);
  progress_->end_round();
  hang_.end_round();
  file_timers_->end_round();
}

void WorkerChannels::finish() { tuning_->finish(); }

void WorkerChannels::perform(const agent::HearLoader& effect) { tuning_->perform(effect); }

void WorkerChannels::perform(const agent::CollectStacks& effect, const status::Node& node) {
  stacks_->collect(effect.collection, node);
}

void WorkerChannels::fill_status(status::Node& node) const { progress_->fill_status(node); }

bool WorkerChannels::files_hang() { return progress_->hangs() || tuning_->hangs(); }

}  // namespace elastic::run
