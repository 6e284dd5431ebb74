#include "health/tuning/loader_tuner.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::tuning {
namespace {

std::optional<std::int64_t> said(const ParalConfig& file, Value value) {
  return value == Value::kWorkers ? file.workers : file.batch;
}

const char* unit_of(Value value) { return value == Value::kWorkers ? "steps/s" : "samples/s"; }

std::string mebibytes(std::uint64_t bytes) { return format("{} MiB", bytes / (1024 * 1024)); }

}  // namespace

void OtherNodes::begin_round(int count) {
  nodes_.clear();
  nodes_.resize(static_cast<std::size_t>(count));
}

void OtherNodes::heard(int node_rank, const NodeState& state) {
  if (node_rank < 1 || node_rank > static_cast<int>(nodes_.size())) return;
  if (state.cpus < 1 || state.free_bytes.value_or(0) < 0) return;
  nodes_[static_cast<std::size_t>(node_rank) - 1].state = state;
}

std::optional<int> OtherNodes::silent() const { return not_read(INT64_MIN); }

std::optional<int> OtherNodes::not_read(std::int64_t version) const {
  const auto found = std::ranges::find_if(
      nodes_, [version](const Node& node) { return !node.state || node.state->version < version; });
  if (found == nodes_.end()) return {};
  return static_cast<int>(found - nodes_.begin()) + 1;
}

std::optional<std::uint64_t> OtherNodes::least_free(std::optional<std::uint64_t> own) const {
  for (const Node& node : nodes_) {
    if (!own || !node.state || !node.state->free_bytes) return {};
    own = std::min(*own, static_cast<std::uint64_t>(*node.state->free_bytes));
  }
  return own;
}

int OtherNodes::least_cpus(int own) const {
  for (const Node& node : nodes_) {
    if (node.state) own = std::min(own, node.state->cpus);
  }
  return own;
}

void OtherNodes::mark() {
  for (Node& node : nodes_) node.marked_bytes = node.state ? node.state->free_bytes : std::nullopt;
}

std::uint64_t OtherNodes::most_taken() const {
  std::int64_t most = 0;
  for (const Node& node : nodes_) {
    if (!node.marked_bytes || !node.state || !node.state->free_bytes) continue;
    most = std::max(most, *node.marked_bytes - *node.state->free_bytes);
  }
  return static_cast<std::uint64_t>(most);
}

std::optional<std::int64_t> LoaderTuner::wanted(Value value) const {
  if (trial_ && trial_->value == value) return trial_->to;
  if (!climb(value).has_begun()) return {};
  return climb(value).value();
}

bool LoaderTuner::has_changed() const {
  return std::ranges::any_of(kValues,
                             [this](Value value) { return wanted(value).value_or(0) != climb(value).start(); });
}

bool LoaderTuner::is_as_wanted(const ParalConfig& file) const {
  return std::ranges::all_of(kValues, [&](Value value) {
    return !wanted(value) || wanted(value) == said(file, value).value_or(climb(value).start());
  });
}

Speed LoaderTuner::compared(Value value, const Speed& speed, std::int64_t batch) const {
  return value == Value::kBatch ? speed.times(static_cast<double>(batch)) : speed;
}

// --- Rounds

bool LoaderTuner::has_begun() const {
  return std::ranges::any_of(climbs_, [](const Climb& climb) { return climb.has_begun(); });
}

ChosenValues LoaderTuner::values() const {
  const auto chosen = [this](Value value) -> std::optional<ChosenValue> {
    const Climb& climb = this->climb(value);
    if (!climb.has_begun()) return {};
    return ChosenValue{.start = climb.start(), .kept = climb.value(), .now = *wanted(value)};
  };
  return {.version = written_, .workers = chosen(Value::kWorkers), .batch = chosen(Value::kBatch)};
}

