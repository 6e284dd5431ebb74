#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "health/hang/hang_picture.h"
#include "health/hang/hang_verdict.h"

// Judges a job that hangs by the facts of all its nodes.
namespace elastic::hang {

struct JudgeSettings {
  std::int64_t disk_wait_ms = 10'000;  // for which a worker in D is no fault
};

// One row of the table of docs/hangs.md.
struct HangRule {
  int number = 0;
  std::string_view name = {};
  std::string_view fact = {};
  std::string_view at_fault = {};
  std::string_view example = {};
  // Nothing where the fact does not hold. Number and name are added by judge().
  std::optional<HangVerdict> (*find)(const HangPicture& picture, const JudgeSettings& settings) = nullptr;
};

// In their order: the first one that holds is the verdict, and the last one always does.
std::span<const HangRule> hang_rules();

// A node without evidence is no culprit for that. Where evidence that is missing could name another culprit than the
// evidence that is there, the verdict is the last rule's: unknown.
HangVerdict judge(const HangPicture& picture, const JudgeSettings& settings = {});

// Whether a job that shows no progress does something all the same, by the two looks at its stacks: most of the ranks
// that wait in a collective, or for storage, stand elsewhere than before; or no rank waits, and most stand elsewhere or
// compute. An evaluation that prints nothing is such a job. Ranks of which two stacks are not known say nothing, but
// that they wait where they do so by the numbers of their collectives.
bool is_moving(const HangPicture& picture);

}  // namespace elastic::hang
