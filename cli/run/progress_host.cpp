#include "cli/run/progress_host.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "health/progress/limits.h"
#include "src/base/check.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::run {
namespace {

using progress::RankProgress;
using progress::StepPattern;

std::shared_ptr<const StepPattern> compiled(const std::string& pattern) {
  if (pattern.empty()) return nullptr;
  auto made = StepPattern::make(pattern);
  ELASTIC_CHECK(made.has_value());  // the command line has been checked
  return std::make_shared<const StepPattern>(std::move(*made));
}

// A script asks its launcher by NVRx to leave out its node, or to end the job: elastic-run leaves that to its operator.
std::string why_not_done(const progress::nvrx::Request& request) {
  using Action = progress::nvrx::Request::Action;
  if (request.action == Action::kContinue) return {};
  const bool is_of_node = request.action == Action::kExcludeThisNode;
  const std::string what = is_of_node ? "leave out its node" : "end the job";
  const std::string how = is_of_node ? "--drain" : "--stop";
  log::warning("nvrx_request", format("rank {} asks by NVRx to {} ({}), which is not done; an operator can, by {}",
                                      printable(request.rank), what, printable(request.description), how));
  return format("elastic-run does not {} for a script; an operator can, by {}", what, how);
}

}  // namespace

ProgressHost::ProgressHost(net::Loop& loop, const ProgressSettings& settings, std::string directory, int workers,
                           std::function<void(const protocol::NodeProgress&)> on_report)
    : loop_(loop),
      settings_(settings),
      directory_(std::move(directory)),
      workers_(workers),
      on_report_(std::move(on_report)),
      node_(compiled(settings.pattern)),
      pipes_(loop,
             [this](int local_rank, std::string_view bytes) {
               if (!is_running_) return;
               node_.rank(local_rank).said(bytes, loop_.now_ms());
               plan_report();
             }),
      nvrx_(loop, settings.nvrx_sections,
            {.on_word = [this](int local_rank, const progress::NvrxWord& word) { heard(local_rank, word); },
             .on_request = why_not_done}),
      tails_(loop, limits::kProgressReadBytes,
             [this](const std::vector<output::FileTails::Piece>& pieces) { read_pieces(pieces); }),
      timer_(loop) {
  if (!directory_.empty()) open(directory_);
}

void ProgressHost::open(const std::string& directory) {
  const Status opened = pipes_.open(directory, workers_);
  if (!opened) log::info("no_progress_pipes", format("{}; workers get no ELASTIC_RUN_PROGRESS", opened.error().text()));
  if (!settings_.serves_nvrx) return;
  const Status listens = nvrx_.open(directory, workers_);
  if (listens) return;
  log::warning("no_nvrx", format("{}; workers get no FT_RANK_MONITOR_IPC_SOCKET", listens.error().text()));
}

void ProgressHost::heard(int local_rank, const progress::NvrxWord& word) {
  if (!is_running_) return;
  node_.rank(local_rank).heard(word, loop_.now_ms());
  plan_report();
}

void ProgressHost::begin_round(protocol::RoundNumber round, int base_rank) {
  round_ = round;
  base_rank_ = base_rank;
  node_.begin_round(workers_);
  pipes_.empty();
  nvrx_.close_connections();
  // What a rank of an earlier round has written says nothing of this one.
  for (int local_rank = 0; reads_metrics_files() && local_rank < workers_; ++local_rank) {
    unlink(metrics_file(local_rank).c_str());
  }
  is_running_ = true;
}

bool ProgressHost::reads_metrics_files() const { return settings_.reads_metrics_file && !directory_.empty(); }

std::string ProgressHost::metrics_file(int local_rank) const {
  return format("{}/runtime_metrics_{}.json", directory_, local_rank);
}

std::vector<Variable> ProgressHost::variables(int local_rank) const {
  std::vector<Variable> out;
  if (pipes_.is_open()) out.emplace_back("ELASTIC_RUN_PROGRESS", ProgressPipes::path(directory_, local_rank));
  if (reads_metrics_files()) {
    out.emplace_back("RUNTIME_METRICS_PATH", metrics_file(local_rank));
  }
  if (nvrx_.is_open()) {
    out.emplace_back("FT_RANK_MONITOR_IPC_SOCKET", NvrxSockets::path(directory_, local_rank));
    out.emplace_back("FT_LAUNCHER_IPC_SOCKET", NvrxSockets::launcher_path(directory_));
  }
  return out;
}

