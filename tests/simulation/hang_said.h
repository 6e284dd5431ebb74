#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace elastic::simulation {

// What nodes are told of a hang, by the report that comes with the verdict (docs/hangs.md).
struct HangSaid {
  struct Culprit {
    std::optional<std::int64_t> rank = {};  // nothing: the whole node
    std::string node = {};
  };
  std::string cause = {};
  std::string fault = {};   // "none", "script", "soft", "hard"
  std::string action = {};  // empty: a hang ends no round here
  std::vector<Culprit> culprits = {};
  std::string without = {};  // ranks without evidence: "0-2,5"
  // Nothing is missing, by its own word.
  bool is_complete() const { return without.empty(); }
  // The ranks without evidence include this one.
  bool lacks(std::int64_t rank) const;
  // The round ends for it, and another one follows.
  bool restarts() const { return action.starts_with("restart"); }
  // The job ends for it.
  bool is_fatal() const { return action.starts_with("the job ends"); }
};
// Nothing: it is no such report.
std::optional<HangSaid> read_report(const std::string& report);

}  // namespace elastic::simulation
