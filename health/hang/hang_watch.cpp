#include "health/hang/hang_watch.h"

#include <algorithm>
#include <limits>

#include "src/base/check.h"
#include "src/base/overloaded.h"

namespace elastic::hang {
namespace {

// Ages of a record are no longer than this: a year.
constexpr std::int64_t kOldestMs = 365LL * 24 * 3'600'000;

bool waits_for_alarm(HangState state) { return state == HangState::kStarting || state == HangState::kArmed; }

}  // namespace

HangWatch::HangWatch(const LimitSettings& settings, const HangRecord& record, std::int64_t now_ms)
    : settings_(settings),
      learned_(record.learned.within_bounds()),
      state_(record.state),
      phase_(record.phase),
      now_ms_(now_ms),
      last_ms_(now_ms - std::clamp<std::int64_t>(record.silent_ms, 0, kOldestMs)),
      has_told_not_armed_(record.has_told_not_armed),
      has_been_armed_(record.has_been_armed || record.has_beat),
      is_stretched_(record.is_stretched),
      is_patient_(record.is_patient),
      has_beat_(record.has_beat),
      section_(record.section) {
  switch (record.state) {
    case HangState::kIdle:
    case HangState::kJudged: break;
    case HangState::kStarting:
    case HangState::kArmed:
    case HangState::kSuspect: state_ = waiting_state(); break;
    case HangState::kConfirmed:
    case HangState::kCollecting: {
      state_ = HangState::kConfirmed;
      const Limit known = limit().value_or(Limit{settings_.first_ms, LimitFrom::kFirst});
      alarm_ = Alarm{now_ms, known, {}};
      break;
    }
  }
  check_invariants();
}

std::vector<HangEffect> HangWatch::handle(const HangEvent& event, std::int64_t now_ms) {
  // A clock that goes backwards does not make a wait longer.
  now_ms_ = std::max(now_ms_, now_ms);
  Effects out;
  std::visit(
      Overloaded{[&](const RoundBegan& e) { on_round_began(e, out); },
                 [&](const RoundEnded& e) { on_round_ended(e, out); }, [&](const Beat& e) { on_beat(e, out); },
                 [&](const InSection& e) { on_in_section(e, out); }, [&](const FactSeen& e) { on_fact_seen(e, out); },
                 [&](const DiskMoves& e) { on_disk_moves(e, out); }, [&](const Sampled& e) { on_sampled(e, out); },
                 [&](const Collected& e) { on_collected(e, out); }, [&](const Judged& e) { on_judged(e, out); },
                 [](const Tick&) {}},
      event);
  if (state_ != HangState::kIdle) advance(out);
  check_invariants();
  return out;
}

void HangWatch::on_round_began(const RoundBegan&, Effects&) {
  calm();
  state_ = HangState::kStarting;
  phase_ = Phase::kUnknown;
  section_.clear();
  last_ms_ = now_ms_;
  has_beat_ = false;
  facts_ = {};
}

void HangWatch::on_round_ended(const RoundEnded&, Effects&) {
  calm();
  state_ = HangState::kIdle;
}

// Forgets what belongs to one wait.
void HangWatch::calm() {
  again_ms_ = std::numeric_limits<std::int64_t>::min();
  is_stretched_ = is_patient_ = is_judging_ = has_continued_ = false;
  alarm_.reset();
  samples_ = 0;
}

void HangWatch::on_beat(const Beat& beat, Effects& out) {
  if (state_ == HangState::kIdle) return;
  const std::int64_t silent_ms = now_ms_ - last_ms_;
  const bool is_collecting = state_ == HangState::kCollecting || state_ == HangState::kConfirmed;
  if (state_ == HangState::kJudged) {
    out.push_back(TellRecovered{silent_ms});
  } else if (is_collecting || has_continued_) {
    out.push_back(Withdraw{silent_ms});
  }
  const std::int64_t at_ms = std::clamp(now_ms_ - std::max<std::int64_t>(beat.age_ms, 0), last_ms_, now_ms_);
  // The time before a round's first progress is no gap of a phase.
  if (has_beat_) learned_.learn(phase_, at_ms - last_ms_);
  calm();
  state_ = HangState::kArmed;
  phase_ = beat.phase;
  last_ms_ = at_ms;
  has_beat_ = has_been_armed_ = true;
}

void HangWatch::on_in_section(const InSection& seen, Effects&) {
  if (state_ != HangState::kIdle) section_ = seen.section;
}

void HangWatch::on_fact_seen(const FactSeen& seen, Effects&) {
  std::optional<std::int64_t>& since = facts_.at(static_cast<std::size_t>(seen.fact));
  if (!seen.holds) {
    since.reset();
  } else if (!since) {
    since = now_ms_;
  }
}

void HangWatch::on_disk_moves(const DiskMoves&, Effects&) {
  if (waits_for_alarm(state_) || state_ == HangState::kSuspect) is_stretched_ = true;
}

void HangWatch::on_sampled(const Sampled& sampled, Effects& out) {
  if (state_ != HangState::kSuspect || samples_ < 2) return;
  if (sampled.is != Sampled::Is::kMoved) return collect(out);
  again_ms_ = now_ms_ + alarm_->limit.limit_ms;
  alarm_.reset();
  samples_ = 0;
  state_ = waiting_state();
}

void HangWatch::on_collected(const Collected&, Effects& out) {
  if (state_ != HangState::kCollecting || is_judging_) return;
  is_judging_ = true;
  out.push_back(Judge{});
}

void HangWatch::on_judged(const Judged& judged, Effects&) {
  if (state_ != HangState::kCollecting || !is_judging_) return;
  const std::int64_t limit_ms = alarm_->limit.limit_ms;
  alarm_.reset();
  samples_ = 0;
  is_judging_ = false;
  if (judged.is_moving) {
    again_ms_ = now_ms_ + limit_ms;
    state_ = waiting_state();
    return;
  }
  if (judged.continues) {
    has_continued_ = true;
    again_ms_ = now_ms_ + settings_.continue_ms;
    state_ = waiting_state();
    return;
  }
  state_ = HangState::kJudged;
  if (!judged.is_storage || is_patient_) return;
  is_patient_ = true;
  again_ms_ = now_ms_ + (settings_.storage_factor - 1) * limit_ms;
  state_ = waiting_state();
}

std::optional<Limit> HangWatch::limit() const {
  if (state_ == HangState::kIdle) return {};
  Limit limit = {};
  const auto of_section = limit_of(settings_.sections, section_);
  if (has_beat_ && of_section) {
    limit = {*of_section, LimitFrom::kSection};
  } else if (has_beat_) {
    limit = learned_.limit(phase_, settings_);
  } else if (settings_.first_timeout_ms) {
    limit = {*settings_.first_timeout_ms, LimitFrom::kFirst};
  } else {
    return {};
  }
  if (is_stretched_) limit.limit_ms = std::max(limit.limit_ms, settings_.ceiling_ms);
  if (is_patient_) limit.limit_ms *= settings_.storage_factor;
  return limit;
}

std::int64_t HangWatch::shortcut_ms(Fact fact) const {
  if (fact != Fact::kInitKey) return settings_.shortcut_ms;
  return settings_.timeout_ms.value_or(settings_.first_timeout_ms.value_or(settings_.first_ms));
}

std::optional<HangWatch::Alarm> HangWatch::alarm() const {
  std::optional<Alarm> first;
  if (const auto holds = limit()) first = Alarm{std::max(last_ms_ + holds->limit_ms, again_ms_), *holds, {}};
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    if (!facts_[i]) continue;
    const auto fact = static_cast<Fact>(i);
    const std::int64_t wait_ms = shortcut_ms(fact);
    const std::int64_t at_ms = std::max(std::max(*facts_[i], last_ms_) + wait_ms, again_ms_);
    if (!first || at_ms < first->at_ms) first = Alarm{at_ms, {wait_ms, LimitFrom::kShortcut}, fact};
  }
  return first;
}

