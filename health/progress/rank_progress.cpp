#include "health/progress/rank_progress.h"

#include <algorithm>

#include "health/progress/scan.h"

namespace elastic::progress {
namespace {

// Sources up to this one may have been taken for what they are not: a bar may be of anything.
constexpr Source kLastGuess = Source::kTqdm;
constexpr std::int64_t kGuessHoldsMs = 60'000;

}  // namespace

void StepRate::add(std::int64_t step, std::int64_t now_ms) {
  const Sample sample{step, now_ms};
  if (size_ > 0 && step < last_.step) clear();
  if (size_ == 0) {
    longest_gap_ms_ = 0;
  } else {
    longest_gap_ms_ = std::max(longest_gap_ms_, now_ms - last_.at_ms);
  }
  last_ = sample;
  if (size_ > 0 && now_ms - back(0).at_ms < kApartMs) return;
  samples_[next_] = sample;
  next_ = (next_ + 1) % kSamples;
  size_ = std::min(size_ + 1, kSamples);
}

std::optional<std::int64_t> StepRate::millisteps_per_second(std::int64_t now_ms) const {
  if (size_ == 0) return {};
  const Sample& first = back(size_ - 1);
  if (last_.at_ms <= first.at_ms) return {};
  const std::int64_t until_ms = std::max(last_.at_ms, now_ms - longest_gap_ms_);
  const double steps = static_cast<double>(last_.step - first.step);
  const double rate = steps * 1'000'000 / static_cast<double>(until_ms - first.at_ms);
  return static_cast<std::int64_t>(std::min(rate, 1e15));
}

void RankProgress::wrote(Stream stream, std::string_view bytes, std::int64_t now_ms) {
  cutters_[static_cast<std::size_t>(stream)].push(bytes, now_ms,
                                                  [&](std::string_view line) { take_line(line, now_ms); });
}

void RankProgress::appended(Stream stream, std::string_view bytes, bool follows_gap, std::int64_t now_ms) {
  cutters_[static_cast<std::size_t>(stream)].push_end(bytes, follows_gap, now_ms,
                                                      [&](std::string_view line) { take_line(line, now_ms); });
}

void RankProgress::take_line(std::string_view line, std::int64_t now_ms) {
  if (pattern_) {
    const auto step = pattern_->step_in(line);
    if (step) note_step({.source = Source::kPattern, .step = step, .position = *step}, now_ms);
    return;
  }
  if (std::ranges::none_of(line, is_digit)) return;
  if (const auto known = read_step_line(line)) return note_step(*known, now_ms);
  if (const auto step = rising_.note_line(line)) {
    beat({.source = Source::kLines, .step = step, .position = *step}, now_ms);
  }
}

void RankProgress::said(std::string_view bytes, std::int64_t now_ms) {
  cutters_.back().push(bytes, now_ms, [&](std::string_view line) {
    const auto word = read_script_word(line);
    if (!word) return;
    const Phase phase = word->phase.value_or(script_phase_);
    const bool is_new_phase = phase != script_phase_;
    script_phase_ = phase;
    const StepLine line_said{.source = Source::kScript,
                             .step = word->step,
                             .position = word->step.value_or(0),
                             .counter = static_cast<std::uint64_t>(phase),
                             .phase = phase};
    const bool has_risen = word->step && rises(line_said);
    if (has_risen || is_new_phase) beat(line_said, now_ms);
  });
}

void RankProgress::has_metrics(std::string_view text, std::int64_t now_ms) {
  const auto file = read_metrics_file(text);
  if (!file) return;
  metrics_ = file;
  note_step({.source = Source::kMetrics, .step = file->step, .position = file->step, .phase = Phase::kTrain}, now_ms);
}

void RankProgress::heard(const NvrxWord& word, std::int64_t now_ms) {
  section_ = word.section;
  const StepLine line{
      .source = Source::kNvrx, .step = word.iteration, .position = word.iteration.value_or(0), .phase = word.phase};
  if (word.iteration && rises(line)) return beat(line, now_ms);
  ++beats_;
  beat_ms_ = now_ms;
  phase_ = word.phase;
  if (!has_shown_) source_ = Source::kNvrx;
}

void RankProgress::note_step(const StepLine& line, std::int64_t now_ms) {
  if (rises(line)) beat(line, now_ms);
}

// Whether what the line counts is further than before. Where it is less far it has begun again, which alone is no
// progress.
bool RankProgress::rises(const StepLine& line) {
  const std::uint64_t id = hash_with(line.counter, static_cast<char>(line.source));
  auto found = std::ranges::find_if(counters_, [&](const Counter& each) { return each.used != 0 && each.id == id; });
  if (found == counters_.end()) {
    found = std::ranges::min_element(counters_, {}, &Counter::used);
    *found = {.id = id};
  }
  found->used = ++clock_;
  const bool has_risen = line.position > found->position;
  found->position = line.position;
  return has_risen;
}

// Whether the line's step is to be shown. A bar does not take the place of a longer one (an evaluation's that of the
// training's), nor a less trusted source that of a better one; guesses give way once they are silent.
bool RankProgress::may_show(const StepLine& line, std::int64_t now_ms) const {
  const bool counts_training = line.phase == Phase::kUnknown || line.phase == Phase::kTrain ||
                               (line.phase == Phase::kCheckpoint && line.source == Source::kScript);
  if (!counts_training) return false;
  if (!has_shown_ || line.source > source_) return true;
  if (line.source == source_ && line.total >= total_) return true;
  return source_ <= kLastGuess && now_ms - shown_ms_ >= kGuessHoldsMs;
}

void RankProgress::beat(const StepLine& line, std::int64_t now_ms) {
  ++beats_;
  beat_ms_ = now_ms;
  if (!may_show(line, now_ms)) {
    if (!has_shown_ || line.source >= source_) phase_ = line.phase;
    if (!has_shown_) source_ = line.source;
    return;
  }
  if (!has_shown_ || line.source != source_ || line.total != total_) {
    step_.reset();
    rate_.clear();
  }
  has_shown_ = true;
  shown_ms_ = now_ms;
  source_ = line.source;
  total_ = line.total;
  phase_ = line.phase;
  if (!line.step) return;
  step_ = line.step;
  rate_.add(*line.step, now_ms);
}

std::optional<Progress> RankProgress::at(std::int64_t now_ms) const {
  if (beats_ == 0) return {};
  return Progress{.step = step_,
                  .millisteps_per_second = step_ ? rate_.millisteps_per_second(now_ms) : std::nullopt,
                  .age_ms = std::max<std::int64_t>(now_ms - beat_ms_, 0),
                  .source = source_,
                  .phase = phase_,
                  .section = section_};
}

}  // namespace elastic::progress
