#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "health/hang/hang_facts.h"
#include "health/hang/section_limits.h"
#include "src/base/fields.h"

// How long a job may make no progress: as long as it usually takes, times five. Milliseconds.
namespace elastic::hang {

inline constexpr std::size_t kPhases = 5;

// What the limits follow from. A flag of the user's takes the place of what was learned; tests lower the rest.
struct LimitSettings {
  std::optional<std::int64_t> timeout_ms = {};        // --hang-timeout
  std::optional<std::int64_t> first_timeout_ms = {};  // --hang-first-timeout, if given
  SectionLimits sections = {};                        // --progress-sections
  std::int64_t first_ms = 30 * 60'000;                // else; it alone raises no alarm
  std::int64_t factor = 5;
  std::int64_t floor_ms = 60'000;
  std::int64_t ceiling_ms = 30 * 60'000;
  std::int64_t shortcut_ms = 10'000;  // for facts that speak for themselves
  std::int64_t between_samples_ms = 5'000;
  std::int64_t sample_ms = 5'000;     // for which a sample is waited for
  std::int64_t collect_ms = 20'000;   // for which nodes are waited for
  std::int64_t storage_factor = 4;    // by which a limit grows when storage stands
  std::int64_t continue_ms = 10'000;  // from SIGCONT until its workers are suspected again
};

// Where a limit comes from.
enum class LimitFrom : std::uint8_t {
  kLearned,
  kFlag,
  kFirst,     // --hang-first-timeout: there was no progress yet
  kNone,      // nothing is learned of this phase yet: the ceiling
  kShortcut,  // a fact that speaks for itself
  kSection,   // --progress-sections: of the section in which the rank is that has been silent the longest
};
constexpr auto names_of(LimitFrom) { return std::array{"learned", "flag", "first", "none", "fact", "section"}; }

struct Limit {
  std::int64_t limit_ms = 0;
  LimitFrom from = LimitFrom::kNone;
  bool operator==(const Limit&) const = default;
};

// What is learned of a job, over all its rounds and coordinators: of each phase the longest time from one sign of
// progress to the next.
struct LearnedLimits {
  struct OfPhase {
    std::int64_t gaps = 0;  // how many were seen
    std::int64_t longest_ms = 0;
    bool operator==(const OfPhase&) const = default;
    static void fields(auto& io, auto& v) { each(io, "gaps", v.gaps, "longest_ms", v.longest_ms); }
  };
  OfPhase unknown = {};
  OfPhase setup = {};
  OfPhase train = {};
  OfPhase evaluate = {};
  OfPhase checkpoint = {};
  bool operator==(const LearnedLimits&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "unknown", v.unknown, "setup", v.setup, "train", v.train, "evaluate", v.evaluate);
    io("checkpoint", v.checkpoint);
  }

  const OfPhase& of(Phase phase) const;
  // Takes a gap for one of `phase`, which was the phase when it began.
  void learn(Phase phase, std::int64_t gap_ms);
  // The longest time without progress in this phase that is no hang. Where no gap of the phase was seen it is the
  // ceiling: a first evaluation is no hang, however short the steps before it were.
  Limit limit(Phase phase, const LimitSettings& settings) const;
  // The same with values that can be: another coordinator has sent them.
  LearnedLimits within_bounds() const;
};

}  // namespace elastic::hang