// Nothing: it is told, or need not be.
std::optional<std::int64_t> HangWatch::not_armed_ms() const {
  if (state_ == HangState::kIdle || has_been_armed_ || has_told_not_armed_) return {};
  return last_ms_ + settings_.timeout_ms.value_or(settings_.floor_ms);
}

std::optional<std::int64_t> HangWatch::due_ms() const {
  switch (state_) {
    case HangState::kIdle:
    case HangState::kJudged: return {};
    case HangState::kStarting:
    case HangState::kArmed: {
      const auto next = alarm();
      if (!next) return {};
      return next->at_ms;
    }
    case HangState::kSuspect: return step_ms_ + (samples_ == 1 ? settings_.between_samples_ms : settings_.sample_ms);
    case HangState::kConfirmed: return now_ms_;
    case HangState::kCollecting:
      if (is_judging_) return {};
      return step_ms_ + settings_.collect_ms;
  }
  return {};
}

std::optional<std::int64_t> HangWatch::next_ms() const {
  const auto due = due_ms();
  const auto told = not_armed_ms();
  if (!due || !told) return due ? due : told;
  return std::min(*due, *told);
}

void HangWatch::suspect(const Alarm& alarm, Effects& out) {
  alarm_ = alarm;
  state_ = HangState::kSuspect;
  samples_ = 1;
  step_ms_ = now_ms_;
  out.push_back(TakeSample{.is_second = false});
}

