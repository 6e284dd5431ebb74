#include "cli/run/hang_host.h"

#include <time.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/run/worker_environment.h"
#include "health/evidence/store_waiters.h"
#include "health/hang/hang_facts.h"
#include "src/base/read_file.h"
#include "src/base/text.h"
#include "src/net/local_host.h"

namespace elastic::run {
namespace {

// Between two looks at the processes.
constexpr std::int64_t kLookMs = 2'500;
// Where workers of several nodes dump for one key, each node signals its own no earlier than this: PyTorch looks for
// the key once a second, and a worker that loses its peers may end before it has dumped.
constexpr std::int64_t kOthersDumpMs = 2'000;
// Processes that a worker has started, and that are looked at.
constexpr std::size_t kChildren = 32;

std::int64_t raw_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

// A file of /proc/PID that takes none of the process's locks. Empty if it cannot be read.
std::string text_of(pid_t pid, std::string_view name) {
  return read_file(format("/proc/{}/{}", pid, name), 4096).value_or("");
}

evidence::ProcessSample sample_of(pid_t pid) {
  const std::string stat = text_of(pid, "stat");
  const std::string io = text_of(pid, "io");
  return evidence::read_process({.stat = stat, .io = io});
}

// What its main thread has started: loaders of data above all.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> out;
  for (const std::string& number : split(trim(text_of(pid, format("task/{}/children", pid))), ' ')) {
    const auto child = parse_int(number);
    if (child && out.size() < kChildren) out.push_back(static_cast<pid_t>(*child));
  }
  return out;
}

// Ranks have not come to init_process_group, and others wait for them there.
bool misses_init_key(const store::StoreView& view, int world_size) {
  std::vector<std::string_view> keys(view.init_keys.begin(), view.init_keys.end());
  std::vector<evidence::StoreWait> waits;
  for (const store::StoreView::Waiting& waiting : view.waiting) waits.push_back({.keys = waiting.keys});
  return !evidence::store_facts(keys, waits, world_size).never_came.empty();
}

hang::BeatKind kind_of(progress::Source source) {
  const bool is_word =
      source == progress::Source::kScript || source == progress::Source::kMetrics || source == progress::Source::kNvrx;
  return is_word ? hang::BeatKind::kWord : hang::BeatKind::kStepLine;
}

}  // namespace

HangHost::HangHost(net::Loop& loop, net::SideThread& files, EvidenceSettings settings, std::string run_id, bool looks,
                   Handlers handlers)
    : loop_(loop),
      handlers_(std::move(handlers)),
      looks_(looks),
      collector_(loop, files, std::move(settings), handlers_.evidence),
      reporter_(files, std::move(run_id)),
      timer_(loop) {}

void HangHost::begin_round(const protocol::PrepareRound& round, std::string directory,
                           const std::vector<Variable>& variables) {
  round_ = round.round;
  place_ = round.place;
  directory_ = std::move(directory);
  variables_ = as_environment(variables);
  reporter_.round_began(std::int64_t{round_}, directory_);
  handlers_.hang_is(reporter_.last());
  began_ms_ = loop_.now_ms();
  began_us_ = raw_us();
  begun_ = 0;
  workers_.clear();
  collection_ = 0;
  can_dump_.clear();
  signs_.begin_round();
}

void HangHost::started(int local_rank, pid_t pid) {
  workers_.push_back({local_rank, pid});
  begun_ = std::max(begun_, local_rank + 1);
  plan_look();
}

void HangHost::ended(int local_rank) {
  std::erase_if(workers_, [&](const Worker& worker) { return worker.local_rank == local_rank; });
}

void HangHost::end_round() {
  collector_.stop();
  workers_.clear();
  timer_.stop();
  is_planned_ = false;
}

void HangHost::plan_look() {
  if (!looks_ || workers_.empty() || std::exchange(is_planned_, true)) return;
  timer_.start(kLookMs, [this] {
    is_planned_ = false;
    look_at_workers();
    plan_look();
  });
}

void HangHost::look_at_workers() {
  std::vector<HangSigns::Seen> seen;
  for (const Worker& worker : workers_) {
    seen.push_back({worker.pid, worker.local_rank, sample_of(worker.pid)});
    for (const pid_t child : children_of(worker.pid)) seen.push_back({child, {}, sample_of(child)});
  }
  const HangSigns::Signs signs = signs_.signs_in(seen, loop_.now_ms());
  agent::SignsSeen event{.round = round_,
                         .facts = {.waits_for_disk = signs.waits_for_disk, .is_stopped = signs.is_stopped},
                         .disks_move = signs.disks_move};
  if (const auto view = handlers_.evidence.store ? handlers_.evidence.store(place_.world_size) : std::nullopt) {
    event.facts.has_dump_key = view->first_to_time_out.has_value();
    event.facts.misses_init_key = misses_init_key(*view, place_.world_size);
  }
  handlers_.on_event(event);
}

