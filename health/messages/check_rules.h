#pragma once

#include <array>
#include <cstdint>

#include "src/base/fields.h"

namespace elastic::health {

// Whether nodes are checked before workers start, and what follows from it. The rules of the first node that joins
// hold.
struct CheckRules {
  enum class When : std::uint8_t {
    kNever,
    kFirst,    // each node before its first round
    kSuspect,  // the same, and a node again after a worker has failed first on it
    kAlways,   // all nodes before each round
  };
  When when = When::kNever;
  bool excludes_stragglers = false;
  bool only = false;          // the job ends with the check: no worker runs
  bool measures_all = false;  // all fit nodes together measure an all-gather, too
  bool operator==(const CheckRules&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "when", v.when, "excludes_stragglers", v.excludes_stragglers, "only", v.only);
    io("measures_all", v.measures_all);
  }
};
constexpr auto names_of(CheckRules::When) { return std::array{"never", "first", "suspect", "always"}; }

}  // namespace elastic::health