void HangWatch::collect(Effects& out) {
  state_ = HangState::kCollecting;
  step_ms_ = now_ms_;
  out.push_back(Collect{.silent_ms = now_ms_ - last_ms_,
                        .limit = alarm_->limit,
                        .fact = alarm_->fact,
                        .phase = phase_,
                        .longest_gap_ms = learned_.of(phase_).longest_ms});
}

void HangWatch::advance(Effects& out) {
  if (const auto told = not_armed_ms(); told && *told <= now_ms_) {
    has_told_not_armed_ = true;
    out.push_back(TellNotArmed{});
  }
  if (state_ == HangState::kSuspect) {
    // The fact may have gone, disks may move, and another section may be heard of: what holds now counts, and is told.
    alarm_ = alarm();
    if (!alarm_ || alarm_->at_ms > now_ms_) {
      alarm_.reset();
      samples_ = 0;
      state_ = waiting_state();
    }
  }
  const auto due = due_ms();
  if (!due || *due > now_ms_) return;
  switch (state_) {
    case HangState::kStarting:
    case HangState::kArmed: return suspect(*alarm(), out);
    case HangState::kSuspect:
      if (samples_ == 2) return collect(out);  // nobody has said what the second sample is
      samples_ = 2;
      step_ms_ = now_ms_;
      out.push_back(TakeSample{.is_second = true});
      return;
    case HangState::kConfirmed: return collect(out);
    case HangState::kCollecting:
      is_judging_ = true;
      out.push_back(Judge{.is_late = true});
      return;
    case HangState::kIdle:
    case HangState::kJudged: return;
  }
}

HangRecord HangWatch::record(std::int64_t now_ms) const {
  return {.learned = learned_,
          .state = state_,
          .phase = phase_,
          .silent_ms = state_ == HangState::kIdle ? 0 : std::clamp<std::int64_t>(now_ms - last_ms_, 0, kOldestMs),
          .has_beat = has_beat_,
          .has_been_armed = has_been_armed_,
          .has_told_not_armed = has_told_not_armed_,
          .is_stretched = is_stretched_,
          .is_patient = is_patient_,
          .section = section_};
}

void HangWatch::check_invariants() const {
  const bool is_alarmed =
      state_ == HangState::kSuspect || state_ == HangState::kConfirmed || state_ == HangState::kCollecting;
  ELASTIC_CHECK(alarm_.has_value() == is_alarmed);
  ELASTIC_CHECK(state_ != HangState::kStarting || !has_beat_);
  ELASTIC_CHECK(state_ != HangState::kArmed || has_beat_);
  ELASTIC_CHECK(!has_beat_ || has_been_armed_);
  ELASTIC_CHECK((state_ == HangState::kSuspect) == (samples_ > 0 && state_ != HangState::kCollecting));
  ELASTIC_CHECK(!is_judging_ || state_ == HangState::kCollecting);
  ELASTIC_CHECK(last_ms_ <= now_ms_);
}

}  // namespace elastic::hang