void LoaderTuner::inherit(const ChosenValues& values) {
  if (phase_ != Phase::kWaiting || has_begun() || !values.are_sound()) return;
  for (const Value value : kValues) {
    const auto& chosen = value == Value::kWorkers ? values.workers : values.batch;
    if (!chosen) continue;
    climb(value).begin(chosen->start, chosen->kept, limit_of(value, chosen->kept));
    if (chosen->kept > chosen->start) kept_.push_back(value);
  }
  version_ = std::max(version_, values.version);
}

std::int64_t LoaderTuner::limit_of(Value value, std::int64_t kept) const {
  if (value == Value::kBatch) return kMostSaid;
  return std::max(kept, others_.least_cpus(cpus_) * kWorkersPerCpu);
}

LoaderTuner::Effects LoaderTuner::begin_round(bool may_restart, std::int64_t now_ms) {
  Effects out;
  may_restart_ = may_restart;
  is_running_ = true;
  rewrites_ = 0;
  unreadable_ = 0;
  awaits_reader_ = false;
  since_ms_ = now_ms;
  windows_.clear();
  if (has_changed()) write(out);
  check_invariants();
  return out;
}

LoaderTuner::Effects LoaderTuner::end_round(bool rank_failed, std::string_view memory) {
  Effects out;
  is_running_ = false;
  const std::string because = !rank_failed     ? "the round ended"
                              : memory.empty() ? "a rank failed"
                                               : format("a rank died of memory ({})", memory);
  if (trial_) {
    // A rank may have read the change, and died of it, since the last look.
    if (rank_failed || !awaits_reader_) climb(trial_->value).end(format("{} with {}", because, trial_->to));
    take_back(because, {}, out);
    phase_ = Phase::kBase;
  } else if (!memory.empty() && !kept_.empty()) {
    const Value value = kept_.back();
    kept_.pop_back();
    const std::int64_t from = climb(value).value();
    if (climb(value).retreat(because)) {
      out.notes.push_back(
          {.what = Note::What::kTakenBack,
           .value = value,
           .from = from,
           .to = climb(value).value(),
           .text = format("{} goes back from {} to {}: {}", name_of(value), from, climb(value).value(), because)});
    }
  }
  check_invariants();
  return out;
}

// --- Looks

LoaderTuner::Effects LoaderTuner::weigh_look(const Look& look) {
  Effects out;
  if (!is_running_) return out;
  const int windows = windows_.windows();
  if (look.step) windows_.add(*look.step);
  if (look.file) {
    rate_.adopt_file(*look.file);
    version_ = std::max(version_, look.file->version);
  }
  if (phase_ == Phase::kWaiting) {
    wait(look, out);
  } else if (phase_ != Phase::kOver || has_changed()) {
    take_file(look.file, out);
    if (awaits_reader_) await_reader(look, out);
    if (!awaits_reader_ && phase_ != Phase::kOver) {
      if (windows_.windows() != windows && !windows_.speed()) since_ms_ = look.now_ms;
      measure(look, out);
    }
  }
  check_invariants();
  return out;
}

void LoaderTuner::wait(const Look& look, Effects& out) {
  const bool has_values =
      has_begun() ||
      (look.file && std::ranges::any_of(kValues, [&](Value value) { return said(*look.file, value).has_value(); }));
  if (has_values && windows_.has_steps() && !others_.silent()) return begin_climbs(look.file, look.now_ms);
  if (look.now_ms - since_ms_ < kNothingMs) return;
  if (!has_values) return nothing("no loader has said its num_workers or its batch_size in the file", out);
  if (windows_.has_steps()) return nothing(silence(), out);
  nothing("no step is seen by which the speed could be measured (docs/progress.md says what is seen)", out);
}

std::string LoaderTuner::silence() const {
  return format(
      "nothing was heard of the loaders of node {}, nor of its memory (--auto-tunning has to be given there, too)",
      *others_.silent());
}

void LoaderTuner::begin_climbs(const std::optional<ParalConfig>& file, std::int64_t now_ms) {
  for (const Value value : kValues) {
    const auto own = file ? said(*file, value) : std::nullopt;
    const bool is_new = climb(value).value() == climb(value).start();
    if (own && is_new) climb(value).begin(*own, limit_of(value, *own));
  }
  phase_ = Phase::kBase;
  since_ms_ = now_ms;
  windows_.begin();
}

