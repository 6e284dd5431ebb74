#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "health/hang/rank_runs.h"

// Who is at fault when a job hangs.
namespace elastic::hang {

enum class Fault : std::uint8_t {
  kNone,    // nobody's
  kScript,  // the script's, and no node's
  kSoft,    // a node may be at fault: the second time counts
  kHard,    // a node is at fault
};
constexpr auto names_of(Fault) { return std::array{"none", "script", "soft", "hard"}; }

struct HangCulprit {
  std::int32_t rank = -1;  // -1: the whole node
  std::string node = {};
  std::string why = {};  // a clause with the rank or the node as its subject
  // The line of the script where the rank stands, and why it is blamed for that: "load_batch data.py:88". Empty: not
  // known, or it is blamed for something else.
  std::string place = {};
  bool operator==(const HangCulprit&) const = default;
};

struct HangVerdict {
  int rule = 11;
  std::string_view name = {};              // of the rule
  Fault fault = Fault::kNone;              // kSoft and kHard: of the culprits' nodes
  std::vector<HangCulprit> culprits = {};  // at most bounds::kCulprits
  std::string cause = {};   // a clause: "rank 5 (node gpu-03) is not in the collective that others wait in"
  std::string others = {};  // what the others do, as a clause; may be empty
  std::string remedy = {};  // what to do about it, as a clause; may be empty
  RankRuns odd = {};        // ranks to look at first
  RankRuns without_evidence = {};
  bool is_storage() const { return rule == 2; }
  bool operator==(const HangVerdict&) const = default;
};

}  // namespace elastic::hang
