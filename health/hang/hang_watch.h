#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "health/hang/hang_facts.h"
#include "health/hang/learned_limits.h"
#include "src/base/fields.h"
#include "src/base/limits.h"

// When a job hangs: what has been learned, what is seen, and what follows from it.
//
//   state       leaves it when                                    towards
//   starting    the round's first progress                        armed
//               the first limit is over, and a flag gave it       suspect
//   armed       no progress for the limit of the phase            suspect
//   suspect     progress                                          armed
//               the second sample is like the first one           confirmed
//               the second sample is not                          armed, for as long as the limit again
//   confirmed   at once; evidence is asked for                    collecting
//   collecting  progress: the alarm is withdrawn                  armed
//               the verdict is there: it is asked for when all    judged
//               nodes have answered, or 20 s are over
//               the verdict is that the job moves                 armed, for as long as the limit again
//   judged      progress                                          armed
//               the verdict is that storage stands, the first     armed, with four times the limit
//               stopped workers are continued                     armed, for 10 s
//
// In starting and armed a fact that speaks for itself (Fact) leads to suspect, too, after 10 s without progress.
// Disk activity makes the limit the longest one, until the next progress; it never is progress. Milliseconds of the
// caller's monotonic clock.
namespace elastic::hang {

// Facts that speak for themselves. What they mean is judged later; here they only shorten the wait.
enum class Fact : std::uint8_t {
  kDiskWait,  // a worker is in D while others wait
  kStopped,   // a worker is stopped, and not by elastic-run
  kGpuLost,
  kDumpKey,  // /exception_dump is set: a rank's collective has timed out
  kInitKey,  // ranks wait for the key of one that has not come; it takes the flag's or the first limit, not 10 s
};
inline constexpr std::size_t kFacts = 5;

// --- What it is told ---
struct RoundBegan {};
struct RoundEnded {};
// Any rank has shown progress, or its script has begun another phase.
struct Beat {
  Phase phase = Phase::kUnknown;
  std::int64_t age_ms = 0;  // it was so long ago
};
// The rank that has been silent the longest is in this section; empty: in none.
struct InSection {
  std::string section = {};
};
struct FactSeen {
  Fact fact = Fact::kDiskWait;
  bool holds = true;
};
// All worker trees together read or write 1 MB/s or more.
struct DiskMoves {};
// The second sample beside the first one: the frames of waiting ranks, and RAS's counts.
struct Sampled {
  enum class Is : std::uint8_t { kSame, kMoved, kUnknown };
  Is is = Is::kUnknown;
};
// All nodes have sent what they have, or are lost.
struct Collected {};
// The verdict is known.
struct Judged {
  bool is_storage = false;  // rule 2
  bool is_moving = false;   // the job does something all the same (hang_judge.h), and nothing else speaks for itself
  bool continues = false;   // workers are stopped, and are sent SIGCONT: the verdict is not told yet
};
struct Tick {};
using HangEvent =
    std::variant<RoundBegan, RoundEnded, Beat, InSection, FactSeen, DiskMoves, Sampled, Collected, Judged, Tick>;

// --- What it wants ---
// To be told once in a job: no progress is seen, so that no limit holds.
struct TellNotArmed {
  bool operator==(const TellNotArmed&) const = default;
};
// Read stacks and counts; the second time they are compared, and the answer is Sampled.
struct TakeSample {
  bool is_second = false;
  bool operator==(const TakeSample&) const = default;
};
// All nodes send their evidence.
struct Collect {
  std::int64_t silent_ms = 0;
  Limit limit = {};
  std::optional<Fact> fact = {};  // of a shortcut
  Phase phase = Phase::kUnknown;
  std::int64_t longest_gap_ms = 0;  // of the phase, before
  bool operator==(const Collect&) const = default;
};
// Judge by what there is.
struct Judge {
  bool is_late = false;  // not all nodes have answered
  bool operator==(const Judge&) const = default;
};
// Progress has come while evidence was collected, or after stopped workers were continued: there is no hang, and
// nothing is told but that.
struct Withdraw {
  std::int64_t silent_ms = 0;
  bool operator==(const Withdraw&) const = default;
};
// Progress has come after the verdict.
struct TellRecovered {
  std::int64_t silent_ms = 0;
  bool operator==(const TellRecovered&) const = default;
};
using HangEffect = std::variant<TellNotArmed, TakeSample, Collect, Judge, Withdraw, TellRecovered>;

enum class HangState : std::uint8_t { kIdle, kStarting, kArmed, kSuspect, kConfirmed, kCollecting, kJudged };
constexpr auto names_of(HangState) {
  return std::array{"idle", "starting", "armed", "suspect", "confirmed", "collecting", "judged"};
}

// What a coordinator hands to the next one: a few hundred bytes. Ages, since clocks differ.
struct HangRecord {
  LearnedLimits learned = {};
  HangState state = HangState::kIdle;
  Phase phase = Phase::kUnknown;
  std::int64_t silent_ms = 0;   // since the last progress, or since the round began
  bool has_beat = false;        // in this round
  bool has_been_armed = false;  // in any round
  bool has_told_not_armed = false;
  bool is_stretched = false;  // disks have moved since the last progress
  bool is_patient = false;    // storage stood: the limit is four times as long until the next progress
  std::string section = {};   // of InSection
  bool operator==(const HangRecord&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "learned", v.learned, "state", v.state, "phase", v.phase, "silent_ms", v.silent_ms);
    each(io, "has_beat", v.has_beat, "has_been_armed", v.has_been_armed);
    io("has_told_not_armed", v.has_told_not_armed);
    each(io, "is_stretched", v.is_stretched, "is_patient", v.is_patient);
    io.if_set("section", v.section, at_most(limits::kNvrxSectionBytes));
  }
};

