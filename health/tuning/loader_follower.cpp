#include "health/tuning/loader_follower.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "health/tuning/loader_tuner.h"
#include "src/base/text.h"

namespace elastic::tuning {
namespace {

std::array<std::optional<ChosenValue>, 2> all(const ChosenValues& values) { return {values.workers, values.batch}; }
std::array<std::optional<std::int64_t>, 2> said(const ParalConfig& file) { return {file.workers, file.batch}; }

ChosenValues without_trial(ChosenValues values) {
  for (auto* value : {&values.workers, &values.batch}) {
    if (*value) (*value)->now = (*value)->kept;
  }
  return values;
}

}  // namespace

std::optional<Order> LoaderFollower::begin_round() {
  chosen_ = {};
  differ_ = {};
  is_running_ = true;
  is_to_write_ = false;
  awaits_reader_ = false;
  version_ = 0;
  rewrites_ = 0;
  unreadable_ = 0;
  state_.reset();
  read_ = 0;
  choose(told_ ? *told_ : held_);
  if (!differ_[0] && !differ_[1]) return {};
  return order();
}

void LoaderFollower::end_round() {
  is_running_ = false;
  told_.reset();
}

void LoaderFollower::follow_values(const ChosenValues& values) {
  if (!values.are_sound()) return;
  told_ = values;
  if (values.are_there()) held_ = without_trial(values);
  if (!is_running_) return;
  const std::array before{wanted(0), wanted(1)};
  choose(values);
  if (before != std::array{wanted(0), wanted(1)}) is_to_write_ = true;
}

void LoaderFollower::choose(const ChosenValues& values) {
  chosen_ = values;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (const auto value = all(values)[i]) differ_[i] = differ_[i] || value->now != value->start;
  }
}

std::optional<std::int64_t> LoaderFollower::wanted(std::size_t which) const {
  const auto value = all(chosen_)[which];
  if (!value || !differ_[which]) return {};
  if (value->now == value->start) return starts_[which].value_or(value->now);
  return std::max(value->now, starts_[which].value_or(0));
}

bool LoaderFollower::is_as_wanted(const ParalConfig& file) const {
  return (!wanted(0) || wanted(0) == file.workers) && (!wanted(1) || wanted(1) == file.batch);
}

Order LoaderFollower::order() {
  version_ = std::max(version_ + 1, chosen_.version);
  has_written_ = true;
  awaits_reader_ = true;
  Order order{.version = version_, .workers = wanted(0), .batch = wanted(1)};
  if (order.batch) order.optimizer = rate_.order(*order.batch);
  return order;
}

LoaderFollower::Effects LoaderFollower::look_at_file(std::int64_t now_ms, const std::optional<ParalConfig>& file,
                                                     bool was_read, std::optional<std::uint64_t> free_bytes) {
  Effects out;
  if (!is_running_) return out;
  if (file) {
    rate_.adopt_file(*file);
    version_ = std::max(version_, file->version);
    for (std::size_t i = 0; !has_written_ && i < kCount; ++i) starts_[i] = said(*file)[i];
  }
  hold_file(file, out);
  if (!out.write && awaits_reader_ && was_read && file && is_as_wanted(*file)) awaits_reader_ = false;
  if (!awaits_reader_ && !is_to_write_) read_ = chosen_.version;
  tell_if_new(now_ms, free_bytes, out);
  return out;
}

// A worker writes the file when it makes its loader, with the values of that one.
void LoaderFollower::hold_file(const std::optional<ParalConfig>& file, Effects& out) {
  unreadable_ = file ? 0 : unreadable_ + 1;
  if (!wanted(0) && !wanted(1)) return;
  if (file ? !is_to_write_ && is_as_wanted(*file) : unreadable_ < kUnreadableLooks) return;
  unreadable_ = 0;
  if (std::exchange(is_to_write_, false)) {
    out.write = order();
    return;
  }
  if (rewrites_ > kMostRewrites) return;
  if (rewrites_++ < kMostRewrites) {
    out.write = order();
  } else {
    out.problem = format("workers have overwritten the file {}", counted(kMostRewrites, "time"));
  }
}

void LoaderFollower::tell_if_new(std::int64_t now_ms, std::optional<std::uint64_t> free_bytes, Effects& out) {
  NodeState state{.free_bytes = {}, .cpus = cpus_, .version = read_};
  if (free_bytes) state.free_bytes = static_cast<std::int64_t>(*free_bytes);
  const std::int64_t since_ms = now_ms - told_ms_;
  const auto has_changed = [&] {
    if (state.free_bytes.has_value() != state_->free_bytes.has_value()) return true;
    if (!state.free_bytes) return false;
    const auto before = static_cast<double>(*state_->free_bytes);
    return std::abs(static_cast<double>(*state.free_bytes) - before) > kMemoryChange * before;
  };
  const bool is_due =
      !state_ || state_->version != read_ || since_ms >= kTellAgainMs || (since_ms >= kTellMemoryMs && has_changed());
  if (!is_due) return;
  state_ = state;
  told_ms_ = now_ms;
  out.tell = LoaderWord{.node = state};
  // Who decides has come to the job later than they were chosen.
  if (told_ && !told_->are_there() && held_.are_there()) out.tell->values = held_;
}

}  // namespace elastic::tuning