// A worker writes the file when it makes its loader, with the values of that one.
void LoaderTuner::take_file(const std::optional<ParalConfig>& file, Effects& out) {
  unreadable_ = file ? 0 : unreadable_ + 1;
  if (file ? is_as_wanted(*file) : unreadable_ < kUnreadableLooks || !has_changed()) return;
  unreadable_ = 0;
  // What we have written last is there until a worker has read it, unless somebody overwrites it.
  if (!has_changed() && !awaits_reader_) {
    phase_ = Phase::kOver;
    return nothing("several loaders write different values to the file", out);
  }
  if (rewrites_ < kMostRewrites) {
    ++rewrites_;
    return write(out);
  }
  if (trial_) climb(trial_->value).end("its change was overwritten");
  trial_.reset();
  awaits_reader_ = false;
  phase_ = Phase::kOver;
  nothing(format("workers have overwritten the file {}", counted(kMostRewrites, "time")), out);
}

void LoaderTuner::await_reader(const Look& look, Effects& out) {
  if (out.write) {
    since_ms_ = look.now_ms;
    return;
  }
  const bool is_read_here = look.was_read && look.file && is_as_wanted(*look.file);
  const auto elsewhere = others_.not_read(written_);
  if (is_read_here && !elsewhere) {
    awaits_reader_ = false;
    since_ms_ = look.now_ms;
    windows_.begin();
  } else if (trial_ && look.now_ms - since_ms_ >= kNothingMs) {
    nothing(format("{} {} is in the file, and no worker{} has read it", name_of(trial_->value), trial_->to,
                   is_read_here ? format(" of node {}", *elsewhere) : ""),
            out);
  }
}

void LoaderTuner::measure(const Look& look, Effects& out) {
  const auto speed = windows_.speed();
  if (!speed) {
    if (look.now_ms - since_ms_ < kNothingMs) return;
    return nothing("the steps that are seen are too few, or their times do not advance, to measure the speed", out);
  }
  if (trial_) return decide(look, *speed, out);
  if (others_.silent()) {
    if (look.now_ms - since_ms_ >= kNothingMs) nothing(silence(), out);
    return;
  }
  base_ = speed;
  if (!first_) first_ = speed;
  try_next(look, out);
}

void LoaderTuner::decide(const Look& look, const Speed& speed, Effects& out) {
  const Trial trial = *trial_;
  const std::int64_t batch = climb(Value::kBatch).value();
  const Speed before = compared(trial.value, *base_, batch);
  const Speed after = compared(trial.value, speed, trial.value == Value::kBatch ? trial.to : batch);
  if (trial.free_bytes && look.free_bytes) {
    const std::uint64_t taken = *trial.free_bytes - std::min(*trial.free_bytes, *look.free_bytes);
    taken_bytes_[static_cast<std::size_t>(trial.value)] = std::max(taken, others_.most_taken());
  }
  if (!climb(trial.value).judge(before, after)) {
    take_back("no faster", after.median, out);
    write_now(out, look.now_ms);
    phase_ = Phase::kBase;
    return;
  }
  trial_.reset();
  kept_.push_back(trial.value);
  base_ = speed;
  out.notes.push_back({.what = Note::What::kKept,
                       .value = trial.value,
                       .from = trial.from,
                       .to = trial.to,
                       .speed_before = before.median,
                       .speed_after = after.median,
                       .text = format("{} {} is kept: {:.4g} {}, {:.4g} with {}", name_of(trial.value), trial.to,
                                      after.median, unit_of(trial.value), before.median, trial.from)});
  try_next(look, out);
}