class HangWatch {
 public:
  explicit HangWatch(const LimitSettings& settings) : settings_(settings) {}
  // Goes on where another coordinator was. What it had begun to collect is collected anew.
  HangWatch(const LimitSettings& settings, const HangRecord& record, std::int64_t now_ms);

  std::vector<HangEffect> handle(const HangEvent& event, std::int64_t now_ms);
  // When a Tick is wanted at the latest; nothing: never.
  std::optional<std::int64_t> next_ms() const;

  HangState state() const { return state_; }
  // Of InSection; its limit is that of LimitFrom::kSection.
  const std::string& section() const { return section_; }
  const LearnedLimits& learned() const { return learned_; }
  // The limit that holds, with the first and the longest one and what storage adds; nothing where none does.
  std::optional<Limit> limit() const;
  HangRecord record(std::int64_t now_ms) const;
  void check_invariants() const;

 private:
  using Effects = std::vector<HangEffect>;
  void on_round_began(const RoundBegan&, Effects& out);
  void on_round_ended(const RoundEnded&, Effects& out);
  void on_beat(const Beat& beat, Effects& out);
  void on_in_section(const InSection& seen, Effects& out);
  void on_fact_seen(const FactSeen& seen, Effects& out);
  void on_disk_moves(const DiskMoves&, Effects& out);
  void on_sampled(const Sampled& sampled, Effects& out);
  void on_collected(const Collected&, Effects& out);
  void on_judged(const Judged& judged, Effects& out);

  // Does what is due by now.
  void advance(Effects& out);
  // The next step of the state, at this time; nothing: none.
  std::optional<std::int64_t> due_ms() const;
  HangState waiting_state() const { return has_beat_ ? HangState::kArmed : HangState::kStarting; }
  void calm();
  std::int64_t shortcut_ms(Fact fact) const;
  struct Alarm {
    std::int64_t at_ms = 0;
    Limit limit = {};
    std::optional<Fact> fact = {};
  };
  // When the wait without progress is over, by which limit; nothing: never.
  std::optional<Alarm> alarm() const;
  std::optional<std::int64_t> not_armed_ms() const;
  void suspect(const Alarm& alarm, Effects& out);
  void collect(Effects& out);

  LimitSettings settings_;
  LearnedLimits learned_;
  HangState state_ = HangState::kIdle;
  Phase phase_ = Phase::kUnknown;
  std::int64_t now_ms_ = 0;
  std::int64_t last_ms_ = 0;   // the last progress, or the beginning of the round
  std::int64_t again_ms_ = 0;  // no alarm before, since a sample has moved
  bool has_told_not_armed_ = false;
  bool has_been_armed_ = false;
  bool is_stretched_ = false;
  bool is_patient_ = false;
  bool has_beat_ = false;                                       // in this round
  std::string section_ = {};                                    // of InSection
  std::array<std::optional<std::int64_t>, kFacts> facts_ = {};  // since when each holds
  std::optional<Alarm> alarm_ = {};                             // in suspect, confirmed and collecting
  int samples_ = 0;                                             // asked for
  bool is_judging_ = false;                                     // in collecting: the verdict is asked for
  bool has_continued_ = false;                                  // stopped workers, since the last progress
  std::int64_t step_ms_ = 0;                                    // when the last step of suspect or collecting was
};

}  // namespace elastic::hang
