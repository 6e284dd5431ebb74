#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "health/progress/kinds.h"
#include "health/progress/line_cutter.h"
#include "health/progress/nvrx_session.h"
#include "health/progress/rising_lines.h"
#include "health/progress/step_line.h"
#include "health/progress/step_pattern.h"

namespace elastic::progress {

// Steps a second, over the last steps of one rank.
class StepRate {
 public:
  void clear() { size_ = 0; }
  void add(std::int64_t step, std::int64_t now_ms);

  // In thousandths. Where the next step is late it is the less the longer that is so. Nothing before the second step.
  std::optional<std::int64_t> millisteps_per_second(std::int64_t now_ms) const;

 private:
  static constexpr std::size_t kSamples = 16;
  // Steps that come faster are counted together, so that the window is at least half a minute.
  static constexpr std::int64_t kApartMs = 2000;

  struct Sample {
    std::int64_t step = 0;
    std::int64_t at_ms = 0;
  };
  const Sample& back(std::size_t ago) const { return samples_[(next_ + kSamples - 1 - ago) % kSamples]; }

  std::array<Sample, kSamples> samples_;
  std::size_t next_ = 0;
  std::size_t size_ = 0;
  Sample last_;
  std::int64_t longest_gap_ms_ = 0;  // between two steps since clear()
};

// How far one rank is, by all that it writes. Times are milliseconds of one clock. Its memory does not depend on what
// the rank writes.
class RankProgress {
 public:
  enum class Stream : unsigned char { kOut, kErr };

  // With a pattern no line counts that does not match it. It may be null.
  explicit RankProgress(std::shared_ptr<const StepPattern> pattern) : pattern_(std::move(pattern)) {}

  // The rank has written these bytes to a stream.
  void wrote(Stream stream, std::string_view bytes, std::int64_t now_ms);
  // A file that is the stream has grown by these bytes since the last look; `follows_gap`: and by others before them.
  void appended(Stream stream, std::string_view bytes, bool follows_gap, std::int64_t now_ms);
  // It has written these to ELASTIC_RUN_PROGRESS.
  void said(std::string_view bytes, std::int64_t now_ms);
  // It has said so by NVRx's client. What has no iteration is a sign of progress, and leaves the step as it is.
  void heard(const NvrxWord& word, std::int64_t now_ms);
  // Its runtime-metrics file has this content now.
  void has_metrics(std::string_view text, std::int64_t now_ms);

  // The last content of its runtime-metrics file; nothing: it has none.
  const std::optional<MetricsFile>& metrics() const { return metrics_; }

  // Nothing: no progress was seen yet.
  std::optional<Progress> at(std::int64_t now_ms) const;
  // The number of signs of progress so far.
  std::uint64_t beats() const { return beats_; }

 private:
  // | counters of one rank that are remembered for progress | {kCounters} | the one that was seen the longest time ago
  // is forgotten |
  static constexpr std::size_t kCounters = 8;

  // Something that is counted, and how far it was.
  struct Counter {
    std::uint64_t id = 0;
    std::int64_t position = 0;
    std::uint64_t used = 0;  // when it was seen last; 0: free
  };

  void take_line(std::string_view line, std::int64_t now_ms);
  void note_step(const StepLine& line, std::int64_t now_ms);
  bool rises(const StepLine& line);
  bool may_show(const StepLine& line, std::int64_t now_ms) const;
  void beat(const StepLine& line, std::int64_t now_ms);

  std::shared_ptr<const StepPattern> pattern_;
  std::array<LineCutter, 3> cutters_;  // by Stream; the last one is ELASTIC_RUN_PROGRESS
  RisingLines rising_;
  std::array<Counter, kCounters> counters_;
  std::uint64_t clock_ = 0;
  StepRate rate_;
  std::uint64_t beats_ = 0;
  std::int64_t beat_ms_ = 0;
  // What is shown, once there was a line of training.
  bool has_shown_ = false;
  std::int64_t shown_ms_ = 0;
  std::int64_t total_ = 0;
  std::optional<std::int64_t> step_;
  Source source_ = Source::kLines;
  Phase phase_ = Phase::kUnknown;
  std::optional<MetricsFile> metrics_;
  std::string section_;                   // by NVRx's client
  Phase script_phase_ = Phase::kUnknown;  // by the script's own word: lines without one are of this phase
};

}  // namespace elastic::progress