void ProgressHost::started(int local_rank, pid_t pid) {
  tails_.watch(local_rank, pid);
  if (reads_metrics_files()) {
    tails_.watch_content(local_rank, metrics_file(local_rank));
  }
}

void ProgressHost::wrote(int local_rank, bool is_err, std::string_view bytes) {
  if (!is_running_) return;
  node_.rank(local_rank).wrote(is_err ? RankProgress::Stream::kErr : RankProgress::Stream::kOut, bytes, loop_.now_ms());
  plan_report();
}

void ProgressHost::read_pieces(const std::vector<output::FileTails::Piece>& pieces) {
  if (!is_running_) return;
  for (const output::FileTails::Piece& piece : pieces) {
    RankProgress& rank = piece.local_rank ? node_.rank(*piece.local_rank) : node_.shared();
    if (piece.is_whole) {
      rank.has_metrics(piece.bytes, loop_.now_ms());
    } else {
      rank.appended(piece.is_err ? RankProgress::Stream::kErr : RankProgress::Stream::kOut, piece.bytes,
                    piece.follows_gap, loop_.now_ms());
    }
  }
  plan_report();
}

void ProgressHost::end_round() {
  is_running_ = false;
  tails_.end_round();
  timer_.stop();
  timer_runs_ = false;
}

void ProgressHost::plan_report() {
  if (timer_runs_) return;
  const auto due_ms = node_.report_due_ms();
  if (!due_ms) return;
  timer_runs_ = true;
  timer_.start(std::max<std::int64_t>(*due_ms - loop_.now_ms(), 0), [this] {
    timer_runs_ = false;
    report();
  });
}

void ProgressHost::report_news() {
  if (is_running_ && node_.report_due_ms()) report();
}

std::optional<progress::Progress> ProgressHost::of_worker(int local_rank) const {
  if (!is_running_) return {};
  for (const progress::NodeProgress::Speaker& speaker : node_.speakers(loop_.now_ms())) {
    if (speaker.local_rank == local_rank) return speaker.progress;
  }
  return {};
}

std::optional<progress::NodeProgress::Step> ProgressHost::last_step() const {
  if (!is_running_) return {};
  return node_.last_step(loop_.now_ms());
}

void ProgressHost::report() {
  const auto summary = node_.summary(loop_.now_ms());
  if (!summary) return;
  node_.reported(loop_.now_ms());
  on_report_({.round = round_,
              .newest = of_rank(summary->newest),
              .oldest = of_rank(summary->oldest),
              .speakers = summary->speakers});
}

std::optional<int> ProgressHost::rank_of(const progress::NodeProgress::Speaker& speaker) const {
  if (speaker.local_rank) return base_rank_ + *speaker.local_rank;
  return {};
}

protocol::ProgressOfRank ProgressHost::of_rank(const progress::NodeProgress::Speaker& speaker) const {
  const progress::Progress& is = speaker.progress;
  return {.rank = rank_of(speaker),
          .step = is.step,
          .millisteps_per_second = is.millisteps_per_second,
          .age_ms = is.age_ms,
          .source = is.source,
          .phase = is.phase,
          .section = is.section};
}

void ProgressHost::fill_status(status::Node& node) const {
  if (!is_running_) return;
  for (const progress::NodeProgress::Speaker& speaker : node_.speakers(loop_.now_ms())) {
    const progress::Progress& is = speaker.progress;
    const status::Progress told{.rank = rank_of(speaker),
                                .step = is.step,
                                .millisteps_per_second = is.millisteps_per_second,
                                .age_ms = is.age_ms,
                                .source = progress::name_of(is.source),
                                .phase = progress::name_of(is.phase)};
    if (!node.progress || told.age_ms < node.progress->age_ms) node.progress = told;
    for (status::Worker& worker : node.workers) {
      if (speaker.local_rank == worker.local_rank) worker.progress = told;
    }
  }
}

}  // namespace elastic::run