void LoaderTuner::try_next(const Look& look, Effects& out) {
  for (const Value value : kValues) {
    climb(value).bound(limit_of(value, climb(value).value()));
    if (!climb(value).next()) continue;
    const std::string objection = this->objection(value, look);
    if (!objection.empty()) {
      climb(value).end(objection);
      continue;
    }
    trial_ = {.value = value, .from = climb(value).value(), .to = *climb(value).next(), .free_bytes = look.free_bytes};
    phase_ = Phase::kTrial;
    others_.mark();
    const double speed = compared(value, *base_, trial_->from).median;
    out.notes.push_back({.what = Note::What::kTried,
                         .value = value,
                         .from = trial_->from,
                         .to = trial_->to,
                         .speed_before = speed,
                         .text = format("{} {} is tried in place of {}, which makes {:.4g} {}", name_of(value),
                                        trial_->to, trial_->from, speed, unit_of(value))});
    return write_now(out, look.now_ms);
  }
  phase_ = Phase::kOver;
  std::vector<std::string> values;
  for (const Value value : kValues) {
    if (!climb(value).has_begun()) continue;
    values.push_back(format("{} {} ({})", name_of(value), climb(value).value(), climb(value).why_over()));
  }
  out.notes.push_back({.what = Note::What::kEnded,
                       .speed_before = first_->median,
                       .speed_after = base_->median,
                       .text = format("the search is over with {}: {:.4g} steps/s, {:.4g} at first",
                                      join(values, " and "), base_->median, first_->median)});
}

std::string LoaderTuner::objection(Value value, const Look& look) const {
  if (value == Value::kBatch && !may_restart_) {
    return "a larger batch may end a rank for its memory, and no restart is left";
  }
  const auto free_bytes = others_.least_free(look.free_bytes);
  if (!free_bytes) return "it is not known how much memory is free";
  const std::uint64_t taken = taken_bytes_[static_cast<std::size_t>(value)];
  const std::uint64_t needed = std::max(kLeastFreeBytes, taken * kTimesTaken);
  if (*free_bytes >= needed) return {};
  return format("{} of memory are free{}, and a change needs {}", mebibytes(*free_bytes),
                free_bytes == look.free_bytes ? "" : " on another node", mebibytes(needed));
}

// --- Effects

void LoaderTuner::write(Effects& out) {
  Order order{.version = ++version_, .workers = wanted(Value::kWorkers), .batch = wanted(Value::kBatch)};
  if (order.batch) order.optimizer = rate_.order(*order.batch);
  written_ = order.version;
  out.write = order;
  awaits_reader_ = true;
}

void LoaderTuner::write_now(Effects& out, std::int64_t now_ms) {
  write(out);
  since_ms_ = now_ms;
}

// To the value before the trial, which the next order has.
void LoaderTuner::take_back(std::string_view because, std::optional<double> speed, Effects& out) {
  const Trial trial = *std::exchange(trial_, {});
  const std::optional<double> before =
      base_ ? std::optional(compared(trial.value, *base_, trial.from).median) : std::nullopt;
  std::string figures;
  if (speed && before) {
    figures = format(" ({:.4g} {}, {:.4g} with {})", *speed, unit_of(trial.value), *before, trial.from);
  }
  out.notes.push_back({.what = Note::What::kTakenBack,
                       .value = trial.value,
                       .from = trial.to,
                       .to = trial.from,
                       .speed_before = before,
                       .speed_after = speed,
                       .text = format("{} goes back from {} to {}: {}{}", name_of(trial.value), trial.to, trial.from,
                                      because, figures)});
}

void LoaderTuner::nothing(std::string text, Effects& out) {
  if (std::exchange(told_nothing_, true)) return;
  out.notes.push_back({.what = Note::What::kNothing, .text = "nothing is changed: " + std::move(text)});
}

void LoaderTuner::check_invariants() const {
  ELASTIC_CHECK(trial_.has_value() == (phase_ == Phase::kTrial));
  for (const Value value : kValues) {
    if (!climb(value).has_begun()) continue;
    ELASTIC_CHECK(climb(value).value() >= climb(value).start());
    ELASTIC_CHECK(wanted(value) >= climb(value).start());
  }
}

}  // namespace elastic::tuning