EvidenceOrder HangHost::evidence_order() const {
  EvidenceOrder wanted{.round = std::int64_t{round_},
                       .collection = collection_,
                       .node = net::full_host_name(),
                       .world_size = place_.world_size,
                       .asks_ras = place_.base_rank == 0,
                       .round_began_us = began_us_,
                       .variables = variables_,
                       .ras_is_ours = lookup(variables_, "NCCL_RAS_ADDR").has_value(),
                       .directory = directory_};
  for (const Worker& worker : workers_) {
    wanted.workers.push_back({rank_of(worker.local_rank), worker.local_rank, worker.pid});
  }
  return wanted;
}

void HangHost::perform(const agent::ReadEvidence& effect) {
  const protocol::CollectEvidence& order = effect.order;
  handlers_.tell_progress();
  reporter_.suspected(std::int64_t{order.round}, order.silent_ms, order.limit_ms);
  collection_ = order.collection;
  can_dump_.clear();
  collector_.collect(evidence_order(), [this, order](EvidenceCollector::Collected collected) {
    has_read(order, std::move(collected.facts));
  });
}

void HangHost::perform(const agent::AwaitDumps& effect) {
  const auto is_over = [this, round = effect.round] { handlers_.on_event(agent::DumpsAwaited{round}); };
  EvidenceOrder wanted = evidence_order();
  wanted.dumps_least_ms = place_.node_count > 1 ? kOthersDumpMs : 0;
  std::erase_if(wanted.workers, [&](const EvidenceWorker& worker) {
    return std::ranges::find(can_dump_, worker.rank) == can_dump_.end();
  });
  if (wanted.workers.empty() && place_.node_count == 1) return is_over();
  collector_.collect(std::move(wanted), [is_over](EvidenceCollector::Collected) { is_over(); });
}

void HangHost::has_read(const protocol::CollectEvidence& order, hang::NodeFacts facts) {
  // Workers that have ended were not looked at.
  for (int local_rank = 0; local_rank < begun_; ++local_rank) {
    const int number = rank_of(local_rank);
    if (std::ranges::find(facts.ranks, number, &hang::RankFacts::rank) != facts.ranks.end()) continue;
    if (std::ranges::find(workers_, local_rank, &Worker::local_rank) != workers_.end()) continue;
    facts.ranks.push_back({.rank = number, .state = hang::ThreadState::kGone});
  }
  for (hang::RankFacts& rank : facts.ranks) {
    const int local_rank = rank.rank - place_.base_rank;
    rank.beat_age_ms = loop_.now_ms() - began_ms_;
    if (const auto progress = handlers_.progress_of(local_rank)) {
      rank.beat = kind_of(progress->source);
      rank.beat_age_ms = progress->age_ms;
    }
    if (const auto since_ms = signs_.since_ms(local_rank)) {
      rank.state_ms = std::max(rank.state_ms, loop_.now_ms() - *since_ms);
    }
  }
  for (const hang::RankFacts& rank : facts.ranks) {
    if (hang::can_still_dump(rank)) can_dump_.push_back(rank.rank);
  }
  // Progress that has come meanwhile says that there is no hang, and is to be heard first.
  handlers_.tell_progress();
  handlers_.on_event(agent::EvidenceRead{order.round, order.collection, std::move(facts)});
}

void HangHost::perform(const agent::TellHang& effect) {
  const protocol::HangTold& told = effect.told;
  const std::int64_t round{told.round};
  if (told.what == protocol::HangTold::What::kNotArmed) return reporter_.not_armed(round, told.text);
  if (told.what == protocol::HangTold::What::kContinues) return reporter_.continued(round, told.silent_ms, told.text);
  auto hang = report::hang_of(told.report);
  reporter_.report_verdict(round, told.text, hang ? std::move(*hang) : report::Hang{});
  handlers_.hang_is(reporter_.last());
}

void HangHost::perform(const agent::TellHangOver& effect) {
  const protocol::HangOver& over = effect.over;
  const std::int64_t round{over.round};
  if (over.why == protocol::HangOver::Why::kWithdrawn) return reporter_.withdrawn(round, over.after_ms);
  reporter_.recovered(round, over.after_ms);
  handlers_.hang_is(reporter_.last());
}

}  // namespace elastic::run
